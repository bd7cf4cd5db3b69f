//! The suites of a `Log`: an append is all or nothing, durable once it returns, fenced, and
//! replayed exactly.

mod append;
mod attempts;
mod costs;
mod fence;
mod list;
mod mirror;
mod snapshot;
mod stored;
mod sweep;

pub use append::{
    an_append_is_all_or_nothing, an_append_is_durable_when_answered,
    an_append_stands_only_on_the_one_it_follows, an_append_takes_out_of_the_outbox_only_what_is_there,
    appends_are_numbered_one_by_one, half_a_refused_batch_is_not_kept, what_was_appended_comes_back_exactly,
};
pub use attempts::{
    a_refused_append_keeps_no_attempts, attempts_are_kept_with_their_append,
    attempts_go_with_their_operation, the_last_row_of_an_attempt_stands,
};
pub use costs::{
    a_refused_append_keeps_no_costs, costs_are_all_or_nothing, costs_are_kept_with_their_append,
    costs_go_when_their_time_is_up, limits_are_kept_as_they_stand, limits_that_are_gone_are_removed,
};
pub use fence::{
    an_old_epoch_changes_nothing, epochs_grow_over_restarts, one_owner_at_a_time,
    owners_are_listed_while_they_own, partitions_are_apart, renewing_keeps_the_partition,
};
pub use list::{a_list_filters, a_list_survives_odd_cursors, pages_cover_everything_once};
pub use snapshot::{
    a_snapshot_is_all_or_nothing, a_snapshot_replaces_what_came_before, numbers_go_on_after_a_snapshot,
};
pub use stored::{
    bodies_come_back_byte_for_byte, reopened_operations_have_no_result, the_last_result_stands,
};
pub use sweep::{a_sweep_is_bounded, a_sweep_takes_only_what_ended_before};

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_store::Store;
use tidegate_store::log::{Batch, Lsn, Ownership};

use crate::harness::{Backend, ExpectValue};

/// The partition most suites use.
const PARTITION: Partition = 3;
/// How long an owner holds a partition in these suites.
const TTL: Duration = Duration::from_secs(10);

/// A store, and the right to append to one partition of it.
struct OwnedPartition {
    store: Arc<dyn Store>,
    owner: Ownership,
}

impl OwnedPartition {
    /// Opens the store and acquires the partition, after any earlier owner's lease.
    async fn open(backend: &dyn Backend, partition: Partition) -> Self {
        backend.clock().advance(TTL * 2);
        let store = backend.open().await.expect_value("open the store");
        let owner = store.acquire_partition(partition, "suite", TTL).await.expect_value("own the partition");
        Self { store, owner }
    }

    async fn append(&self, batch: Batch) -> Lsn {
        self.store.append(self.owner, batch).await.expect_value("append a batch")
    }
}
