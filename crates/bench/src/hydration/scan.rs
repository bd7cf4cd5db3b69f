//! A scan of unknown ids: each is read once and is not there. What is remembered of them is
//! bounded, so memory must not grow with their number.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::readers::{Contender, EntityReader, ReadOutcome};
use super::source::{CountingSource, SourceBehavior};
use crate::goal::to_thousandths;
use crate::machine;

/// Readers at once.
const READERS: usize = 64;
/// Samples of memory; the first two are the warm-up.
pub(super) const SAMPLES: usize = 10;

/// The figures of one contender.
#[derive(Debug, Serialize)]
pub(super) struct ScanFigure {
    pub(super) contender: Contender,
    ids: usize,
    questions: usize,
    not_found: usize,
    missed: usize,
    ids_per_s: f64,
    /// Resident memory after each tenth, in KiB.
    resident_kib: Vec<u64>,
    /// The last sample to the second.
    pub(super) grown: f64,
}

pub(super) async fn measure(contender: Contender, ids: usize) -> Result<ScanFigure, String> {
    let source = CountingSource::new(SourceBehavior::Answers);
    let reader = EntityReader::start(contender, &source).await?;
    let (next, not_found) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut resident_kib = Vec::with_capacity(SAMPLES);
    let start = Instant::now();
    for sample in 1..=SAMPLES {
        let end = ids / SAMPLES * sample;
        let mut readers = JoinSet::new();
        for _ in 0..READERS {
            let (reader, next, not_found) = (reader.clone(), Arc::clone(&next), Arc::clone(&not_found));
            readers.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        return Ok::<_, String>(());
                    }
                    if reader.read(format!("unknown-{number}")).await? == ReadOutcome::NotFound {
                        not_found.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        while let Some(ended) = readers.join_next().await {
            ended.map_err(|error| error.to_string())??;
        }
        next.store(end, Ordering::Relaxed);
        resident_kib.push(machine::used_kib().unwrap_or_default());
    }
    let took = start.elapsed();
    let ids = ids / SAMPLES * SAMPLES;
    let not_found = not_found.load(Ordering::Relaxed);
    let grown = resident_kib[SAMPLES - 1] as f64 / resident_kib[1] as f64;
    Ok(ScanFigure {
        contender,
        ids,
        questions: reader.questions(),
        not_found,
        missed: ids - not_found,
        ids_per_s: (ids as f64 / took.as_secs_f64()).round(),
        resident_kib,
        grown: to_thousandths(grown),
    })
}
