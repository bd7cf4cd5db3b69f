//! What to call, as the benchmark tells it: ids that are not known yet stand as names in path and body.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// What is read from stdin.
#[derive(Deserialize)]
pub struct Told {
    /// Where Discord is: host and port.
    pub at: String,
    pub token: String,
    pub calls: Vec<Call>,
}

/// One call.
#[derive(Deserialize)]
pub struct Call {
    pub method: String,
    /// Below the version: `/guilds/…`
    path: String,
    body: Value,
    /// The name of what it makes.
    pub makes: Option<String>,
    /// The names of what must be there before.
    pub needs: Vec<String>,
}

impl Call {
    /// Path, without its first slash, and body, with ids for names.
    pub fn with(&self, ids: &HashMap<String, String>) -> (String, Value) {
        let path = self.path.trim_start_matches('/').split('/');
        let path: Vec<&str> = path.map(|part| ids.get(part).map_or(part, String::as_str)).collect();
        (path.join("/"), filled(&self.body, ids))
    }
}

fn filled(value: &Value, ids: &HashMap<String, String>) -> Value {
    match value {
        Value::String(text) => Value::String(ids.get(text).unwrap_or(text).clone()),
        Value::Array(items) => items.iter().map(|item| filled(item, ids)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), filled(value, ids))).collect()
        }
        other => other.clone(),
    }
}
