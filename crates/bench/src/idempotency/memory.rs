//! Checks whether memory stays flat: a long run of new keys that expire after a moment and are
//! cleaned up, and a long run of replays, with the memory of the process sampled between slices of
//! load.

use serde::Serialize;

use super::Args;
use super::cases::check_items;
use super::load::Load;
use super::serve::{KeyOptions, ServeMode};
use super::wrk::Wrk;
use crate::goal::to_thousandths;
use crate::scratch::Scratch;

/// Seconds of load between two samples.
const SLICE_S: u64 = 2;
/// Minimum number of slices, or there is nothing to compare.
const SLICES_MIN: usize = 8;
/// Seconds that a new key lives: short, so that as much is stored at the end as after the warm-up.
const SHORT_S: u64 = 2;
/// Seconds that a replayed key lives: longer than any run.
const LONG_S: u64 = 7 * 24 * 3_600;

/// One sample.
#[derive(Clone, Copy, Debug, Serialize)]
struct MemorySample {
    requests: u64,
    resident_kib: u64,
}

/// The figures of one load.
#[derive(Debug, Serialize)]
pub(super) struct MemoryReport {
    load: Load,
    requests: u64,
    /// Mean of the second quarter of the samples; the first is the warm-up.
    resident_kib_early: f64,
    /// Mean of the last quarter.
    resident_kib_late: f64,
    grown: f64,
    /// Slope of a line through all samples after the warm-up.
    bytes_per_request: f64,
    looks: Vec<MemorySample>,
}

impl MemoryReport {
    fn of(load: Load, looks: Vec<MemorySample>) -> Self {
        let quarter = looks.len() / 4;
        let (early, late) = (mean(&looks[quarter..2 * quarter]), mean(&looks[looks.len() - quarter..]));
        Self {
            load,
            requests: looks.last().map_or(0, |look| look.requests),
            resident_kib_early: early.round(),
            resident_kib_late: late.round(),
            grown: to_thousandths(late / early),
            bytes_per_request: to_thousandths(slope(&looks[quarter..]) * 1_024.0),
            looks,
        }
    }

    pub(super) const fn load(&self) -> Load {
        self.load
    }

    pub(super) const fn grown(&self) -> f64 {
        self.grown
    }
}

pub(super) async fn measure(args: &Args, wrk: &Wrk) -> Result<Vec<MemoryReport>, String> {
    if args.requests_for_memory == 0 {
        return Ok(Vec::new());
    }
    let mut seen = Vec::new();
    for (load, keep_s) in [(Load::NewKeys, SHORT_S), (Load::Replays, LONG_S)] {
        eprintln!("memory over {} requests: {}", args.requests_for_memory, load.name());
        let looks = watch(args, wrk, load, keep_s).await;
        seen.push(MemoryReport::of(
            load,
            looks.map_err(|error| format!("memory, {}: {error}", load.name()))?,
        ));
    }
    Ok(seen)
}

async fn watch(args: &Args, wrk: &Wrk, load: Load, keep_s: u64) -> Result<Vec<MemorySample>, String> {
    let scratch = Scratch::on_any_store(&args.store)?;
    let keys = KeyOptions { store: scratch.url().to_owned(), keep_s };
    let service = ServeMode::Forgetful(keys).start().await?;
    load.fill(service.addr).await?;
    let (mut looks, mut requests, mut cut) = (Vec::new(), 0, 0);
    while requests < args.requests_for_memory || looks.len() < SLICES_MIN {
        requests += wrk.load(service.addr, load, SLICE_S).await?.requests;
        cut += args.connections as u64;
        looks.push(MemorySample { requests, resident_kib: service.used_kib()? });
    }
    let items = service.items().await?;
    check_items(load, requests, items, items, cut)?;
    Ok(looks)
}

fn mean(looks: &[MemorySample]) -> f64 {
    looks.iter().map(|look| look.resident_kib as f64).sum::<f64>() / looks.len().max(1) as f64
}

/// Returns the KiB per request, by least squares.
fn slope(looks: &[MemorySample]) -> f64 {
    let count = looks.len().max(1) as f64;
    let middle = looks.iter().map(|look| look.requests as f64).sum::<f64>() / count;
    let level = mean(looks);
    let away = |look: &MemorySample| look.requests as f64 - middle;
    let over: f64 = looks.iter().map(|look| away(look) * (look.resident_kib as f64 - level)).sum();
    let under: f64 = looks.iter().map(|look| away(look).powi(2)).sum();
    if under == 0.0 { 0.0 } else { over / under }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(resident_kib: impl Fn(u64) -> u64) -> Vec<MemorySample> {
        (1..=16).map(|n| MemorySample { requests: n * 1_000, resident_kib: resident_kib(n) }).collect()
    }

    #[test]
    fn what_grows_is_told_from_what_is_flat() {
        let flat = MemoryReport::of(Load::Replays, looks(|_| 10_000));
        assert_eq!((flat.grown, flat.bytes_per_request, flat.requests), (1.0, 0.0, 16_000));
        let grows = MemoryReport::of(Load::Replays, looks(|n| 10_000 + n * 1_000));
        assert_eq!(grows.bytes_per_request, 1_024.0, "a KiB for each request");
        assert!(grows.grown > 1.3, "{}", grows.grown);
    }

    /// What a process allocates once, at first, is no growth.
    #[test]
    fn the_warm_up_does_not_count() {
        let warm = MemoryReport::of(Load::NewKeys, looks(|n| if n <= 4 { n * 1_000 } else { 10_000 }));
        assert_eq!((warm.grown, warm.bytes_per_request), (1.0, 0.0));
    }
}
