//! The archive: operations that have ended, and what calls cost, kept for analysis when the store may have forgotten them. Nothing that runs
//! waits for it, and nothing in it is ever taken up again.

use tidegate_core::OperationId;
use tidegate_core::id::Partition;

use crate::StoreFuture;
use crate::costs::{Cost, CostQuery, CostReport, LimitSnapshot};
use crate::log::StoredEntry;

/// Where ended operations are kept for good.
pub trait Archive: Send + Sync {
    /// Brings the layout up to date. `Unreadable` when it is newer than this program.
    fn migrate(&self) -> StoreFuture<'_, ()>;

    /// Keeps operations that have ended, all or none of them; what has no result is passed over. The same operation
    /// again changes nothing; when it ended again, its latest end counts, in whatever order they come.
    fn save(&self, partition: Partition, ended: Vec<StoredEntry>) -> StoreFuture<'_, ()>;

    /// The operations asked for, in that order. By their ids: a store that lost its last appends gives places out
    /// again, and the archive has what both times were there.
    fn read(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Vec<Option<StoredEntry>>>;

    /// Keeps what calls cost, all or none of it. The same cost again (by its operation, claim and place) changes nothing.
    fn save_costs(&self, costs: Vec<Cost>) -> StoreFuture<'_, ()>;

    /// Keeps how limits of a partition stand, each in place of what was kept of it before, unless that is later.
    fn save_limit_snapshots(
        &self,
        partition: Partition,
        standings: Vec<LimitSnapshot>,
    ) -> StoreFuture<'_, ()>;

    /// What calls cost, by shape.
    fn cost_report(&self, question: CostQuery) -> StoreFuture<'_, CostReport>;

    /// A word for people. Never a password.
    fn describe(&self) -> String;
}
