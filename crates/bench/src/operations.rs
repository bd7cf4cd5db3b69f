//! Whole lifecycles: producers that wait for durable acceptance, many groups, workers with an
//! instant upstream. In the same run, the ceiling, and the requested peers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tidegate::{Engine, Executors, Options, Submission};
use tidegate_upstream::Upstream;
use tokio::time::Instant;

use crate::ceiling;
use crate::flags::LoadArgs;
use crate::instant_upstream::InstantUpstream;
use crate::machine::{Machine, dir_bytes, peak_kib};
use crate::peer::{self, Peer, PeerLoad, PeerReport};
use crate::report::{Latency, Recorder};
use crate::scratch;

/// Arguments of `bench operations`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The store: `file:DIR`, `memory:`, `redis://…` or `postgres://…`; one that nothing else uses.
    #[arg(long, default_value = "file:tidegate-bench")]
    pub store: String,
    #[command(flatten)]
    pub load: LoadArgs,
    /// Calls in flight.
    #[arg(long, default_value_t = 64)]
    pub workers: usize,
    /// Finished operations to fill the store with first.
    #[arg(long, default_value_t = 0)]
    pub prefill: u64,
    /// Leave out the ceiling.
    #[arg(long)]
    pub no_ceiling: bool,
    /// Another queue to put under the same load in the same run, on the same server. May be given
    /// several times.
    ///
    /// Built or installed from a checkout of the repository, with cargo or with npm.
    #[arg(long, value_enum)]
    pub peer: Vec<Peer>,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    /// The server's version and durability settings, by its own names.
    server: Option<BTreeMap<String, String>>,
    lifecycles: u64,
    lifecycles_per_s: f64,
    acceptance: Latency,
    end_to_end: Latency,
    ceiling_per_s: Option<f64>,
    ratio_to_ceiling: Option<f64>,
    disk_bytes_per_operation: Option<f64>,
    peak_memory_mib: Option<u64>,
    prefilled: u64,
    peers: Vec<PeerReport>,
}

/// One in so many operations is followed to its end.
const SAMPLE_EVERY: u64 = 128;

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    let dir = args.store.strip_prefix("file:").map(PathBuf::from);
    if let Some(dir) = &dir {
        std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    let time = Duration::from_secs(args.load.seconds);
    // Built before anything is measured, run when nothing else is.
    let peers = peer::prepare(&args.peer, &args.store)?;
    let before = measure_ceiling(&args, dir.as_deref(), time).await?;
    let store = scratch::open(&args.store).await?;
    let described = store.describe();
    let server = store.server_settings().await.map_err(|error| error.to_string())?;
    let server = (!server.is_empty()).then(|| server.into_iter().collect());
    let upstream = Arc::new(InstantUpstream::default());
    let executors = Executors::from([("bench".into(), Arc::clone(&upstream) as Arc<dyn Upstream>)]);
    let options = Options::default().with_workers(args.workers);
    let engine = Engine::builder(store)
        .options(options)
        .executors(executors)
        .open()
        .await
        .map_err(|e| e.to_string())?;
    if args.prefill > 0 {
        drive(&engine, &upstream, &args, StopCondition::Count(args.prefill)).await?;
    }
    let disk_before = dir.as_deref().map(dir_bytes);
    let run = drive(&engine, &upstream, &args, StopCondition::Time(time)).await?;
    let after = measure_ceiling(&args, dir.as_deref(), time / 2).await?;
    let disk = dir.as_deref().map(dir_bytes);
    engine.drain().await;
    drop(engine);
    let ceiling = before.zip(after).map(|(a, b)| f64::midpoint(a, b));
    let per_s = run.lifecycles as f64 / run.took.as_secs_f64();
    let load = PeerLoad::from(&args);
    let peers = peers.iter().map(|peer| peer.run(&load, per_s)).collect::<Result<_, _>>()?;
    let grown = disk.zip(disk_before).map(|(now, then)| now.saturating_sub(then) as f64);
    Ok(Report {
        bench: "operations",
        store: described,
        machine: Machine::detect(),
        server,
        lifecycles: run.lifecycles,
        lifecycles_per_s: per_s.round(),
        acceptance: run.acceptance.latency(),
        end_to_end: run.end_to_end.latency(),
        ceiling_per_s: ceiling.map(f64::round),
        ratio_to_ceiling: ceiling.map(|ceiling| (per_s / ceiling * 1_000.0).round() / 1_000.0),
        disk_bytes_per_operation: grown.map(|grown| (grown / run.lifecycles as f64).round()),
        peak_memory_mib: peak_kib().map(|kib| kib / 1_024),
        prefilled: args.prefill,
        peers,
    })
}

