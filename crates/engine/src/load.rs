//! What a partition does as a whole, in figures: a few for the page, more for one scrape of its
//! metrics. They cost the same with ten groups as with a hundred thousand.

use tidegate_core::Time;
use tidegate_core::model::{Counts, LimitView};
use tidegate_store::Clock;

use crate::engine::Engine;
use crate::error::Result;
use crate::owner::Owner;

/// The state of a partition in a few figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Activity {
    /// Operations by state.
    pub counts: Counts,
    /// Attempts that an upstream throttled, since the engine was opened.
    pub throttled: u64,
    /// Since when the operation waits that has waited longest.
    pub oldest_waiting: Option<Time>,
}

/// The load of a partition.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PartitionLoad {
    /// What it does as a whole.
    pub activity: Activity,
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
    /// Returns the state of the partition in a few figures.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn activity(&self) -> Result<Activity> {
        self.query_owner(|owner| activity(owner, owner.clock.now())).await
    }

    /// Returns the load of the partition.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn load(&self) -> Result<PartitionLoad> {
        self.query_owner(|owner| {
            let now = owner.clock.now();
            PartitionLoad {
                activity: activity(owner, now),
                workers: owner.options.workers,
                busy: owner.calls.count(),
                limits: owner.model.lasting_limits(now).collect(),
                opened_limits: owner.model.opened_limit_count(),
            }
        })
        .await
    }
}

fn activity(owner: &Owner, now: Time) -> Activity {
    Activity {
        counts: owner.model.counts(),
        throttled: owner.throttled,
        oldest_waiting: owner.model.oldest_waiting(now),
    }
}
