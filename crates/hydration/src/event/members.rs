//! The members of a JSON object, taken one by one. What is missing or has another type is refused
//! by its name.

use serde_json::{Map, Value};

use super::EventError;

/// An object whose members are taken; those that are not are left alone.
pub(super) struct Members {
    /// What its members' names begin with.
    prefix: &'static str,
    members: Map<String, Value>,
}

impl Members {
    /// Reads the outermost object.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, EventError> {
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(members)) => Ok(Self { prefix: "", members }),
            Ok(_) => Err(EventError::Malformed("it must be an object".to_owned())),
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                Err(EventError::Malformed(format!("it is not JSON, see line {line} column {column}")))
            }
        }
    }

    /// The object `payload`.
    pub(super) fn payload(&mut self) -> Result<Self, EventError> {
        Ok(Self { prefix: "payload.", members: self.object("payload")? })
    }

    pub(super) fn object(&mut self, name: &str) -> Result<Map<String, Value>, EventError> {
        match self.required(name)? {
            Value::Object(members) => Ok(members),
            _ => Err(self.refuse(name, "must be an object")),
        }
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String, EventError> {
        let value = self.required(name)?;
        self.as_text(name, value)
    }

    pub(super) fn optional_text(&mut self, name: &str) -> Result<Option<String>, EventError> {
        let value = self.members.remove(name);
        value.map(|value| self.as_text(name, value)).transpose()
    }

    pub(super) fn optional_number(&mut self, name: &str) -> Result<Option<u64>, EventError> {
        let value = self.members.remove(name);
        let number = |value: Value| value.as_u64().ok_or_else(|| self.refuse(name, "must be a whole number"));
        value.map(number).transpose()
    }

    pub(super) fn optional_texts(&mut self, name: &str) -> Result<Option<Vec<String>>, EventError> {
        let refuse = |members: &Self| members.refuse(name, "must be a list of strings");
        match self.members.remove(name) {
            None => Ok(None),
            Some(Value::Array(items)) => {
                let texts = items.into_iter().map(|item| self.as_text(name, item));
                texts.collect::<Result<_, _>>().map(Some).map_err(|_| refuse(self))
            }
            Some(_) => Err(refuse(self)),
        }
    }

    /// Any value; `None` when there is none.
    pub(super) fn optional(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name)
    }

    /// The error of a member.
    pub(super) fn refuse(&self, name: &str, problem: &str) -> EventError {
        let field = format!("{}{name}", self.prefix);
        EventError::Member { problem: format!("`{field}` {problem}"), field }
    }

    fn required(&mut self, name: &str) -> Result<Value, EventError> {
        self.members.remove(name).ok_or_else(|| self.refuse(name, "is missing"))
    }

    fn as_text(&self, name: &str, value: Value) -> Result<String, EventError> {
        match value {
            Value::String(text) => Ok(text),
            _ => Err(self.refuse(name, "must be a string")),
        }
    }
}
