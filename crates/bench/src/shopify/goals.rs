//! The goals, compared with what was measured with the busy shop.

use super::node_run::Run;
use crate::goal::Goal;

const USED_MIN: f64 = 0.98;
const THROTTLED_MAX: f64 = 0.0;
const P99_TO_MEAN_MAX: f64 = 2.0;
/// Nothing, as far as two runs can be told apart.
const BUSY_ADDS_MAX: f64 = 1.05;

pub(super) fn evaluate(run: &Run, busy_shop_adds: f64) -> Vec<Goal> {
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
