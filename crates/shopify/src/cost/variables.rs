//! The variables of a call, as far as they are counts: numbers and lengths of lists. Everything
//! else in them is ignored.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::document::{ArgumentValue, OperationDefinition};

/// The variables sent with a call.
#[derive(Clone, Debug, Default)]
pub struct Variables<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Variables<'a> {
    /// Parses the JSON of `variables`; anything but an object has none.
    #[must_use]
    pub fn read(json: Option<&'a RawValue>) -> Self {
        Self(json.and_then(|json| serde_json::from_str(json.get()).ok()).unwrap_or_default())
    }

    /// Returns the count in a value: its number, or the length of its list.
    #[must_use]
    pub fn count(&self, value: ArgumentValue<'_>, operation: &OperationDefinition<'_>) -> Option<u64> {
        match value {
            ArgumentValue::Number(count) | ArgumentValue::List(count) => Some(count),
            ArgumentValue::Variable(name) => match self.0.get(name) {
                Some(json) => count_of(json.get()),
                None => {
                    let default = operation.defaults.iter().find(|(known, _)| *known == name)?.1;
                    // A default cannot be a variable, so this ends.
                    if matches!(default, ArgumentValue::Variable(_)) {
                        None
                    } else {
                        self.count(default, operation)
                    }
                }
            },
            ArgumentValue::Other => None,
        }
    }
}

fn count_of(json: &str) -> Option<u64> {
    let number = serde_json::from_str::<u64>(json).ok();
    number.or_else(|| serde_json::from_str::<Vec<IgnoredAny>>(json).ok().map(|list| list.len() as u64))
}
