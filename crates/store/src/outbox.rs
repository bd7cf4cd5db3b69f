//! Operations that an application handed in inside a transaction of its own: they wait in the store until the owner of
//! their partition accepts them. A row leaves with the append that accepts it (`Batch::drained`) or is moved aside, once;
//! what it says is not looked at here.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::Time;
use tidegate_core::id::Partition;

use crate::StoreFuture;
use crate::log::Ownership;

/// The topic of hints that something waits; the hint is the number of the partition.
pub const TOPIC: &str = "outbox";

/// Number of a row. They grow, and may become visible out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutboxId(pub u64);

/// A row that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// Its number.
    pub id: OutboxId,
    /// For how long it has waited, by the store's clock.
    pub waited: Duration,
    /// The operation, as it was handed in.
    pub operation: Bytes,
}

/// A row that was moved aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedOutboxRow {
    /// Its number.
    pub id: OutboxId,
    /// When it was handed in.
    pub at: Time,
    /// When it was moved aside.
    pub refused_at: Time,
    /// Why, for machines.
    pub code: String,
    /// Why, for people.
    pub problem: String,
}

/// What an outbox looks like to people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxStatus {
    /// Rows that wait, counted up to a bound.
    pub waiting: u64,
    /// When the oldest of them was handed in.
    pub oldest: Option<Time>,
    /// Rows that were moved aside, newest first.
    pub refused: Vec<RefusedOutboxRow>,
}

/// An upstream, as far as the place of its operations goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedUpstream {
    /// Its name.
    pub name: String,
    /// Whether its operations are spread over partitions by their groups.
    pub is_spread: bool,
}

/// The outbox of a store.
pub trait Outbox: Send + Sync {
    /// Says with which upstreams a node was started, so that what is handed in finds its place.
    fn publish(&self, upstreams: Vec<PublishedUpstream>) -> StoreFuture<'_, ()>;

    /// The rows of a partition with the smallest numbers, in their order, at most so many, and fewer when they are
    /// large.
    fn waiting_rows(&self, partition: Partition, most: usize) -> StoreFuture<'_, Vec<OutboxRow>>;

    /// Moves a row aside that cannot be accepted. `Fenced` when a newer owner exists. Twice is as good as once.
    fn refuse(&self, owner: Ownership, id: OutboxId, code: &str, problem: &str) -> StoreFuture<'_, ()>;

    /// How many wait, and a page of those that were moved aside: below this number, at most so many.
    fn status(&self, below: Option<OutboxId>, most: usize) -> StoreFuture<'_, OutboxStatus>;
}
