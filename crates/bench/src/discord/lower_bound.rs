//! The shortest time in which the calls can be made by any client: from the limits, the latency and
//! the dependencies of each call. Any order is allowed, and calls of different routes may overlap.
//! No client can be faster.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tidegate_sim::discord::limits::{DiscordLimits, GLOBAL};
use tidegate_sim::discord::window::WindowLimit;

use super::calls::Call;
use super::schedule;
use crate::goal::to_thousandths;

/// The bound, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct LowerBound {
    pub seconds: f64,
    /// The limit that takes longest.
    limit: String,
    /// Calls that it counts.
    calls: usize,
    /// Windows that must be over before the last of them.
    windows: u64,
    /// The time of a scheduler that knows everything beforehand and always sends the call with the
    /// longest remaining chain. When this is the same, the bound can be reached.
    schedule_s: f64,
}

/// Calls of one limit.
struct LimitCalls<'a> {
    limit: &'a str,
    figure: WindowLimit,
    calls: Vec<usize>,
}

pub(super) fn lower_bound(calls: &[Call], limits: &DiscordLimits, latency: Duration) -> LowerBound {
    let (before, behind) = (earliest_starts(calls, latency), remaining_times(calls, latency));
    let mut found = (Duration::ZERO, String::new(), 0, 0);
    for LimitCalls { limit, figure, calls } in calls_by_limit(calls, limits) {
        // Whatever the order: of those that cannot go sooner, and have as much after them, one is
        // the last.
        for soonest in distinct(&calls, &before) {
            for least in distinct(&calls, &behind) {
                let of = calls.iter().filter(|at| before[**at] >= soonest && behind[**at] >= least).count();
                let windows = (of as u64).saturating_sub(1) / figure.calls.max(1);
                let waits = u32::try_from(windows).map_or(Duration::MAX, |n| figure.window.saturating_mul(n));
                let time = soonest.saturating_add(waits).saturating_add(least);
                if of > 0 && time > found.0 {
                    found = (time, limit.to_owned(), of, windows);
                }
            }
        }
    }
    let (time, limit, of, windows) = found;
    let schedule_s = to_thousandths(schedule::greedy_duration(calls, &behind, limits, latency).as_secs_f64());
    LowerBound { seconds: to_thousandths(time.as_secs_f64()), limit, calls: of, windows, schedule_s }
}

/// Returns how soon each call can be sent if it waits for nothing but its dependencies.
fn earliest_starts(calls: &[Call], latency: Duration) -> Vec<Duration> {
    let mut before: Vec<Duration> = Vec::with_capacity(calls.len());
    for call in calls {
        let answered = |at: &usize| before.get(*at).map_or(Duration::ZERO, |sent| *sent + latency);
        before.push(call.after.iter().map(answered).max().unwrap_or_default());
    }
    before
}

/// Returns the minimum time from sending each call until everything that depends on it is done.
fn remaining_times(calls: &[Call], latency: Duration) -> Vec<Duration> {
    let mut behind = vec![latency; calls.len()];
    for (at, call) in calls.iter().enumerate().rev() {
        let with_this = behind[at] + latency;
        for need in &call.after {
            behind[*need] = behind[*need].max(with_this);
        }
    }
    behind
}

fn calls_by_limit<'a>(calls: &'a [Call], limits: &DiscordLimits) -> Vec<LimitCalls<'a>> {
    let mut by_limit: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        by_limit.entry((GLOBAL, "")).or_default().push(at);
        if let Some((limit, whose)) = &call.limit {
            by_limit.entry((limit, whose)).or_default().push(at);
        }
    }
    let counted = |((limit, _), calls)| LimitCalls { limit, figure: limits.of(limit), calls };
    by_limit.into_iter().map(counted).collect()
}

fn distinct(calls: &[usize], times: &[Duration]) -> Vec<Duration> {
    let mut distinct: Vec<Duration> = calls.iter().map(|at| times[*at]).collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}
