//! Nodes that share one store. Each publishes that it is alive, acquires its share of the
//! partitions, hands over partitions that belong to other nodes, and takes over those of dead
//! nodes. Whether an owner may write is decided by the store, by epoch; this crate is not trusted
//! with it. What a partition holds is the host's business: this crate does not know what an
//! operation is.

mod admission;
mod host;
mod join;
mod member;
mod node_record;
mod share;
mod view;

pub use host::{AcquireError, BoxFuture, HandshakeOutcome, PartitionHandle, PartitionHost};
pub use join::{Cluster, Settings};
pub use view::{ClusterView, PartitionRoute, PartitionView};
