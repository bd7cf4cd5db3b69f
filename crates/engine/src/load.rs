//! What a partition does as a whole, in figures: a few for the page, more for one scrape of its
//! metrics. They cost the same with ten groups as with a hundred thousand.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate_core::Time;
use tidegate_core::model::{Counts, KindLoad, LimitView};
use tidegate_store::Clock;

use crate::engine::Engine;
use crate::error::Result;
use crate::owner::Owner;

/// The most limits whose closings are counted.
const CLOSINGS_MAX: usize = 1_024;

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
    /// How often throttled calls closed each limit, since the engine was opened.
    pub closings: LimitClosings,
}

/// How often each limit was closed, of a bounded number of limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitClosings(BTreeMap<Arc<str>, u64>);

impl LimitClosings {
    /// How often a limit was closed.
    #[must_use]
    pub fn of(&self, limit: &str) -> u64 {
        self.0.get(limit).copied().unwrap_or_default()
    }

    /// Counts limits that were closed. One more than there is room for is not counted.
    pub(crate) fn count(&mut self, closed: Vec<Arc<str>>) {
        for limit in closed {
            if self.0.len() < CLOSINGS_MAX || self.0.contains_key(&limit) {
                *self.0.entry(limit).or_default() += 1;
            }
        }
    }
}

impl Engine {
    /// Returns the state of the partition in a few figures.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn activity(&self) -> Result<Activity> {
        self.query_owner(|owner| activity(owner, owner.clock.now())).await
    }

    /// Returns the work of each kind, and when a remote worker last asked for it, as far as this
    /// engine knows.
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn kinds(&self) -> Result<Vec<(KindLoad, Option<Time>)>> {
        self.query_owner(|owner| {
            let with_demand = |load: KindLoad| {
                let asked = owner.asked.get(&load.kind).copied();
                (load, asked)
            };
            owner.model.kind_loads().into_iter().map(with_demand).collect()
        })
        .await
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
                closings: owner.closings.clone(),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closings_are_counted_for_a_bounded_number_of_limits() {
        let mut closings = LimitClosings::default();
        closings.count(vec!["a".into(), "b".into(), "a".into()]);
        assert_eq!([closings.of("a"), closings.of("b"), closings.of("c")], [2, 1, 0]);
        closings.count((0..CLOSINGS_MAX).map(|number| format!("n{number}").into()).collect());
        closings.count(vec!["a".into(), "late".into()]);
        assert_eq!((closings.0.len(), closings.of("a"), closings.of("late")), (CLOSINGS_MAX, 3, 0));
    }
}
