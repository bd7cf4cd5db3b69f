//! Nodes that share one store. Each says that it is there, takes on its share of the partitions, hands over what is
//! another's, and takes over what a dead node leaves. Whether an owner may write is the store's decision, by epoch;
//! nothing here is trusted with it. What a partition holds is the host's business: this crate never knows what an
//! operation is.

mod admission;
mod host;
mod join;
mod member;
mod node_record;
mod placement;
mod share;
mod view;

pub use host::{AcquireError, BoxFuture, HandshakeOutcome, PartitionHandle, PartitionHost};
pub use join::{Cluster, Settings};
pub use placement::partition_of;
pub use view::{ClusterView, PartitionRoute, PartitionView};
