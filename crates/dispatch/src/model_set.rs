//! The configured models, with the compiled schemas of their inputs.

use std::collections::BTreeMap;

use jsonschema::Validator;
use serde_json::Value;
use tidegate_core::bounds::PROBLEMS_MAX;

use crate::config::{ConfigError, ModelConfig};

/// A model that is ready to be used.
pub(crate) struct ReadyModel {
    pub config: ModelConfig,
    schema: Option<Validator>,
}

/// The configured models, by name.
pub(crate) struct ModelSet(BTreeMap<String, ReadyModel>);

impl ModelSet {
    pub(crate) fn new(models: &[ModelConfig]) -> Result<Self, ConfigError> {
        let mut ready = BTreeMap::new();
        for model in models {
            let compiled = model.input_schema.as_ref().map(jsonschema::validator_for).transpose();
            let schema = compiled.map_err(|error| {
                let place = format!("models.{}.input_schema", model.name);
                ConfigError::new(place, format!("It is no JSON Schema: {error}."))
            })?;
            ready.insert(model.name.clone(), ReadyModel { config: model.clone(), schema });
        }
        Ok(Self(ready))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ReadyModel> {
        self.0.get(name)
    }

    /// The names of all models, for a message.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }
}

impl ReadyModel {
    /// Checks an input.
    ///
    /// # Errors
    /// The first field that is wrong, and every problem as one sentence.
    pub(crate) fn check(&self, input: &Value) -> Result<(), (String, String)> {
        if !input.is_object() {
            return Err(("input".into(), "The input must be an object.".into()));
        }
        let Some(schema) = &self.schema else { return Ok(()) };
        let mut place = None;
        let mut problems = Vec::new();
        for error in schema.iter_errors(input).take(PROBLEMS_MAX) {
            let at = format!("input{}", error.instance_path().to_string().replace('/', "."));
            problems.push(format!("{at}: {error}"));
            place.get_or_insert(at);
        }
        match place {
            Some(place) => Err((place, format!("{}.", problems.join("; ")))),
            None => Ok(()),
        }
    }
}
