//! The errors of generations: a kind for programs and a message for people.

use std::fmt;
use std::time::Duration;

use tidegate::OperationId;

use crate::input_schema::InputProblem;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DispatchErrorKind {
    /// No such model is configured.
    UnknownModel,
    /// The input does not fit the schema of its model.
    InvalidInput,
    /// Another field is out of its bounds.
    Invalid,
    /// The user has too many generations that have not ended.
    TooManyActive,
    /// The user creates generations too fast.
    TooFast,
    /// The key belongs to another request.
    KeyConflict,
    /// There is no such generation.
    NotFound,
    /// Its current state does not allow it.
    NotNow,
    /// Any other error of the engine.
    Engine(tidegate::ErrorKind),
}

/// An error of generations.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DispatchError {
    /// The kind, for programs.
    pub kind: DispatchErrorKind,
    /// The message, for people. Never a secret.
    pub message: String,
    /// The invalid field.
    pub field: Option<String>,
    /// When it may be tried again.
    pub retry_after: Option<Duration>,
    /// The generation concerned.
    pub operation: Option<OperationId>,
    /// Further problems of the same input.
    pub also: Box<[InputProblem]>,
}

impl DispatchError {
    pub(crate) fn new(kind: DispatchErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { kind, message, field: None, retry_after: None, operation: None, also: Box::default() }
    }

    pub(crate) fn with_field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub(crate) const fn with_retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    pub(crate) fn not_found(id: OperationId) -> Self {
        let message = format!("there is no generation {id}");
        Self { operation: Some(id), ..Self::new(DispatchErrorKind::NotFound, message) }
    }
}

impl fmt::Display for DispatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DispatchError {}

impl From<tidegate::Error> for DispatchError {
    fn from(error: tidegate::Error) -> Self {
        let kind = match error.kind {
            tidegate::ErrorKind::KeyConflict => DispatchErrorKind::KeyConflict,
            tidegate::ErrorKind::NoOperation => DispatchErrorKind::NotFound,
            tidegate::ErrorKind::NotNow => DispatchErrorKind::NotNow,
            kind => DispatchErrorKind::Engine(kind),
        };
        let (field, operation) = (error.field, error.operation);
        Self { field, operation, ..Self::new(kind, error.message) }
    }
}
