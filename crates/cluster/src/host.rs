//! What a node does with a partition that is its own. The cluster decides when; the host decides what.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tidegate_core::id::Partition;

/// An answer that comes later.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Who answers where a node should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeOutcome {
    /// This very process.
    ThisProcess,
    /// Another process, which knows this node's secret.
    Node {
        /// Its name.
        name: String,
        /// What places operations differently there, where that can be told: the end of a sentence.
        differs: Option<String>,
    },
    /// Somebody who does not know this node's secret.
    Refused,
    /// Nobody who is a node; what was found instead, as the end of a sentence.
    Nobody(String),
}

/// Takes partitions on.
pub trait PartitionHost: Send + Sync {
    /// Who answers at an address, asked over a line of its own and for a short time only.
    fn handshake(&self, address: String) -> BoxFuture<'_, HandshakeOutcome>;

    /// Does what has to be done before this node takes part, or says why that cannot be done; then it is asked again.
    fn prepare(&self) -> BoxFuture<'_, Result<(), String>>;

    /// Becomes the owner of a partition and serves it, or says why not; then it is asked again.
    fn acquire_partition(
        &self,
        partition: Partition,
    ) -> BoxFuture<'_, Result<Arc<dyn PartitionHandle>, AcquireError>>;
}

/// Why a partition was not taken on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcquireError {
    /// A sentence.
    pub why: String,
    /// Whether what is there cannot be read here: then it is left to the others for a while.
    pub unreadable: bool,
}

/// A partition that this node serves.
pub trait PartitionHandle: Send + Sync {
    /// Finishes what is under way, gives the partition up and resolves when that is done.
    fn hand_over(&self) -> BoxFuture<'_, ()>;

    /// Resolves when it is served no more, for whatever reason, with a sentence about it.
    fn ended(&self) -> BoxFuture<'_, String>;
}
