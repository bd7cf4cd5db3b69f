//! Why a payload is refused, and which of its fields.

use std::fmt;

/// Why a payload was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldRefusal {
    /// The field, as callers spell it.
    pub field: String,
    /// The problem, as a sentence.
    pub message: String,
    /// Whether the field is required and was left out.
    pub is_missing: bool,
}

impl FieldRefusal {
    /// Creates the refusal of a payload without `field`.
    #[must_use]
    pub fn missing(field: impl Into<String>) -> Self {
        let field = field.into();
        Self { message: format!("The field {field:?} is missing."), field, is_missing: true }
    }

    /// Creates a refusal of `field`.
    #[must_use]
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), is_missing: false }
    }
}

impl fmt::Display for FieldRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for FieldRefusal {}
