//! What can go wrong in a store, in as few kinds as callers can act on.

use std::fmt;

/// What the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// A newer owner exists: stop, and drop what is in memory.
    Fenced,
    /// Nothing was written and nothing is lost; try again later (out of reach, disk full, busy).
    Unavailable,
    /// It is not known whether it was written: stop, reopen, replay.
    Unsure,
    /// Somebody else has it (a lock, a lease).
    Held,
    /// What is stored cannot be read: damaged, or written by a newer version.
    Unreadable,
    /// The call makes no sense.
    Invalid,
}

/// A store's failure: its kind, and a sentence for people.
#[derive(Debug)]
pub struct Error {
    kind: StoreErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// A store's answer.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// A failure with no cause below it.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same with what caused it.
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
