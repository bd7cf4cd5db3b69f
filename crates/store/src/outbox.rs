//! Operations that an application submitted inside a transaction of its own: they wait in the store
//! until the owner of their partition accepts them. A row is removed by the append that accepts it
//! (`Batch::drained`) or is moved aside, once; this port does not inspect its content.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::Time;
use tidegate_core::id::Partition;

use crate::StoreFuture;
use crate::log::Ownership;

/// The topic of hints that rows are waiting; the hint is the partition number.
pub const TOPIC: &str = "outbox";

/// The number of a row. Numbers increase, and may become visible out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutboxId(pub u64);

/// A waiting row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// Its number.
    pub id: OutboxId,
    /// How long it has waited, by the store's clock.
    pub waited: Duration,
    /// The operation, as it was submitted.
    pub operation: Bytes,
}

/// A row that was moved aside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedOutboxRow {
    /// Its number.
    pub id: OutboxId,
    /// When it was submitted.
    pub at: Time,
    /// When it was moved aside.
    pub refused_at: Time,
    /// The reason, for machines.
    pub code: String,
    /// The reason, for people.
    pub problem: String,
}

/// The status of an outbox, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutboxStatus {
    /// The number of waiting rows, counted up to a bound.
    pub waiting: u64,
    /// When the oldest of them was submitted.
    pub oldest: Option<Time>,
    /// Rows that were moved aside, newest first.
    pub refused: Vec<RefusedOutboxRow>,
}

/// An upstream, as far as the placement of its operations is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedUpstream {
    /// Its name.
    pub name: String,
    /// Whether its operations are spread over partitions by their groups.
    pub is_spread: bool,
}

/// The outbox of a store.
pub trait Outbox: Send + Sync {
    /// Publishes the upstreams a node was started with, so that submitted rows find their
    /// partition.
    fn publish(&self, upstreams: Vec<PublishedUpstream>) -> StoreFuture<'_, ()>;

    /// Returns the rows of a partition with the smallest numbers, in order, at most `most`, and
    /// fewer when they are large.
    fn waiting_rows(&self, partition: Partition, most: usize) -> StoreFuture<'_, Vec<OutboxRow>>;

    /// Moves a row aside that cannot be accepted. `Fenced` when a newer owner exists. Idempotent.
    fn refuse(&self, owner: Ownership, id: OutboxId, code: &str, problem: &str) -> StoreFuture<'_, ()>;

    /// Returns the number of waiting rows, and a page of those that were moved aside: numbers below
    /// `below`, at most `most`.
    fn status(&self, below: Option<OutboxId>, most: usize) -> StoreFuture<'_, OutboxStatus>;
}
