//! Hints between the processes that share a store. Any hint may be lost: that costs time, never
//! correctness.

use tokio::sync::mpsc;

use crate::StoreFuture;

/// Hints between processes.
pub trait Hints: Send + Sync {
    /// Sends a hint to the listeners of `topic`; returns how many were reached, as far as known.
    fn notify(&self, topic: &str, hint: &str) -> StoreFuture<'_, usize>;

    /// Subscribes to the hints of `topic` from now on. Slow listeners lose hints.
    fn listen(&self, topic: &str) -> StoreFuture<'_, mpsc::Receiver<String>>;
}

/// The topic of hints that a named lease was released; the hint is its fence.
#[must_use]
pub fn lease_topic(lease: &str) -> String {
    format!("lease:{lease}")
}
