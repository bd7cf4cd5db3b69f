//! Generations that wait because every endpoint cools: how many picks they cause, and what they
//! cost. A pick is a claim that was granted, and sends a submit: one probe of each endpoint from
//! time to time.

use std::time::Duration;

use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::endpoints::EndpointSet;
use super::queue::GenerationQueue;
use crate::goal::to_thousandths;
use crate::machine::cpu_seconds;

const BATCH: usize = 1_000;
/// For how long nothing may be sent until all count as parked, and how long that may take.
const CALM: Duration = Duration::from_secs(1);
const PATIENCE: Duration = Duration::from_secs(60);

/// The figures.
#[derive(Debug, Serialize)]
pub(super) struct ParkedFigures {
    parked: u64,
    seconds: f64,
    pub picks_per_s: f64,
    /// Percent of one core.
    idle_cpu_percent: f64,
}

/// Creates generations while every endpoint fails, and watches those that wait.
pub(super) async fn measure(
    queue: &GenerationQueue,
    endpoints: &EndpointSet,
    count: usize,
    time: Duration,
) -> Result<ParkedFigures, String> {
    endpoints.set_all_failing(true);
    endpoints.take_log();
    for first in (0..count).step_by(BATCH) {
        let batch =
            (first..count.min(first + BATCH)).map(|number| queue.submission(&format!("parked-{number}")));
        for answer in queue.engine.submit_all(batch.collect::<Result<_, _>>()?).await {
            answer.map_err(|error| error.to_string())?;
        }
    }
    wait_until_calm(endpoints).await?;
    let told = "this system does not report CPU time in /proc/self/stat";
    let (start, submits, cpu) = (Instant::now(), endpoints.submits(), cpu_seconds().ok_or(told)?);
    sleep(time).await;
    let seconds = start.elapsed().as_secs_f64();
    let picks = endpoints.submits() - submits;
    let used = cpu_seconds().ok_or(told)? - cpu;
    let counts = queue.engine.counts().await.map_err(|error| error.to_string())?;
    endpoints.set_all_failing(false);
    Ok(ParkedFigures {
        parked: counts.queued + counts.waiting,
        seconds: to_thousandths(seconds),
        picks_per_s: to_thousandths(picks as f64 / seconds),
        idle_cpu_percent: to_thousandths(used / seconds * 100.0),
    })
}

async fn wait_until_calm(endpoints: &EndpointSet) -> Result<(), String> {
    let patience = Instant::now() + PATIENCE;
    loop {
        let before = endpoints.submits();
        sleep(CALM).await;
        if endpoints.submits() == before {
            return Ok(());
        }
        if Instant::now() > patience {
            return Err(format!("submits are still sent after {PATIENCE:?}, although every endpoint fails"));
        }
    }
}
