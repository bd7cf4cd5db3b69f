//! Who is there. Hints may all be lost: that costs time, never correctness.

use std::time::Duration;

use tidegate_core::Time;
use tokio::sync::mpsc;

use crate::StoreFuture;

/// A process that shares the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique in the store.
    pub name: String,
    /// Where the others reach it; empty when it cannot be reached.
    pub address: String,
    /// Counted as gone after this.
    pub until: Time,
}

/// The register of nodes, and hints between them.
pub trait Nodes: Send + Sync {
    /// Says that this node is there, for `ttl`.
    fn register(&self, name: &str, address: &str, ttl: Duration) -> StoreFuture<'_, Node>;

    /// Is still there, for another `ttl`. `Invalid` when it was never registered or has been forgotten.
    fn heartbeat(&self, name: &str, ttl: Duration) -> StoreFuture<'_, Node>;

    /// Who is there now, by name.
    fn list_nodes(&self) -> StoreFuture<'_, Vec<Node>>;

    /// Tells whoever listens to `topic`; answers how many were reached, as far as that is known.
    fn notify(&self, topic: &str, hint: &str) -> StoreFuture<'_, usize>;

    /// Hears the hints of `topic` from now on. Slow listeners lose hints.
    fn listen(&self, topic: &str) -> StoreFuture<'_, mpsc::Receiver<String>>;
}
