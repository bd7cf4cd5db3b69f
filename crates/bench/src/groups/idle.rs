//! The cost of an engine while all its groups wait for one bucket that is empty for an hour.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidegate::{Engine, Executors, Submission};
use tidegate_core::fact::LimitShape;
use tidegate_core::operation::MICRO;
use tidegate_upstream::Upstream;
use tokio::time::Instant;

use super::Args;
use crate::instant_upstream::InstantUpstream;
use crate::machine::cpu_seconds;
use crate::scratch::{self, Scratch};

/// The report.
#[derive(Debug, Serialize)]
pub(super) struct IdleReport {
    store: String,
    waiting: u64,
    seconds: f64,
    /// Percent of one core.
    idle_cpu_percent: f64,
}

const LIMIT: &str = "hourly";
const BATCH: u64 = 1_000;
/// Pause for what is still being written after the last acceptance.
const CALM: Duration = Duration::from_secs(1);

pub(super) async fn measure(args: &Args) -> Result<IdleReport, String> {
    let scratch = Scratch::new(&args.store)?;
    let engine = open(&scratch).await?;
    eprintln!("filling an engine with {} groups that wait", args.many);
    fill(&engine, args.many).await?;
    let waiting = wait_until_idle(&engine, args.many).await?;
    tokio::time::sleep(CALM).await;
    eprintln!("watching it for {} s", args.idle_seconds);
    let (start, before) = (Instant::now(), cpu()?);
    tokio::time::sleep(Duration::from_secs(args.idle_seconds)).await;
    let (seconds, used) = (start.elapsed().as_secs_f64(), cpu()? - before);
    engine.drain().await;
    Ok(IdleReport {
        store: args.store.clone(),
        waiting,
        seconds: (seconds * 100.0).round() / 100.0,
        idle_cpu_percent: (used / seconds * 10_000.0).round() / 100.0,
    })
}

fn cpu() -> Result<f64, String> {
    cpu_seconds().ok_or_else(|| "this system does not report CPU time in /proc/self/stat".into())
}

async fn open(scratch: &Scratch) -> Result<Engine, String> {
    let store = scratch::open(scratch.url()).await?;
    let upstream = InstantUpstream::charging(vec![LIMIT.into()]);
    let executors = Executors::from([("bench".into(), Arc::new(upstream) as Arc<dyn Upstream>)]);
    let shape = LimitShape::Drip { capacity: MICRO, refill_per_s: MICRO / 3_600, margin: 0 };
    let limits = vec![(LIMIT.into(), shape)];
    Engine::builder(store).executors(executors).limits(limits).open().await.map_err(|error| error.to_string())
}

/// Submits one operation per group, and one more that takes the only token.
async fn fill(engine: &Engine, groups: u64) -> Result<(), String> {
    let mut next = 0;
    while next <= groups {
        let end = (next + BATCH).min(groups + 1);
        let batch = (next..end).map(|n| Submission::new("bench", format!("group-{n}"), "{}")).collect();
        for answer in engine.submit_all(batch).await {
            answer.map_err(|error| error.to_string())?;
        }
        next = end;
    }
    Ok(())
}

/// Waits until the first one has run and all others wait.
async fn wait_until_idle(engine: &Engine, groups: u64) -> Result<u64, String> {
    let patience = Instant::now() + Duration::from_secs(60);
    loop {
        let counts = engine.counts().await.map_err(|error| error.to_string())?;
        if counts.waiting == groups && counts.running == 0 {
            return Ok(groups);
        }
        if Instant::now() > patience {
            return Err(format!("{} of {groups} groups wait, {} run", counts.waiting, counts.running));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
