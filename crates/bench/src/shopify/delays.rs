//! Start delays: from the moment an operation is submitted to the one at which its shop has been
//! called. Calls of a shop are counted, not identified: with the order kept the first one called is
//! the first one submitted, and the mean of a shop is exact whatever the order.

use std::time::Duration;

use serde::Serialize;

use super::shops::Shop;
use crate::goal::to_thousandths;
use crate::report::{Latency, Recorder};

/// The delays of one shop.
#[derive(Clone, Copy, Debug, Default)]
struct DelaySum {
    total: Duration,
    count: u32,
}

/// All recorded delays.
#[derive(Debug)]
pub(super) struct DelayRecorder {
    shops: Vec<DelaySum>,
    all: Recorder,
}

/// The summary: of the shops that are not busy, each with its mean.
#[derive(Debug, Serialize)]
pub(super) struct StartDelays {
    /// The mean over the shops.
    pub mean_ms: f64,
    /// The 99th percentile over the shops; of a hundred or fewer that is the longest.
    p99_ms: f64,
    /// The 99th percentile divided by the mean.
    pub p99_to_mean: f64,
    least_ms: f64,
    /// Delays of single operations.
    operations: Latency,
    by_plan: Vec<PlanDelay>,
}

#[derive(Debug, Serialize)]
struct PlanDelay {
    restore_per_s: u64,
    mean_ms: f64,
}

impl DelayRecorder {
    pub(super) fn new(shops: usize) -> Result<Self, String> {
        Ok(Self { shops: vec![DelaySum::default(); shops], all: Recorder::new()? })
    }

    pub(super) fn record(&mut self, shop: &Shop, delay: Duration) {
        let Some(sum) = self.shops.get_mut(shop.number) else { return };
        sum.total += delay;
        sum.count += 1;
        if !shop.is_busy {
            self.all.record(delay);
        }
    }

    fn mean_ms(&self, shop: &Shop) -> Option<f64> {
        let sum = self.shops.get(shop.number)?;
        (sum.count > 0).then(|| sum.total.as_secs_f64() * 1_000.0 / f64::from(sum.count))
    }

    /// Returns the mean of the busy shop, if it had work.
    pub(super) fn busy_mean_ms(&self, shops: &[Shop]) -> Option<f64> {
        shops.iter().find(|shop| shop.is_busy).and_then(|shop| self.mean_ms(shop)).map(to_thousandths)
    }

    /// Summarizes the other shops.
    pub(super) fn summarize(&self, shops: &[Shop]) -> Result<StartDelays, String> {
        let mut means = Vec::new();
        for shop in shops.iter().filter(|shop| !shop.is_busy) {
            let mean = self.mean_ms(shop);
            let mean = mean.ok_or_else(|| format!("{} was not called while it was measured", shop.name))?;
            means.push((shop.restore_per_s, mean));
        }
        let mut sorted: Vec<f64> = means.iter().map(|(_, mean)| *mean).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (mean, p99) = (mean(&sorted), at(&sorted, 0.99));
        let mut plans: Vec<u64> = means.iter().map(|(plan, _)| *plan).collect();
        plans.sort_unstable();
        plans.dedup();
        let of_plan = |restore_per_s: u64| {
            let of: Vec<f64> =
                means.iter().filter(|(plan, _)| *plan == restore_per_s).map(|(_, mean)| *mean).collect();
            PlanDelay { restore_per_s, mean_ms: to_thousandths(self::mean(&of)) }
        };
        Ok(StartDelays {
            mean_ms: to_thousandths(mean),
            p99_ms: to_thousandths(p99),
            p99_to_mean: to_thousandths(p99 / mean),
            least_ms: to_thousandths(sorted.first().copied().unwrap_or_default()),
            operations: self.all.latency(),
            by_plan: plans.into_iter().map(of_plan).collect(),
        })
    }
}

fn mean(figures: &[f64]) -> f64 {
    figures.iter().sum::<f64>() / figures.len().max(1) as f64
}

/// Returns the smallest value that this share of them does not exceed.
fn at(sorted: &[f64], quantile: f64) -> f64 {
    let rank = (sorted.len() as f64 * quantile).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::shops::make_shops;
    use super::*;

    /// One shop that waits longer than the others shows, and the busy one does not count against
    /// them.
    #[test]
    fn one_shop_that_waits_shows_in_the_figure() {
        let shops = make_shops(50);
        let mut delays = DelayRecorder::new(50).unwrap();
        for shop in &shops {
            let delay = if shop.number == 7 { 500 } else { 100 };
            delays.record(shop, Duration::from_millis(if shop.is_busy { 60_000 } else { delay }));
        }
        let told = delays.summarize(&shops).unwrap();
        assert_eq!((told.p99_ms, told.least_ms), (500.0, 100.0));
        assert!((told.mean_ms - (48.0 * 100.0 + 500.0) / 49.0).abs() < 0.001, "{}", told.mean_ms);
        assert_eq!(delays.busy_mean_ms(&shops), Some(60_000.0));
    }

    #[test]
    fn a_shop_that_was_never_called_is_an_error_and_no_figure() {
        let shops = make_shops(2);
        let mut delays = DelayRecorder::new(2).unwrap();
        delays.record(&shops[0], Duration::from_millis(1));
        assert_eq!(delays.summarize(&shops).unwrap_err(), "shop-1 was not called while it was measured");
    }
}
