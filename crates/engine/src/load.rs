//! The load of a partition, for its metrics: everything that one scrape needs, read at once. It
//! costs the same with ten groups as with a hundred thousand.

use tidegate_core::Time;
use tidegate_core::model::{Counts, LimitView};
use tidegate_store::Clock;

use crate::engine::Engine;
use crate::error::Result;

/// The load of a partition.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartitionLoad {
    /// The number of operations in each state.
    pub counts: Counts,
    /// Since when the operation waits that has waited longest.
    pub oldest_waiting: Option<Time>,
    /// How many calls may be in flight at once.
    pub workers: usize,
    /// The calls in flight, or about to be sent.
    pub busy: usize,
    /// The limits, without those that calls opened: there may be any number of those.
    pub limits: Vec<LimitView>,
    /// The number of limits that calls opened.
    pub opened_limits: usize,
}

impl Engine {
    /// Returns the load of the partition.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn load(&self) -> Result<PartitionLoad> {
        self.query_owner(|owner| {
            let now = owner.clock.now();
            PartitionLoad {
                counts: owner.model.counts(),
                oldest_waiting: owner.model.oldest_waiting(now),
                workers: owner.options.workers,
                busy: owner.calls.count(),
                limits: owner.model.lasting_limits(now).collect(),
                opened_limits: owner.model.opened_limit_count(),
            }
        })
        .await
    }
}
