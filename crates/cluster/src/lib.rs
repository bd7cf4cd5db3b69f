//! Nodes that share one store. Each says that it is there, takes on its share of the partitions, hands over what is
//! another's, and takes over what a dead node leaves. Whether an owner may write is the store's decision, by epoch;
//! nothing here is trusted with it. What a partition holds is the host's business: this crate never knows what an
//! operation is.

mod host;
mod join;
mod member;
mod notice;
mod place;
mod share;
mod standing;
mod view;

pub use host::{Answered, Declined, Host, Later, Tenant};
pub use join::{Cluster, Settings};
pub use place::place;
pub use view::{PartitionView, Route, View};
