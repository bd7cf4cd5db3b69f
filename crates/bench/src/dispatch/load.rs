//! Generations under load: as many as can be accepted, and at a steady rate while the first choice
//! of all of them fails for a while.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidegate::State;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::endpoints::{EndpointSet, SubmitsByPrompt};
use super::figures::SubmitFigures;
use super::outage::OutageWindow;
use super::queue::GenerationQueue;
use crate::report::{Latency, Recorder};

/// Submissions that wait for their acceptance at once, where there is no rate.
const PRODUCERS: usize = 64;
/// Longer than any generation takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// How generations are created.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arrivals {
    /// As soon as earlier ones are accepted.
    Unpaced,
    /// At this rate, while the first choice of all fails for a while.
    Steady { per_s: f64, outage: OutageWindow },
}

/// The figures of a load.
#[derive(Debug, Serialize)]
pub(super) struct LoadFigures {
    generations: usize,
    pub lost: usize,
    pub generations_per_s: f64,
    /// From acceptance to the arrival of the first submit.
    accept_to_submit: Latency,
    /// The same for those that were accepted while every endpoint worked.
    pub added_latency: Latency,
    /// From acceptance until the files are stored.
    whole: Latency,
    #[serde(flatten)]
    pub submits: SubmitFigures,
    pub leaked_slots: u32,
}

/// A generation that has ended.
struct EndedGeneration {
    prompt: String,
    accepted: Instant,
    ended: Instant,
    is_completed: bool,
}

/// Creates generations, waits until all have ended, and counts.
pub(super) async fn run(
    queue: &Arc<GenerationQueue>,
    endpoints: &EndpointSet,
    count: usize,
    arrivals: Arrivals,
    latency: Duration,
) -> Result<LoadFigures, String> {
    endpoints.take_log();
    let start = Instant::now();
    let _outage = match arrivals {
        Arrivals::Steady { outage, .. } => Some(outage.schedule(start, endpoints.first())),
        Arrivals::Unpaced => None,
    };
    let ended = create_all(queue, count, arrivals, start).await?;
    let seconds = start.elapsed().as_secs_f64();
    let log = endpoints.take_log();
    let is_usual = |accepted: Instant| match arrivals {
        Arrivals::Steady { outage, .. } => !outage.contains(accepted - start),
        Arrivals::Unpaced => true,
    };
    let [accept_to_submit, added, whole] = latencies(&ended, &log, is_usual)?;
    Ok(LoadFigures {
        generations: count,
        lost: ended.iter().filter(|one| !one.is_completed).count(),
        generations_per_s: (count as f64 / seconds).round(),
        accept_to_submit: accept_to_submit.latency(),
        added_latency: added.latency(),
        whole: whole.latency(),
        submits: SubmitFigures::of(&log, latency)?,
        leaked_slots: queue.slots_in_use().await?,
    })
}

async fn create_all(
    queue: &Arc<GenerationQueue>,
    count: usize,
    arrivals: Arrivals,
    start: Instant,
) -> Result<Vec<EndedGeneration>, String> {
    let producers = Arc::new(Semaphore::new(PRODUCERS));
    let mut running = JoinSet::new();
    for number in 0..count {
        let permit = match arrivals {
            Arrivals::Steady { per_s, .. } => {
                sleep_until(start + Duration::from_secs_f64(number as f64 / per_s)).await;
                None
            }
            Arrivals::Unpaced => {
                let permit = Arc::clone(&producers).acquire_owned().await;
                Some(permit.map_err(|error| error.to_string())?)
            }
        };
        let queue = Arc::clone(queue);
        running.spawn(async move {
            let prompt = format!("generation-{number}");
            let submission = queue.submission(&prompt)?;
            let receipt = queue.engine.submit(submission).await.map_err(|error| error.to_string())?;
            let accepted = Instant::now();
            drop(permit);
            let view = queue.engine.wait(receipt.id, PATIENCE).await.map_err(|error| error.to_string())?;
            let is_completed = view.state == State::Succeeded;
            Ok::<_, String>(EndedGeneration { prompt, accepted, ended: Instant::now(), is_completed })
        });
    }
    let mut ended = Vec::with_capacity(count);
    while let Some(one) = running.join_next().await {
        ended.push(one.map_err(|error| error.to_string())??);
    }
    Ok(ended)
}

/// From acceptance to the first submit, the same where it is usual, and to the end.
fn latencies(
    ended: &[EndedGeneration],
    log: &SubmitsByPrompt,
    is_usual: impl Fn(Instant) -> bool,
) -> Result<[Recorder; 3], String> {
    let [mut to_submit, mut usual, mut whole] = [Recorder::new()?, Recorder::new()?, Recorder::new()?];
    for one in ended {
        // A submit can arrive before its caller has heard of the acceptance.
        if let Some(first) = log.get(&one.prompt).and_then(|submits| submits.first()) {
            let waited = first.at.saturating_duration_since(one.accepted);
            to_submit.record(waited);
            if is_usual(one.accepted) {
                usual.record(waited);
            }
        }
        whole.record(one.ended - one.accepted);
    }
    Ok([to_submit, usual, whole])
}