/// Measures before and after, because the machine's speed drifts.
async fn measure_ceiling(args: &Args, dir: Option<&Path>, time: Duration) -> Result<Option<f64>, String> {
    let (Some(dir), false) = (dir, args.no_ceiling) else { return Ok(None) };
    let ceiling = ceiling::measure(dir, args.load.producers, args.workers, args.load.payload, time / 2).await;
    ceiling.map(|ceiling| Some(ceiling.lifecycles_per_s)).map_err(|error| error.to_string())
}

#[derive(Clone, Copy)]
enum StopCondition {
    Time(Duration),
    Count(u64),
}

struct Run {
    lifecycles: u64,
    took: Duration,
    acceptance: Recorder,
    end_to_end: Recorder,
}

async fn drive(
    engine: &Engine,
    upstream: &Arc<InstantUpstream>,
    args: &Args,
    until: StopCondition,
) -> Result<Run, String> {
    let (start, carried_before) = (Instant::now(), upstream.carried());
    let submitted = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for number in 0..args.load.producers as u64 {
        let producer = Producer {
            engine: engine.clone(),
            upstream: Arc::clone(upstream),
            submitted: Arc::clone(&submitted),
            args: args.clone(),
            carried_before,
            until,
            start,
        };
        tasks.push(tokio::spawn(producer.run(number)));
    }
    let (mut acceptance, mut end_to_end) = (Recorder::new()?, Recorder::new()?);
    for task in tasks {
        let (one, two) = task.await.map_err(|error| error.to_string())??;
        acceptance.merge(&one);
        end_to_end.merge(&two);
    }
    let lifecycles = submitted.load(Ordering::Relaxed);
    upstream.wait_for_calls(carried_before + lifecycles).await;
    loop {
        let counts = engine.counts().await.map_err(|error| error.to_string())?;
        if counts.running + counts.queued + counts.waiting == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(Run { lifecycles, took: start.elapsed(), acceptance, end_to_end })
}

struct Producer {
    engine: Engine,
    upstream: Arc<InstantUpstream>,
    submitted: Arc<AtomicU64>,
    args: Args,
    carried_before: u64,
    until: StopCondition,
    start: Instant,
}

impl Producer {
    async fn run(self, number: u64) -> Result<(Recorder, Recorder), String> {
        let payload = bytes::Bytes::from(vec![b'x'; self.args.load.payload]);
        let groups: Vec<Arc<str>> = (0..self.args.load.groups).map(|n| format!("group-{n}").into()).collect();
        let kind: Arc<str> = "bench".into();
        let (mut acceptance, mut end_to_end) = (Recorder::new()?, Recorder::new()?);
        let mut followed = tokio::task::JoinSet::new();
        let mut step = number;
        while self.should_continue() {
            let submitted = self.submitted.fetch_add(1, Ordering::Relaxed) + 1;
            // A stride that is coprime with the number of groups visits all of them.
            step = step.wrapping_add(7_919);
            let group = Arc::clone(&groups[(step % self.args.load.groups) as usize]);
            let started = Instant::now();
            let submission = Submission::new(Arc::clone(&kind), group, payload.clone());
            let receipt = self.engine.submit(submission).await.map_err(|error| error.to_string())?;
            acceptance.record(started.elapsed());
            if submitted.is_multiple_of(SAMPLE_EVERY) {
                let engine = self.engine.clone();
                followed.spawn(async move {
                    let ended = engine.wait(receipt.id, Duration::from_secs(60)).await;
                    ended.map(|_| started.elapsed()).map_err(|error| error.to_string())
                });
            }
            let floor = (self.carried_before + submitted).saturating_sub(self.args.load.outstanding);
            self.upstream.wait_for_calls(floor).await;
        }
        while let Some(ended) = followed.join_next().await {
            end_to_end.record(ended.map_err(|error| error.to_string())??);
        }
        Ok((acceptance, end_to_end))
    }

    fn should_continue(&self) -> bool {
        match self.until {
            StopCondition::Time(time) => self.start.elapsed() < time,
            StopCondition::Count(count) => self.submitted.load(Ordering::Relaxed) < count,
        }
    }
}
