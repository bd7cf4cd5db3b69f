//! What the log of submits says about whoever sent them: the same figures for us and for the peer.

use std::time::Duration;

use serde::Serialize;

use super::endpoints::SubmitsByPrompt;
use crate::goal::to_thousandths;
use crate::report::{Latency, Recorder};

/// The submits of a run.
#[derive(Debug, Serialize)]
pub(super) struct SubmitFigures {
    submits: usize,
    /// Accepted submits of a prompt beyond its first.
    pub duplicate_submits: usize,
    /// Submits that an endpoint refused while it failed, and the time that callers spent on them.
    refused_submits: usize,
    time_on_dead_s: f64,
    /// From a submit that was refused to the next one of the same prompt.
    pub failover: Option<Latency>,
}

impl SubmitFigures {
    pub(super) fn of(log: &SubmitsByPrompt, latency: Duration) -> Result<Self, String> {
        let mut failover = Recorder::new()?;
        let (mut submits, mut duplicates, mut refused, mut failovers) = (0, 0, 0, 0);
        for of_prompt in log.values() {
            submits += of_prompt.len();
            let accepted = of_prompt.iter().filter(|submit| submit.is_accepted).count();
            duplicates += accepted.saturating_sub(1);
            refused += of_prompt.len() - accepted;
            for pair in of_prompt.windows(2).filter(|pair| !pair[0].is_accepted) {
                failover.record(pair[1].at - pair[0].at);
                failovers += 1;
            }
        }
        Ok(Self {
            submits,
            duplicate_submits: duplicates,
            refused_submits: refused,
            time_on_dead_s: to_thousandths(latency.as_secs_f64() * refused as f64),
            failover: (failovers > 0).then(|| failover.latency()),
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::super::endpoints::SubmitRecord;
    use super::*;

    #[test]
    fn a_refusal_is_no_duplicate_and_what_follows_it_is_a_failover() {
        let start = Instant::now();
        let submit = |ms, is_accepted| SubmitRecord { at: start + Duration::from_millis(ms), is_accepted };
        let log = SubmitsByPrompt::from([
            ("once".to_owned(), vec![submit(0, true)]),
            ("elsewhere".to_owned(), vec![submit(0, false), submit(30, true)]),
            ("twice".to_owned(), vec![submit(0, true), submit(5, true)]),
        ]);
        let figures = SubmitFigures::of(&log, Duration::from_millis(20)).unwrap();
        assert_eq!((figures.submits, figures.duplicate_submits, figures.refused_submits), (5, 1, 1));
        assert_eq!(figures.time_on_dead_s, 0.02);
        let failover = figures.failover.unwrap();
        assert_eq!((failover.samples(), failover.p99_ms().round()), (1, 30.0));
    }
}
