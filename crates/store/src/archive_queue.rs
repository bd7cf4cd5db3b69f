//! The archive queue: operations that ended and are not in the archive yet, oldest first. `append`
//! itself writes it, in the same step, so no operation can end without being queued; a sweep keeps
//! what is still queued. This port does not know who copies the entries, or where to.

use tidegate_core::id::Partition;
use tidegate_core::{Seq, Time};

use crate::StoreFuture;
use crate::costs::Cost;
use crate::log::{Lsn, Ownership};

/// The head of a partition's archive queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveBatch {
    /// Ended operations, in the order of the appends that ended them. An operation that was rerun
    /// may occur twice, or be running now.
    pub seqs: Vec<Seq>,
    /// The last of these appends: pass it to `ack_archived` once all of them are saved.
    pub upto: Lsn,
    /// When the oldest queued operation ended.
    pub oldest: Time,
    /// The total number of queued operations.
    pub waiting: u64,
}

/// The head of the queue of call costs that are not in the archive yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostBatch {
    /// Costs, in the order of their appends.
    pub costs: Vec<Cost>,
    /// The last of these appends: pass it to `ack_costs` once all of them are saved.
    pub upto: Lsn,
}

/// Ended operations and call costs that wait to be archived.
pub trait ArchiveQueue: Send + Sync {
    /// Returns the oldest entries: whole appends, until there are at least `most`. `None` when the
    /// queue is empty.
    fn next_ended(&self, partition: Partition, most: usize) -> StoreFuture<'_, Option<ArchiveBatch>>;

    /// Removes every entry up to and including this append; idempotent. `Fenced` when a newer owner
    /// exists.
    fn ack_archived(&self, owner: Ownership, upto: Lsn) -> StoreFuture<'_, ()>;

    /// Returns the oldest costs: whole appends, until there are at least `most`. `None` when the
    /// queue is empty.
    fn next_costs(&self, partition: Partition, most: usize) -> StoreFuture<'_, Option<CostBatch>>;

    /// Removes every cost up to and including this append; idempotent. `Fenced` when a newer owner
    /// exists.
    fn ack_costs(&self, owner: Ownership, upto: Lsn) -> StoreFuture<'_, ()>;
}
