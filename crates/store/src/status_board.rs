//! What a process shows of itself in the store, for people who look into it. It is written now and
//! then and removed by the store when it is old; no process reads it back, and losing it loses
//! nothing.

use std::time::Duration;

use crate::StoreFuture;

/// A place of a store that people can read.
pub trait StatusBoard: Send + Sync {
    /// Replaces what is shown of one thing, such as the provider `fal`, for `ttl`. Entries that are
    /// not among the new ones stay until their own time is over.
    fn publish_status(
        &self,
        kind: &str,
        name: &str,
        entries: Vec<StatusEntry>,
        ttl: Duration,
    ) -> StoreFuture<'_, ()>;
}

/// One entry, under its own key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusEntry {
    /// The end of its key.
    pub key: &'static str,
    /// What it shows.
    pub value: StatusValue,
}

impl StatusEntry {
    /// Creates an entry.
    #[must_use]
    pub const fn new(key: &'static str, value: StatusValue) -> Self {
        Self { key, value }
    }
}

/// What an entry shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusValue {
    /// One text.
    Text(String),
    /// Fields with their values.
    Fields(Vec<(&'static str, String)>),
    /// Names in the order of their numbers; an empty list is shown as nothing.
    Ranked(Vec<(String, u64)>),
}
