//! How long calls took lately, so that estimates count with this bot's own way to Discord. A call
//! that waited for a limit is among them: of several, the median is one that did not.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The calls that are remembered.
const REMEMBERED: usize = 31;
/// How long a call takes as long as none was made.
const ASSUMED: Duration = Duration::from_millis(100);

/// How long the last calls took.
#[derive(Debug, Default)]
pub(super) struct CallTimes(Mutex<VecDeque<Duration>>);

impl CallTimes {
    /// Remembers a call.
    pub(super) fn record(&self, took: Duration) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if times.len() >= REMEMBERED {
            times.pop_front();
        }
        times.push_back(took);
    }

    /// Returns how long a call takes that waits for no limit, in milliseconds.
    pub(super) fn typical_ms(&self) -> u64 {
        let mut times = Vec::from(self.0.lock().unwrap_or_else(PoisonError::into_inner).clone());
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or(ASSUMED);
        u64::try_from(median.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_long_waits_change_nothing() {
        let times = CallTimes::default();
        assert_eq!(times.typical_ms(), 100);
        for n in 0..2 * REMEMBERED {
            times.record(Duration::from_millis(if n % 4 == 0 { 15_000 } else { 30 }));
        }
        assert_eq!(times.typical_ms(), 30);
    }
}
