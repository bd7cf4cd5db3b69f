//! The register of live nodes.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::id::Partition;

use crate::{Hints, StoreFuture};

/// What a node registers about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRecord {
    /// Where other nodes reach it; empty when it cannot be reached.
    pub address: String,
    /// Whether it is given nothing more to own, because it has not joined or is about to leave. It
    /// can still be reached.
    pub leaving: bool,
    /// The partitions that it cannot read.
    pub unreadable: BTreeSet<Partition>,
    /// A hash of how it places operations; `None` if an older version registered it.
    pub placement_hash: Option<String>,
}

impl NodeRecord {
    /// The record of a node that can be reached at this address.
    #[must_use]
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: address.into(), ..Self::default() }
    }
}

/// A process that shares the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name, unique in the store.
    pub name: String,
    /// What it has registered about itself.
    pub record: NodeRecord,
    /// When it counts as dead unless it sends a heartbeat.
    pub until: Time,
}

/// The register of nodes.
pub trait Nodes: Hints {
    /// Registers this node as alive for `ttl`.
    fn register(&self, name: &str, record: &NodeRecord, ttl: Duration) -> StoreFuture<'_, Node>;

    /// Extends the registration by `ttl`. `Invalid` when the node was never registered or has been
    /// removed.
    fn heartbeat(&self, name: &str, ttl: Duration) -> StoreFuture<'_, Node>;

    /// Lists the live nodes, by name.
    fn list_nodes(&self) -> StoreFuture<'_, Vec<Node>>;
}
