//! The register of live nodes, and hints between them. Any hint may be lost: that costs time, never
//! correctness.

use std::time::Duration;

use tidegate_core::Time;
use tokio::sync::mpsc;

use crate::StoreFuture;

/// A process that shares the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique in the store.
    pub name: String,
    /// Where other nodes reach it; empty when it cannot be reached.
    pub address: String,
    /// When it counts as dead unless it sends a heartbeat.
    pub until: Time,
}

/// The register of nodes, and hints between them.
pub trait Nodes: Send + Sync {
    /// Registers this node as alive for `ttl`.
    fn register(&self, name: &str, address: &str, ttl: Duration) -> StoreFuture<'_, Node>;

    /// Extends the registration by `ttl`. `Invalid` when the node was never registered or has been
    /// removed.
    fn heartbeat(&self, name: &str, ttl: Duration) -> StoreFuture<'_, Node>;

    /// Lists the live nodes, by name.
    fn list_nodes(&self) -> StoreFuture<'_, Vec<Node>>;

    /// Sends a hint to the listeners of `topic`; returns how many were reached, as far as known.
    fn notify(&self, topic: &str, hint: &str) -> StoreFuture<'_, usize>;

    /// Subscribes to the hints of `topic` from now on. Slow listeners lose hints.
    fn listen(&self, topic: &str) -> StoreFuture<'_, mpsc::Receiver<String>>;
}
