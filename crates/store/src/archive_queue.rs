//! The trail: which operations ended and are not in the archive yet, oldest first. It is written by `append` itself, in
//! the same step, so nothing can end without being noted; a sweep leaves alone what is still on it. Who copies what is
//! noted, and where to, is not known here.

use tidegate_core::id::Partition;
use tidegate_core::{Seq, Time};

use crate::StoreFuture;
use crate::costs::Cost;
use crate::log::{Lsn, Ownership};

/// The beginning of a partition's trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveBatch {
    /// What ended, by the appends that said so. One that ran again may be there twice, or run now.
    pub seqs: Vec<Seq>,
    /// The last of these appends: what `trodden` is told once all of them are kept.
    pub upto: Lsn,
    /// When the first of all that are noted ended.
    pub oldest: Time,
    /// How many are noted in all.
    pub waiting: u64,
}

/// The beginning of what calls cost and is not in the archive yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostBatch {
    /// Costs, by the appends that said them.
    pub costs: Vec<Cost>,
    /// The last of these appends: what `booked` is told once all of them are kept.
    pub upto: Lsn,
}

/// What ended and waits to be archived.
pub trait ArchiveQueue: Send + Sync {
    /// The oldest that are noted: whole appends, until there are at least `most`. `None` when nothing waits.
    fn next_ended(&self, partition: Partition, most: usize) -> StoreFuture<'_, Option<ArchiveBatch>>;

    /// Takes every note up to and including this append off the trail; twice is as good as once. `Fenced` when a newer
    /// owner exists.
    fn ack_archived(&self, owner: Ownership, upto: Lsn) -> StoreFuture<'_, ()>;

    /// The oldest costs that are noted: whole appends, until there are at least `most`. `None` when nothing waits.
    fn next_costs(&self, partition: Partition, most: usize) -> StoreFuture<'_, Option<CostBatch>>;

    /// Takes every note of costs up to and including this append off; twice is as good as once. `Fenced` when a newer
    /// owner exists.
    fn ack_costs(&self, owner: Ownership, upto: Lsn) -> StoreFuture<'_, ()>;
}
