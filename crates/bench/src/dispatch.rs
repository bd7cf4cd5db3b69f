//! Generations over four endpoints: how many each second, how soon they are submitted, what becomes
//! of them while the first choice of all fails, and what they cost while every endpoint cools. Then
//! the same load through LiteLLM's router.

mod endpoints;
mod figures;
mod load;
mod outage;
mod parked;
mod queue;
mod router;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::goal::Goal;
use crate::machine::Machine;
use crate::report::Latency;
use endpoints::EndpointSet;
use load::{Arrivals, LoadFigures};
use outage::OutageWindow;
use parked::ParkedFigures;
use queue::GenerationQueue;
use router::RouterReport;

/// What a failover may take beyond one round trip, in milliseconds.
const FAILOVER_MS: f64 = 50.0;
/// What we may add at p99, in milliseconds.
const ADDED_MS: f64 = 5.0;

/// Arguments of `bench dispatch`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The store: `file:DIR`, where a fresh directory is created and removed, `memory:`,
    /// `redis://…` or `postgres://…`, where a prefix or a schema of its own is used and left.
    #[arg(long, default_value = "file:tidegate-bench")]
    pub store: String,
    /// Generations, each time.
    #[arg(long, default_value_t = 10_000)]
    pub generations: usize,
    /// Calls in flight at most, and slots of each endpoint.
    #[arg(long, default_value_t = 64)]
    pub workers: usize,
    /// Latency of each response to a submit.
    #[arg(long, default_value_t = 20)]
    pub latency_ms: u64,
    /// Generations per second at the steady rate.
    #[arg(long, default_value_t = 500.0)]
    pub rate: f64,
    /// Seconds after which the first endpoint begins to fail, at the steady rate.
    #[arg(long, default_value_t = 5)]
    pub outage_after: u64,
    /// Seconds for which it fails.
    #[arg(long, default_value_t = 10)]
    pub outage_seconds: u64,
    /// Seconds for which generations that wait are watched.
    #[arg(long, default_value_t = 10)]
    pub idle_seconds: u64,
    /// Leave out LiteLLM.
    #[arg(long)]
    pub no_peer: bool,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    workers: usize,
    latency_ms: u64,
    rate_per_s: f64,
    /// As many as can be accepted, with every endpoint working.
    unpaced: LoadFigures,
    /// At the steady rate, with an outage.
    steady: LoadFigures,
    /// While every endpoint cools.
    parked: ParkedFigures,
    peer: Option<RouterReport>,
    goals: Vec<Goal>,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if [args.generations, args.workers].contains(&0) || args.idle_seconds == 0 {
        return Err("--generations, --workers and --idle-seconds must be at least 1".into());
    }
    if !(1.0..=100_000.0).contains(&args.rate) {
        return Err("--rate must be 1 to 100,000".into());
    }
    let installed = if args.no_peer { None } else { Some(router::install()?) };
    let latency = Duration::from_millis(args.latency_ms);
    let outage = OutageWindow {
        from: Duration::from_secs(args.outage_after),
        lasts: Duration::from_secs(args.outage_seconds),
    };
    let endpoints = EndpointSet::start(latency).await.map_err(|error| error.to_string())?;
    eprintln!("{} generations as fast as they are accepted", args.generations);
    let unpaced = measure(&args, &endpoints, Arrivals::Unpaced, latency).await?;
    eprintln!("{} generations at {} per second, with an outage", args.generations, args.rate);
    let steady = Arrivals::Steady { per_s: args.rate, outage };
    let steady = measure(&args, &endpoints, steady, latency).await?;
    eprintln!("{} generations while every endpoint fails", args.generations);
    let queue = GenerationQueue::open(&args.store, &endpoints.bases(), args.workers).await?;
    let idle = Duration::from_secs(args.idle_seconds);
    let parked = parked::measure(&queue, &endpoints, args.generations, idle).await?;
    queue.engine.drain().await;
    let peer = match installed {
        Some(installed) => {
            eprintln!("the same through LiteLLM");
            Some(router::run(installed, &endpoints, (args.generations, args.rate), outage, latency).await?)
        }
        None => None,
    };
    Ok(Report {
        bench: "dispatch",
        store: tidegate_server::backend::redact_url(&args.store),
        machine: Machine::detect(),
        workers: args.workers,
        latency_ms: args.latency_ms,
        rate_per_s: args.rate,
        goals: goals(&args, [&unpaced, &steady], &parked),
        unpaced,
        steady,
        parked,
        peer,
    })
}

/// Measures a load on a queue of its own.
async fn measure(
    args: &Args,
    endpoints: &EndpointSet,
    arrivals: Arrivals,
    latency: Duration,
) -> Result<LoadFigures, String> {
    let queue = Arc::new(GenerationQueue::open(&args.store, &endpoints.bases(), args.workers).await?);
    let figures = load::run(&queue, endpoints, args.generations, arrivals, latency).await;
    queue.engine.drain().await;
    figures
}

fn goals(args: &Args, loads: [&LoadFigures; 2], parked: &ParkedFigures) -> Vec<Goal> {
    let sum = |figure: fn(&LoadFigures) -> usize| loads.iter().map(|load| figure(load) as f64).sum::<f64>();
    let [_, steady] = loads;
    let failover = steady.submits.failover.as_ref().map_or(f64::NAN, Latency::p99_ms);
    vec![
        Goal::at_most("lost generations", 0.0, sum(|load| load.lost)),
        Goal::at_most("duplicate submits", 0.0, sum(|load| load.submits.duplicate_submits)),
        Goal::at_most("leaked slots", 0.0, sum(|load| load.leaked_slots as usize)),
        Goal::at_most(
            "failover at p99, in ms: a round trip and 50 ms",
            args.latency_ms as f64 + FAILOVER_MS,
            failover,
        ),
        Goal::at_most(
            "added latency at p99 and the steady rate, in ms",
            ADDED_MS,
            steady.added_latency.p99_ms(),
        ),
        Goal::at_most("picks per second while every endpoint cools", 1.0, parked.picks_per_s),
    ]
}
