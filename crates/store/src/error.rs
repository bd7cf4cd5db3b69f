//! Store errors, in as few kinds as callers can act on.

use std::fmt;

/// The kind of a store error: what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// A newer owner exists: stop, and drop the state in memory.
    Fenced,
    /// Nothing was written and nothing is lost; retry later (unreachable, disk full, busy).
    Unavailable,
    /// It is unknown whether it was written: stop, reopen, replay.
    Unsure,
    /// Another process holds it (a lock, a lease).
    Held,
    /// The stored data cannot be read: damaged, or written by a newer version.
    Unreadable,
    /// The call is invalid.
    Invalid,
}

/// A store error: its kind, and a message for people.
#[derive(Debug)]
pub struct Error {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A result of a store.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error without a source.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Sets the source of the error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What the caller can do about it.
    #[must_use]
    pub const fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
