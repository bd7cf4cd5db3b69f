//! Latencies and figures for people to read.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Latencies in milliseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Latency {
    p50_ms: f64,
    p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
    samples: u64,
}

impl Latency {
    pub(crate) const fn p99_ms(&self) -> f64 {
        self.p99_ms
    }

    pub(crate) const fn samples(&self) -> u64 {
        self.samples
    }
}

/// A recorder of latencies between a microsecond and a minute.
#[derive(Clone, Debug)]
pub(crate) struct Recorder(Histogram<u64>);

impl Recorder {
    pub(crate) fn new() -> Result<Self, String> {
        Histogram::new_with_bounds(1, 60_000_000, 3).map(Self).map_err(|error| error.to_string())
    }

    pub(crate) fn record(&mut self, took: Duration) {
        self.0.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1));
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        // Both have the same bounds.
        let _ = self.0.add(&other.0);
    }

    /// The recorded values in microseconds, and how many there are of each.
    pub(crate) fn counts(&self) -> Vec<(u64, u64)> {
        self.0.iter_recorded().map(|value| (value.value_iterated_to(), value.count_at_value())).collect()
    }

    /// Adds what another process recorded.
    pub(crate) fn add_counts(&mut self, counts: &[(u64, u64)]) {
        for (value, count) in counts {
            self.0.saturating_record_n(*value, *count);
        }
    }

    pub(crate) fn latency(&self) -> Latency {
        let at = |q: f64| self.0.value_at_quantile(q) as f64 / 1_000.0;
        Latency {
            p50_ms: at(0.5),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: self.0.max() as f64 / 1_000.0,
            samples: self.0.len(),
        }
    }
}

/// Returns the median of some figures: the middle one, or the mean of the two in the middle.
pub(crate) fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    match (figures.len() / 2, figures.len() % 2) {
        (0, 0) => 0.0,
        (half, 0) => f64::midpoint(figures[half - 1], figures[half]),
        (half, _) => figures[half],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_process_recorded_is_the_same() {
        let (mut one, mut other) = (Recorder::new().unwrap(), Recorder::new().unwrap());
        for ms in [1, 1, 7, 900] {
            one.record(Duration::from_millis(ms));
        }
        other.add_counts(&one.counts());
        assert_eq!(format!("{:?}", other.latency()), format!("{:?}", one.latency()));
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0].into_iter()), 2.5);
        assert_eq!(median(std::iter::empty()), 0.0);
    }
}
