//! The archive: ended operations and call costs, kept for analysis after the store may have removed
//! them. Nothing that runs waits for it, and nothing in it is ever executed again.

use std::sync::Arc;

use tidegate_core::id::Partition;
use tidegate_core::{OperationId, Time};

use crate::StoreFuture;
use crate::costs::{Cost, CostQuery, CostReport, LimitSnapshot};
use crate::log::StoredEntry;

/// Permanent storage for ended operations.
pub trait Archive: Send + Sync {
    /// Migrates the layout to the current version. `Unreadable` when it is newer than this program.
    fn migrate(&self) -> StoreFuture<'_, ()>;

    /// Saves ended operations, all or nothing; operations without a result are skipped. Saving the
    /// same operation again changes nothing; when it ended again, its latest end counts, in
    /// whatever order they arrive.
    fn save(&self, partition: Partition, ended: Vec<StoredEntry>) -> StoreFuture<'_, ()>;

    /// Returns the requested operations, in that order. They are identified by id: a store that
    /// lost its last appends reuses sequence numbers, and the archive holds both operations.
    fn read(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Vec<Option<StoredEntry>>>;

    /// Saves call costs, all or nothing. The same cost again (by its operation, claim and position)
    /// changes nothing.
    fn save_costs(&self, costs: Vec<Cost>) -> StoreFuture<'_, ()>;

    /// Saves the state of a partition's limits. Each replaces the saved state of that limit, unless
    /// that is later.
    fn save_limit_snapshots(
        &self,
        partition: Partition,
        standings: Vec<LimitSnapshot>,
    ) -> StoreFuture<'_, ()>;

    /// Removes the saved state of a partition's limits that are gone: of those with these names,
    /// and of all whose state was last saved before `before`.
    fn remove_limit_snapshots(
        &self,
        partition: Partition,
        names: Vec<Arc<str>>,
        before: Time,
    ) -> StoreFuture<'_, ()>;

    /// Returns call costs by shape.
    fn cost_report(&self, question: CostQuery) -> StoreFuture<'_, CostReport>;

    /// A description for people. Never contains a password.
    fn describe(&self) -> String;
}
