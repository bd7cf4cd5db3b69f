//! The goals, and what was measured with the busy shop held against them.

use serde::Serialize;

use super::ours::Run;
use super::to_thousandths;

const USED_MIN: f64 = 0.98;
const THROTTLED_MAX: f64 = 0.0;
const P99_TO_MEAN_MAX: f64 = 2.0;
/// Nothing, as far as two runs can be told apart.
const BUSY_ADDS_MAX: f64 = 1.05;

/// One goal.
#[derive(Debug, Serialize)]
pub(super) struct Goal {
    goal: &'static str,
    at_least: Option<f64>,
    at_most: Option<f64>,
    measured: f64,
    met: bool,
}

impl Goal {
    fn at_least(goal: &'static str, least: f64, measured: f64) -> Self {
        let met = measured >= least;
        Self { goal, at_least: Some(least), at_most: None, measured: to_thousandths(measured), met }
    }

    fn at_most(goal: &'static str, most: f64, measured: f64) -> Self {
        let met = measured <= most;
        Self { goal, at_least: None, at_most: Some(most), measured: to_thousandths(measured), met }
    }
}

pub(super) fn held_against(run: &Run, busy_shop_adds: f64) -> Vec<Goal> {
    vec![
        Goal::at_least("points used, of those that came back", USED_MIN, run.used.used),
        Goal::at_most(
            "throttled answers after the first learned one",
            THROTTLED_MAX,
            run.throttled_after_learned as f64,
        ),
        Goal::at_most(
            "start delay at p99 over the shops, of the mean",
            P99_TO_MEAN_MAX,
            run.start_delays.p99_to_mean,
        ),
        Goal::at_most(
            "start delay of the others, of what it is without the busy shop",
            BUSY_ADDS_MAX,
            busy_shop_adds,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_up_to_its_bound() {
        assert!(Goal::at_most("g", 2.0, 2.0).met && !Goal::at_most("g", 2.0, 2.000_1).met);
        assert!(Goal::at_least("g", 0.98, 0.98).met && !Goal::at_least("g", 0.98, 0.979_9).met);
        assert!(!Goal::at_most("g", 2.0, f64::NAN).met, "what was not measured is not met");
    }
}
