//! The shortest time in which calls can be made, whoever makes them: from the limits, the latency and what each call needs.
//! Any order will do, and calls of different routes may overlap. It is a bound that nobody gets below.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tidegate_sim::discord::limits::{GLOBAL, Limits};
use tidegate_sim::discord::window::Figure;

use super::calls::Call;
use super::schedule;
use crate::goal::to_thousandths;

/// The time, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Shortest {
    pub seconds: f64,
    /// The limit that takes longest.
    limit: String,
    /// Calls that it counts.
    calls: usize,
    /// Windows that must be over before the last of them.
    windows: u64,
    /// What somebody takes who knows everything beforehand and always sends what has most behind it. When this is the same,
    /// the bound can be reached.
    schedule_s: f64,
}

/// Calls of one limit.
struct Counted<'a> {
    limit: &'a str,
    figure: Figure,
    calls: Vec<usize>,
}

pub(super) fn of(calls: &[Call], limits: &Limits, latency: Duration) -> Shortest {
    let (before, behind) = (before(calls, latency), behind(calls, latency));
    let mut found = (Duration::ZERO, String::new(), 0, 0);
    for Counted { limit, figure, calls } in counted(calls, limits) {
        // Whatever the order: of those that cannot go sooner, and have as much behind them, some one is the last.
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
    let schedule_s = to_thousandths(schedule::greedy(calls, &behind, limits, latency).as_secs_f64());
    Shortest { seconds: to_thousandths(time.as_secs_f64()), limit, calls: of, windows, schedule_s }
}

/// How soon each can be sent, if nothing but what it needs is waited for.
fn before(calls: &[Call], latency: Duration) -> Vec<Duration> {
    let mut before: Vec<Duration> = Vec::with_capacity(calls.len());
    for call in calls {
        let answered = |at: &usize| before.get(*at).map_or(Duration::ZERO, |sent| *sent + latency);
        before.push(call.after.iter().map(answered).max().unwrap_or_default());
    }
    before
}

/// How long it takes at least from when each is sent until nothing is left to do of what needs it.
fn behind(calls: &[Call], latency: Duration) -> Vec<Duration> {
    let mut behind = vec![latency; calls.len()];
    for (at, call) in calls.iter().enumerate().rev() {
        let with_this = behind[at] + latency;
        for need in &call.after {
            behind[*need] = behind[*need].max(with_this);
        }
    }
    behind
}

fn counted<'a>(calls: &'a [Call], limits: &Limits) -> Vec<Counted<'a>> {
    let mut by_limit: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, call) in calls.iter().enumerate() {
        by_limit.entry((GLOBAL, "")).or_default().push(at);
        if let Some((limit, whose)) = &call.limit {
            by_limit.entry((limit, whose)).or_default().push(at);
        }
    }
    let counted = |((limit, _), calls)| Counted { limit, figure: limits.of(limit), calls };
    by_limit.into_iter().map(counted).collect()
}

fn distinct(calls: &[usize], times: &[Duration]) -> Vec<Duration> {
    let mut distinct: Vec<Duration> = calls.iter().map(|at| times[*at]).collect();
    distinct.sort_unstable();
    distinct.dedup();
    distinct
}
