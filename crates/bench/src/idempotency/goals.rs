//! The goals, compared with what was measured. A goal that this run cannot judge is not in the
//! list.

use serde::Serialize;

use super::cases::{CaseReport, Implementation};
use super::half_load::HalfLoadReport;
use super::load::Load;
use super::memory::MemoryReport;
use crate::goal::to_thousandths;

/// Compared with a bare request, in time at saturation.
const REPLAY_MAX: f64 = 1.3;
/// Compared with a request through the middleware with SET NX.
const NEW_KEY_MAX: f64 = 1.5;
/// Milliseconds at the 99th percentile.
const PROXY_ADDS_MAX: f64 = 1.0;
/// Compared with the memory after the warm-up.
const MEMORY_MAX: f64 = 1.05;

/// One goal.
#[derive(Debug, Serialize)]
pub(super) struct Goal {
    goal: String,
    at_most: f64,
    measured: f64,
    met: bool,
}

impl Goal {
    fn new(goal: String, at_most: f64, measured: f64) -> Self {
        Self { goal, at_most, measured: to_thousandths(measured), met: measured <= at_most }
    }
}

pub(super) fn evaluate(
    cases: &[CaseReport],
    half_load: &[HalfLoadReport],
    memory: &[MemoryReport],
) -> Vec<Goal> {
    let cost = |one: (Implementation, Load), of: (Implementation, Load)| {
        let (one, of) = (CaseReport::per_s(cases, one.0, one.1)?, CaseReport::per_s(cases, of.0, of.1)?);
        Some(of / one)
    };
    let mut goals = Vec::new();
    let bare = (Implementation::Bare, Load::NoKey);
    if let Some(cost) = cost((Implementation::Layer, Load::Replays), bare) {
        goals.push(Goal::new("the cost of a replay, of a bare request".into(), REPLAY_MAX, cost));
    }
    if let Some(cost) = cost((Implementation::Layer, Load::NewKeys), (Implementation::SetNx, Load::NewKeys)) {
        let goal = "the cost of a new key, of one with SET NX".into();
        goals.push(Goal::new(goal, NEW_KEY_MAX, cost));
    }
    for half in half_load {
        let goal = format!("what the proxy adds at p99 at half load, in ms: {}", half.load().name());
        goals.push(Goal::new(goal, PROXY_ADDS_MAX, half.added_p99_ms()));
    }
    for memory in memory {
        let goal = format!("memory at the end, of that after the warm-up: {}", memory.load().name());
        goals.push(Goal::new(goal, MEMORY_MAX, memory.grown()));
    }
    goals
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_up_to_its_bound() {
        assert!(Goal::new("g".into(), 1.3, 1.3).met);
        assert!(!Goal::new("g".into(), 1.3, 1.300_1).met, "what is rounded is only what is shown");
    }
}
