//! The errors of the engine: a kind for programs and a message for people.

use std::fmt;
use std::sync::Arc;

use tidegate_core::{ErrorCode, OperationId, Time};

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A field is out of its bounds.
    Invalid,
    /// No such upstream is configured.
    UnknownUpstream,
    /// No executor handles operations of this kind.
    UnknownKind,
    /// The request is too large.
    TooLarge,
    /// It costs more than a limit can ever hold.
    TooCostly,
    /// It names a limit that does not exist.
    UnknownLimit,
    /// The known limits do not let it start before its deadline.
    TooLate,
    /// The key belongs to a different request.
    KeyConflict,
    /// There is no such operation.
    NoOperation,
    /// There is no such group.
    NoGroup,
    /// There is no such limit.
    NoLimit,
    /// The current state does not allow it.
    NotNow,
    /// The completion token is not valid.
    Unauthorized,
    /// The store cannot be written now; nothing was accepted.
    StoreUnavailable,
    /// The engine is stopping, or another owner has the partition.
    Stopping,
    /// The options cannot be used.
    BadConfig,
    /// The data cannot be used: locked by another process, damaged, or of a newer version.
    StoreRefused,
    /// A bug: something that must not happen did.
    Internal,
}

impl ErrorKind {
    /// Its stable code.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Invalid => ErrorCode::Invalid,
            Self::UnknownUpstream => ErrorCode::UnknownUpstream,
            Self::UnknownKind => ErrorCode::UnknownKind,
            Self::TooLarge => ErrorCode::TooLarge,
            Self::TooCostly => ErrorCode::TooCostly,
            Self::UnknownLimit => ErrorCode::UnknownLimit,
            Self::TooLate => ErrorCode::TooLate,
            Self::KeyConflict => ErrorCode::KeyConflict,
            Self::NoOperation => ErrorCode::NoOperation,
            Self::NoGroup => ErrorCode::NoGroup,
            Self::NoLimit => ErrorCode::NoLimit,
            Self::NotNow => ErrorCode::NotNow,
            Self::Unauthorized => ErrorCode::Unauthorized,
            Self::StoreUnavailable => ErrorCode::StoreUnavailable,
            Self::Stopping => ErrorCode::Stopping,
            Self::BadConfig => ErrorCode::BadConfig,
            Self::StoreRefused => ErrorCode::StoreRefused,
            Self::Internal => ErrorCode::Internal,
        }
    }

    /// Whether the same request may succeed later, because something was in its way.
    #[must_use]
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::StoreUnavailable | Self::Stopping | Self::StoreRefused | Self::Internal)
    }
}

/// An error of the engine.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Error {
    /// The kind, for programs.
    pub kind: ErrorKind,
    /// The message, for people. Never a secret, never a body.
    pub message: String,
    /// The invalid field of the submission.
    pub field: Option<String>,
    /// The operation concerned.
    pub operation: Option<OperationId>,
    /// The earliest time at which it could be done.
    pub earliest: Option<Time>,
    /// Whether the stored data cannot be read: another version may be able to, and a retry does not
    /// help.
    pub unreadable: bool,
    /// Whether the request may have been accepted all the same.
    pub unsure: bool,
    /// The error of the store that caused it.
    pub(crate) source: Option<Arc<tidegate_store::Error>>,
}

/// A result of the engine.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            field: None,
            operation: None,
            earliest: None,
            unreadable: false,
            unsure: false,
            source: None,
        }
    }

    /// Sets the field concerned.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Sets the operation concerned.
    #[must_use]
    pub const fn operation(mut self, operation: OperationId) -> Self {
        self.operation = Some(operation);
        self
    }
}

impl Error {
    /// Sets the error of the store that caused it.
    pub(crate) fn with_source(mut self, source: tidegate_store::Error) -> Self {
        self.source = Some(Arc::new(source));
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.code(), self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

impl From<tidegate_store::Error> for Error {
    fn from(error: tidegate_store::Error) -> Self {
        use tidegate_store::StoreErrorKind;
        let kind = match error.kind() {
            StoreErrorKind::Unavailable | StoreErrorKind::Unsure => ErrorKind::StoreUnavailable,
            // Another node owns the partition: this one does nothing with it any more.
            StoreErrorKind::Fenced => ErrorKind::Stopping,
            StoreErrorKind::Held | StoreErrorKind::Unreadable => ErrorKind::StoreRefused,
            // An invalid call is a bug of the engine.
            _ => ErrorKind::Internal,
        };
        let (unreadable, unsure) =
            (error.kind() == StoreErrorKind::Unreadable, error.kind() == StoreErrorKind::Unsure);
        let message = error.to_string();
        Self { unreadable, unsure, ..Self::new(kind, message) }.with_source(error)
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use tidegate_store::StoreErrorKind;

    use super::*;

    /// The cause is reachable down to the error of the driver.
    #[test]
    fn an_error_of_the_store_keeps_its_cause() {
        let full = std::io::Error::other("no space left");
        let store =
            tidegate_store::Error::new(StoreErrorKind::Unavailable, "cannot append").with_source(full);
        let error = Error::from(store);
        assert_eq!(error.to_string(), "TG0017: cannot append: no space left");
        let cause = error.source().and_then(std::error::Error::source);
        assert_eq!(cause.map(ToString::to_string).as_deref(), Some("no space left"));
        assert!(Error::new(ErrorKind::NoGroup, "there is no group").source().is_none());
    }
}
