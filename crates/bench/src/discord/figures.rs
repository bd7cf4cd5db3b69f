//! The figures of one contender, as its simulator counted them.

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_sim::discord::stats::DiscordStats;

use super::Scenario;
use crate::goal::to_thousandths;

/// The figures of one contender.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub seconds: f64,
    /// Compared with the shortest time.
    pub ratio: f64,
    /// All calls that arrived, including reads and refused ones.
    calls: u64,
    /// Calls that changed something.
    writes: u64,
    /// Responses with 429.
    pub throttled: u64,
    throttled_by_route: BTreeMap<String, u64>,
    throttled_by_scope: BTreeMap<String, u64>,
    /// Objects that exist twice.
    pub duplicates: u64,
    /// Objects of the template that were not created.
    pub missing: u64,
}

impl Figures {
    pub(super) fn of(stage: &Scenario, seconds: f64, stats: DiscordStats) -> Self {
        let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
        for call in stage.calls.iter().filter(|call| call.makes_something()) {
            *wanted.entry(&call.route).or_default() += 1;
        }
        let made = |route: &str| stats.done_by_route.get(route).copied().unwrap_or_default();
        let missing = wanted.into_iter().map(|(route, count)| count.saturating_sub(made(route))).sum();
        Self {
            seconds: to_thousandths(seconds),
            ratio: to_thousandths(seconds / stage.shortest.seconds),
            calls: stats.all.calls,
            writes: stats.all.writes,
            throttled: stats.all.throttled,
            throttled_by_route: stats.throttled_by_route,
            throttled_by_scope: stats.throttled_by_scope,
            duplicates: stats.all.duplicates,
            missing,
        }
    }
}
