//! Bus errors, in as few kinds as callers can act on.

use std::fmt;

/// The kind of a bus error: what the caller can do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusErrorKind {
    /// The payload exceeds the bound of the port or of the server.
    TooLarge,
    /// A subject, filter or address is invalid.
    Invalid,
    /// The server forbids this subject, or these credentials.
    Denied,
    /// The bus is not connected; retry later. It is unknown whether a message left.
    Unavailable,
    /// The bus was closed by this process.
    Closed,
}

/// A bus error: its kind, and a message for people.
#[derive(Debug)]
pub struct BusError {
    kind: BusErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl BusError {
    /// Creates an error without a source.
    #[must_use]
    pub fn new(kind: BusErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The error of every call after the bus was closed.
    #[must_use]
    pub fn closed() -> Self {
        Self::new(BusErrorKind::Closed, "the bus is closed")
    }

    /// Sets the source of the error.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What the caller can do about it.
    #[must_use]
    pub const fn kind(&self) -> BusErrorKind {
        self.kind
    }
}

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for BusError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
