//! One upstream with a limit and more work than fits, through four nodes: how much of the limit is
//! used, and how many calls the upstream refuses, in steady state, while the owner of its partition
//! shuts down gracefully, and while the next owner is killed.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tidegate_core::OperationId;
use tidegate_core::id::Partition;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::{Instant, sleep_until};

use crate::call::{self, call};
use crate::client::Client;
use crate::flags::SharedStoreArgs;
use crate::machine::Machine;
use crate::nodes::{self, Nodes};

/// Operations per request.
const BATCH: u64 = 500;
const GROUPS: u64 = 200;
const LOOK: Duration = Duration::from_millis(5);

/// Arguments of `bench handover`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub shared: SharedStoreArgs,
    /// Nodes.
    #[arg(long, default_value_t = 4)]
    pub nodes: usize,
    /// Calls per second that the upstream permits.
    #[arg(long, default_value_t = 200)]
    pub per_s: u64,
    /// Capacity of its bucket.
    #[arg(long, default_value_t = 20)]
    pub burst: u64,
    /// Seconds of each of the five phases.
    #[arg(long, default_value_t = 15)]
    pub seconds: u64,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    nodes: usize,
    per_s: u64,
    burst: u64,
    phases: Vec<Phase>,
    /// Calls that the upstream refused, in all.
    throttled: u64,
    /// Calls that it had executed before.
    duplicates: u64,
}

#[derive(Debug, Serialize)]
struct Phase {
    phase: &'static str,
    seconds: f64,
    calls: u64,
    /// Share of what the upstream permitted in that time.
    used: f64,
    throttled: u64,
    longest_gap_ms: u64,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    let (store, count) = (&args.shared.store, args.nodes);
    if count < 3 || args.per_s == 0 || args.burst == 0 || args.seconds == 0 {
        return Err("--nodes must be at least 3; --per-s, --burst and --seconds at least 1".into());
    }
    let limit = HttpSimOptions {
        capacity: args.burst,
        refill_per_s: Some(args.per_s as f64),
        ..HttpSimOptions::default()
    };
    let sim = HttpSim::start(limit).await.map_err(|error| error.to_string())?;
    let upstreams = format!(
        "{}[[upstream.limit]]\nname = \"requests\"\ncapacity = {}\nrefill_per_s = {}\n",
        call::upstream(&format!("http://{}", sim.addr())),
        args.burst,
        args.per_s
    );
    let mut nodes = Nodes::start(count, &nodes::fresh_store_url(store)?, &upstreams).await?;
    let partition = submit_backlog(&nodes.addrs(), &args).await?;
    // The burst at the start belongs to no phase.
    while sim.stats().calls < args.burst + args.per_s {
        tokio::time::sleep(LOOK).await;
    }
    let mut phases = vec![watch_phase("before", &sim, &args).await];
    let ending = nodes.owner_of(partition).await?;
    let mut ended = nodes.terminate(ending)?;
    phases.push(watch_phase("while its owner ends in order", &sim, &args).await);
    ended.wait().map_err(|error| error.to_string())?;
    phases.push(watch_phase("after that", &sim, &args).await);
    let killed = nodes.owner_of(partition).await?;
    nodes.kill(killed)?;
    phases.push(watch_phase("while its owner is killed", &sim, &args).await);
    phases.push(watch_phase("after that", &sim, &args).await);
    let stats = sim.stats();
    Ok(Report {
        bench: "handover",
        store: tidegate_server::backend::redact_url(store),
        machine: Machine::detect(),
        nodes: count,
        per_s: args.per_s,
        burst: args.burst,
        phases,
        throttled: stats.throttled,
        duplicates: stats.duplicates,
    })
}

/// Observes the upstream for one phase.
async fn watch_phase(phase: &'static str, sim: &HttpSim, args: &Args) -> Phase {
    let (start, before) = (Instant::now(), sim.stats());
    let end = start + Duration::from_secs(args.seconds);
    let (mut calls, mut since, mut longest) = (before.calls, start, Duration::ZERO);
    while Instant::now() < end {
        sleep_until((Instant::now() + LOOK).min(end)).await;
        let now = sim.stats().calls;
        longest = longest.max(since.elapsed());
        if now != calls {
            (calls, since) = (now, Instant::now());
        }
    }
    let (took, after) = (start.elapsed().as_secs_f64(), sim.stats());
    let calls = after.calls - before.calls;
    let phase = Phase {
        phase,
        seconds: (took * 1_000.0).round() / 1_000.0,
        calls,
        used: (calls as f64 / (args.per_s as f64 * took) * 10_000.0).round() / 10_000.0,
        throttled: after.throttled - before.throttled,
        longest_gap_ms: u64::try_from(longest.as_millis()).unwrap_or(u64::MAX),
    };
    eprintln!("{phase:?}");
    phase
}

/// Submits more than fits into all phases, through all nodes; returns the partition of the
/// operations.
async fn submit_backlog(addrs: &[SocketAddr], args: &Args) -> Result<Partition, String> {
    let wanted = args.burst + args.per_s * (5 * args.seconds + 30);
    let mut partition = 0;
    for (turn, first) in (0..wanted).step_by(BATCH as usize).enumerate() {
        let addr = addrs[turn % addrs.len()];
        let calls: Vec<_> =
            (first..first + BATCH).map(|number| call(number % GROUPS, &json!({ "id": number }))).collect();
        let mut client = Client::connect(addr).await?;
        let (status, body) = client.send(&call::batch(addr, &calls)).await?;
        let accepted: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let id = accepted["operations"][0]["id"].as_str().and_then(|id| id.parse::<OperationId>().ok());
        partition = id.ok_or_else(|| format!("a batch was refused with {status}"))?.partition();
    }
    Ok(partition)
}
