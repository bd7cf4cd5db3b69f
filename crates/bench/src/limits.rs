//! Stand-alone limits: reservations per second from one bucket, and from two in one step. Compared
//! with the server's own benchmark with the smallest step that stores anything: like for like, over
//! as many connections with as much in flight on each; and on Redis also with one connection that
//! our callers share, against many of the peer's. Separately, decisions made within one process.

mod in_process;
mod peer;
mod take;

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidegate_store::SharedState;

use crate::machine::Machine;
use crate::report::Latency;
use crate::scratch;
use peer::ServerBenchmark;

/// Arguments of `bench limits`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The store: `redis://…`, `postgres://…`, `memory:` or `file:DIR`; one that nothing else uses.
    #[arg(long, default_value = "memory:")]
    pub store: String,
    /// Seconds to measure each figure.
    #[arg(long, default_value_t = 3)]
    pub seconds: u64,
    /// Concurrent callers: sharing a connection, then with one each.
    #[arg(long, default_value_t = 50)]
    pub connections: usize,
    /// Leave out the server's own benchmark.
    #[arg(long)]
    pub no_peer: bool,
    /// Measure only decisions in this process, compared with governor and a bucket in a mutex; all
    /// other settings are ignored.
    #[arg(long)]
    pub in_process: bool,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<String>,
    machine: Machine,
    /// What the peer does per step.
    peer: Option<String>,
    cases: Vec<Case>,
    /// Decisions without a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_process: Option<Vec<in_process::Case>>,
}

/// The figures of one connection layout.
#[derive(Debug, Serialize)]
struct Case {
    connections: usize,
    on_their_way_on_each: usize,
    peer_connections: usize,
    peer_on_their_way_on_each: usize,
    one_bucket: Figure,
    two_buckets: Figure,
}

/// Reservations, with the peer's steps measured before and after.
#[derive(Debug, Serialize)]
struct Figure {
    reservations_per_s: f64,
    latency: Latency,
    peer_before_per_s: Option<f64>,
    peer_after_per_s: Option<f64>,
    ratio: Option<f64>,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if args.in_process {
        let in_process = Some(in_process().await?);
        return Ok(Report {
            bench: "limits",
            store: None,
            machine: Machine::detect(),
            peer: None,
            cases: Vec::new(),
            in_process,
        });
    }
    if args.connections == 0 || args.seconds == 0 {
        return Err("--connections and --seconds must be at least 1".into());
    }
    let peer = if args.no_peer { None } else { ServerBenchmark::of(&args.store)? };
    let is_server = args.store.contains("://");
    // PostgreSQL handles one query at a time on each connection.
    let is_multiplexed = !args.store.starts_with("postgres");
    let time = Duration::from_secs(args.seconds);
    let shared = LoadShape { connections: 1, deep: args.connections, time };
    let each = LoadShape { connections: args.connections, deep: 1, time };
    let shapes: &[(LoadShape, LoadShape)] = match (is_server, is_multiplexed) {
        (true, true) => &[(shared, each), (each, each), (shared, shared)],
        (true, false) => &[(each, each)],
        (false, _) => &[(shared, shared)],
    };
    let mut cases = Vec::new();
    for (ours, theirs) in shapes {
        let stores = take::stores(&args.store, ours.connections).await?;
        // A first turn that does not count: connections, scripts and caches.
        take::measure(&stores, ours.warm_up(), 2).await?;
        let one_bucket = figure(peer.as_ref(), &stores, (*ours, *theirs), 1).await?;
        let two_buckets = figure(peer.as_ref(), &stores, (*ours, *theirs), 2).await?;
        cases.push(Case {
            connections: ours.connections,
            on_their_way_on_each: ours.deep,
            peer_connections: theirs.connections,
            peer_on_their_way_on_each: theirs.deep,
            one_bucket,
            two_buckets,
        });
    }
    Ok(Report {
        bench: "limits",
        store: Some(tidegate_server::backend::redact_url(&args.store)),
        machine: Machine::detect(),
        peer: peer.map(|peer| peer.name()),
        cases,
        in_process: None,
    })
}

async fn in_process() -> Result<Vec<in_process::Case>, String> {
    let store: Arc<dyn SharedState> = scratch::open("memory:").await?;
    let measured = tokio::task::spawn_blocking(move || in_process::measure(&store)).await;
    measured.map_err(|error| error.to_string())?
}

/// The connection layout, and how long it is measured.
#[derive(Clone, Copy, Debug)]
struct LoadShape {
    connections: usize,
    deep: usize,
    time: Duration,
}

impl LoadShape {
    const fn warm_up(self) -> Self {
        Self { time: Duration::from_millis(500), ..self }
    }
}

async fn figure(
    peer: Option<&ServerBenchmark>,
    stores: &take::Stores,
    (ours, theirs): (LoadShape, LoadShape),
    buckets: usize,
) -> Result<Figure, String> {
    let LoadShape { connections, deep, .. } = ours;
    eprintln!("{buckets} of the buckets, {connections} connections, {deep} on their way on each");
    let before = peer.map(|peer| peer.measure(theirs)).transpose()?;
    let (per_s, latency) = take::measure(stores, ours, buckets).await?;
    let after = peer.map(|peer| peer.measure(theirs)).transpose()?;
    let ratio = before.zip(after).map(|(before, after)| per_s / f64::midpoint(before, after));
    Ok(Figure {
        reservations_per_s: per_s.round(),
        latency,
        peer_before_per_s: before.map(f64::round),
        peer_after_per_s: after.map(f64::round),
        ratio: ratio.map(|ratio| (ratio * 1_000.0).round() / 1_000.0),
    })
}
