//! What a node does with a partition that is its own. The cluster decides when; the host decides what.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tidegate_core::id::Partition;

/// An answer that comes later.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Takes partitions on.
pub trait Host: Send + Sync {
    /// Becomes the owner of a partition and serves it. An error is tried again; `Held` means that another node's
    /// lease still runs.
    fn take_on(&self, partition: Partition) -> Later<'_, tidegate_store::Result<Arc<dyn Tenant>>>;
}

/// A partition that this node serves.
pub trait Tenant: Send + Sync {
    /// Finishes what is under way, gives the partition up and resolves when that is done.
    fn hand_over(&self) -> Later<'_, ()>;

    /// Resolves when it is served no more, for whatever reason, with a sentence about it.
    fn ended(&self) -> Later<'_, String>;
}
