//! Many callers at once: of one entity, or each of another.

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::readers::{Contender, EntityReader, ReadOutcome};
use super::source::{CountingSource, SourceBehavior, known_id};
use crate::machine;
use crate::report::{Latency, Recorder};

/// The figures of one contender.
#[derive(Debug, Serialize)]
pub(super) struct CrowdFigure {
    pub(super) contender: Contender,
    pub(super) source: &'static str,
    entities: usize,
    /// How many questions were published; for the others, how often the source was called.
    pub(super) questions: usize,
    /// Callers that got the entity, and those that did not.
    found: usize,
    missed: usize,
    callers_per_s: f64,
    /// From the last answer until a caller has it.
    pub(super) wake_up: Option<Latency>,
    /// How much more memory the process has than before, in KiB.
    grown_kib: i64,
}

/// Measures `callers` callers of `entities` entities.
pub(super) async fn measure(
    contender: Contender,
    behavior: SourceBehavior,
    callers: usize,
    entities: usize,
) -> Result<CrowdFigure, String> {
    let source = CountingSource::new(behavior);
    let reader = EntityReader::start(contender, &source).await?;
    let before = machine::used_kib();
    let start = Instant::now();
    let mut reading = JoinSet::new();
    for caller in 0..callers {
        let (reader, id) = (reader.clone(), known_id(caller % entities));
        reading.spawn(async move { (reader.read(id).await, Instant::now()) });
    }
    let (mut found, mut missed, mut ends) = (0, 0, Vec::with_capacity(callers));
    while let Some(ended) = reading.join_next().await {
        let (outcome, at) = ended.map_err(|error| error.to_string())?;
        match outcome? {
            ReadOutcome::Found => {
                found += 1;
                ends.push(at);
            }
            ReadOutcome::NotFound => return Err("a known entity was not found".into()),
            ReadOutcome::Missed => missed += 1,
        }
    }
    let took = start.elapsed();
    let after = machine::used_kib();
    let wake_up = match source.answered_at().filter(|_| entities == 1 && !ends.is_empty()) {
        Some(answered_at) => {
            let mut recorder = Recorder::new()?;
            ends.iter().for_each(|end| recorder.record(end.saturating_duration_since(answered_at)));
            Some(recorder.latency())
        }
        None => None,
    };
    Ok(CrowdFigure {
        contender,
        source: behavior.name(),
        entities,
        questions: reader.questions(),
        found,
        missed,
        callers_per_s: (callers as f64 / took.as_secs_f64()).round(),
        wake_up,
        grown_kib: difference(before, after),
    })
}

fn difference(before: Option<u64>, after: Option<u64>) -> i64 {
    let kib = |sample: Option<u64>| i64::try_from(sample.unwrap_or_default()).unwrap_or(i64::MAX);
    kib(after) - kib(before)
}
