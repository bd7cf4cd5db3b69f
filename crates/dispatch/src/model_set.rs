//! The configured models, with the compiled schemas of their inputs.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::config::{ConfigError, ModelConfig};
use crate::input_schema::{InputProblem, InputSchema};

/// A model that is ready to be used.
pub(crate) struct ReadyModel {
    pub config: ModelConfig,
    schema: Option<InputSchema>,
}

/// The models that differ between two configurations, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelDiff {
    /// Those that are new.
    pub added: Vec<String>,
    /// Those whose configuration is another.
    pub changed: Vec<String>,
    /// Those that are gone.
    pub removed: Vec<String>,
}

impl ModelDiff {
    /// Whether no model differs.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// The configured models, by name.
pub(crate) struct ModelSet(BTreeMap<String, ReadyModel>);

impl ModelSet {
    pub(crate) fn new(models: &[ModelConfig]) -> Result<Self, ConfigError> {
        let mut ready = BTreeMap::new();
        for model in models {
            let compiled = model.input_schema.as_ref().map(InputSchema::compile).transpose();
            let schema = compiled.map_err(|problem| {
                ConfigError::new(format!("models.{}.input_schema", model.name), problem)
            })?;
            ready.insert(model.name.clone(), ReadyModel { config: model.clone(), schema });
        }
        Ok(Self(ready))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ReadyModel> {
        self.0.get(name)
    }

    /// All models, by name.
    pub(crate) fn configs(&self) -> impl Iterator<Item = &ModelConfig> {
        self.0.values().map(|model| &model.config)
    }

    /// What differs in `new`.
    pub(crate) fn diff(&self, new: &Self) -> ModelDiff {
        let mut diff = ModelDiff::default();
        for model in new.configs() {
            match self.get(&model.name) {
                None => diff.added.push(model.name.clone()),
                Some(old) if old.config != *model => diff.changed.push(model.name.clone()),
                Some(_) => {}
            }
        }
        let gone = self.configs().filter(|model| new.get(&model.name).is_none());
        diff.removed = gone.map(|model| model.name.clone()).collect();
        diff
    }

    /// The names of all models, for a message.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }
}

impl ReadyModel {
    /// Returns what is wrong with an input: a problem for each field.
    pub(crate) fn problems(&self, input: &Value) -> Vec<InputProblem> {
        if !input.is_object() {
            let message = "The input must be an object.".to_owned();
            return vec![InputProblem { field: "input".to_owned(), message }];
        }
        self.schema.as_ref().map(|schema| schema.problems(input)).unwrap_or_default()
    }
}
