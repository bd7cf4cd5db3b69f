//! The error of the server: a code for machines, a message for people, and what else its response
//! says. The errors of the engine and of the store become one here.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

pub use tidegate_core::ErrorCode;
use tidegate_core::{OperationId, Time};

use crate::config::TokenScope;

/// An error of the server.
#[derive(Clone, Debug)]
pub struct Error {
    /// The code, for machines.
    pub code: ErrorCode,
    /// The message, for people. Never a secret, never a body.
    pub message: String,
    /// The invalid field, as the caller spelled it.
    pub field: Option<Box<str>>,
    /// The operation concerned.
    pub operation: Option<OperationId>,
    /// The earliest time at which it could be done.
    pub earliest: Option<Time>,
    /// The scope that the caller's token lacks.
    pub scope: Option<TokenScope>,
    /// How many seconds the caller should wait before it tries again. Small, because errors are
    /// passed by value.
    pub retry_after_s: Option<NonZeroU32>,
    /// Whether the request may have been accepted all the same.
    pub unsure: bool,
    /// Further problems with the same request.
    pub also: Box<[Self]>,
    pub(crate) source: Option<Arc<ErrorSource>>,
}

/// The cause of an error, behind a thin pointer: errors are passed by value.
#[derive(Debug)]
pub(crate) struct ErrorSource(Box<dyn std::error::Error + Send + Sync>);

/// A result of the server.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Asks the caller to wait before it tries again: whole seconds, rounded up, so that no one
    /// returns too early.
    pub(crate) fn retry_after(mut self, wait: Option<Duration>) -> Self {
        let seconds = wait.map(|wait| u32::try_from(wait.as_millis().div_ceil(1_000)).unwrap_or(u32::MAX));
        self.retry_after_s = seconds.map(|seconds| NonZeroU32::new(seconds).unwrap_or(NonZeroU32::MIN));
        self
    }

    /// Creates an error.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            field: None,
            operation: None,
            earliest: None,
            scope: None,
            retry_after_s: None,
            unsure: false,
            also: Box::default(),
            source: None,
        }
    }

    /// Sets the field concerned.
    #[must_use]
    pub fn field(mut self, field: impl Into<Box<str>>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Sets the operation concerned.
    #[must_use]
    pub const fn operation(mut self, operation: OperationId) -> Self {
        self.operation = Some(operation);
        self
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(ErrorSource(source.into())));
        self
    }
}

/// Two errors are the same if a caller could not tell them apart, whatever their causes.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        let parts = |error: &Self| (error.code, error.operation, error.earliest, error.unsure);
        parts(self) == parts(other)
            && self.message == other.message
            && self.field == other.field
            && self.also == other.also
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| &*source.0 as _)
    }
}

impl From<tidegate::Error> for Error {
    fn from(error: tidegate::Error) -> Self {
        let (operation, earliest, unsure) = (error.operation, error.earliest, error.unsure);
        let this = Self::new(error.kind.code(), error.message.clone());
        Self { field: error.field.as_deref().map(Box::from), operation, earliest, unsure, ..this }
            .with_source(error)
    }
}

impl From<tidegate_store::Error> for Error {
    fn from(error: tidegate_store::Error) -> Self {
        tidegate::Error::from(error).into()
    }
}

/// Returns a message of another crate as a sentence. One that begins with the name of a field or
/// with an id begins with it as it is spelled.
pub(crate) fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let first = text.split(' ').next().unwrap_or_default();
    if first.contains(['_', '.']) {
        return format!("{text}.");
    }
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}

#[cfg(test)]
mod tests {
    use super::sentence;

    #[test]
    fn a_sentence_keeps_names_as_they_are() {
        for (text, expected) in [
            ("there is no model \"x\"", "There is no model \"x\"."),
            ("op_01kf is completed: it has ended", "op_01kf is completed: it has ended."),
            ("input.prompt: \"\" is too short.", "input.prompt: \"\" is too short."),
            ("", ""),
        ] {
            assert_eq!(sentence(text), expected);
        }
    }
}
