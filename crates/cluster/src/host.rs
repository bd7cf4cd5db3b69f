//! The host of partitions: serves those that a node owns. The cluster decides when; the host
//! decides how.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tidegate_core::id::Partition;

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The outcome of a handshake: who responded at a node's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeOutcome {
    /// This very process.
    ThisProcess,
    /// Another process, which knows this node's secret.
    Node {
        /// Its name.
        name: String,
        /// What makes it place operations differently, where that is known; the end of a sentence.
        differs: Option<String>,
    },
    /// A process that does not know this node's secret.
    Refused,
    /// No node; what was found instead, as the end of a sentence.
    Nobody(String),
}

/// Serves partitions on behalf of the cluster.
pub trait PartitionHost: Send + Sync {
    /// Finds out who responds at an address, over a connection of its own and with a short timeout.
    fn handshake(&self, address: String) -> BoxFuture<'_, HandshakeOutcome>;

    /// Does what must be done before this node joins, or returns why that failed; it is then called
    /// again.
    fn prepare(&self) -> BoxFuture<'_, Result<(), String>>;

    /// Becomes the owner of a partition and serves it, or returns why not; it is then called again.
    fn acquire_partition(
        &self,
        partition: Partition,
    ) -> BoxFuture<'_, Result<Arc<dyn PartitionHandle>, AcquireError>>;
}

/// The reason why a partition was not acquired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireError {
    /// The reason, as a sentence.
    pub why: String,
    /// Whether this node cannot read the partition's data: the partition is then left to other
    /// nodes for a while.
    pub unreadable: bool,
}

/// A partition that this node serves.
pub trait PartitionHandle: Send + Sync {
    /// Finishes the work in flight, gives the partition up, and resolves when that is done.
    fn hand_over(&self) -> BoxFuture<'_, ()>;

    /// Resolves when the partition is no longer served, for whatever reason, with a sentence about
    /// it.
    fn ended(&self) -> BoxFuture<'_, String>;
}
