//! The calls to make, as the benchmark sends them: ids that are not known yet are names in path and
//! body.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

/// The input on stdin.
#[derive(Deserialize)]
pub struct PeerInput {
    /// Host and port of Discord.
    pub at: String,
    pub token: String,
    pub calls: Vec<Call>,
}

/// One call.
#[derive(Deserialize)]
pub struct Call {
    pub method: String,
    /// The path below the version: `/guilds/…`
    path: String,
    body: Value,
    /// The name of the object it creates.
    pub makes: Option<String>,
    /// The names of the objects that must exist before.
    pub needs: Vec<String>,
}

impl Call {
    /// Returns the path, without its first slash, and the body, with names replaced by ids.
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
