//! A goal, compared with what was measured. The goals themselves are in their benchmarks.

use serde::Serialize;

/// One goal.
#[derive(Debug, Serialize)]
pub(crate) struct Goal {
    goal: &'static str,
    at_least: Option<f64>,
    at_most: Option<f64>,
    measured: f64,
    met: bool,
}

impl Goal {
    pub(crate) fn at_least(goal: &'static str, least: f64, measured: f64) -> Self {
        let met = measured >= least;
        Self { goal, at_least: Some(least), at_most: None, measured: to_thousandths(measured), met }
    }

    pub(crate) fn at_most(goal: &'static str, most: f64, measured: f64) -> Self {
        let met = measured <= most;
        Self { goal, at_least: None, at_most: Some(most), measured: to_thousandths(measured), met }
    }
}

/// Rounds a figure for display; comparisons use the exact one.
pub(crate) fn to_thousandths(figure: f64) -> f64 {
    (figure * 1_000.0).round() / 1_000.0
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
