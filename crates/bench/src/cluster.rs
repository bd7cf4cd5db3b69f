//! Whole lifecycles through several nodes: every request goes to a random one, which passes it on to the owner of its
//! partition. Before and after it, the same load on a single node, because the machine's speed drifts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::Instant;

use crate::client::{Client, request};
use crate::machine::Machine;
use crate::nodes::{self, Nodes};
use crate::report::{Latency, Recorder};

/// How long a producer waits before it looks again whether it may go on.
const LOOK: Duration = Duration::from_millis(1);
/// How long the last ones may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How `bench cluster` is run.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The store: `redis://…` or `postgres://…`. Each run uses a prefix or a schema of its own in it and leaves it there.
    #[arg(long)]
    pub store: String,
    /// Nodes.
    #[arg(long, default_value_t = 3)]
    pub nodes: usize,
    /// Seconds to measure, each time.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Producers, each waiting for its acceptance.
    #[arg(long, default_value_t = 64)]
    pub producers: usize,
    /// Groups.
    #[arg(long, default_value_t = 1_000)]
    pub groups: usize,
    /// Bytes of the body that each operation sends.
    #[arg(long, default_value_t = 512)]
    pub payload: usize,
    /// Operations accepted and not carried at the most.
    #[arg(long, default_value_t = 2_000)]
    pub outstanding: u64,
}

/// What was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    one_before: Load,
    many: Load,
    one_after: Load,
    /// Of the many to the mean of the two runs with one.
    ratio: f64,
}

#[derive(Debug, Serialize)]
struct Load {
    nodes: usize,
    operations: u64,
    carried_per_s: f64,
    acceptance: Latency,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if args.nodes == 0 || args.producers == 0 || args.groups == 0 || args.outstanding == 0 {
        return Err("--nodes, --producers, --groups and --outstanding must be at least 1".into());
    }
    let one_before = load(&args, 1).await?;
    let many = load(&args, args.nodes).await?;
    let one_after = load(&args, 1).await?;
    let one = f64::midpoint(one_before.carried_per_s, one_after.carried_per_s);
    Ok(Report {
        bench: "cluster",
        store: tidegate_server::backend::shown(&args.store),
        machine: Machine::here(),
        ratio: (many.carried_per_s / one * 1_000.0).round() / 1_000.0,
        one_before,
        many,
        one_after,
    })
}

async fn load(args: &Args, count: usize) -> Result<Load, String> {
    let sim = HttpSim::start(HttpSimOptions::default()).await.map_err(|error| error.to_string())?;
    let upstreams =
        format!("[[upstream]]\nname = \"sink\"\nbase_url = \"http://{}\"\nspread = \"group\"\n", sim.addr());
    let nodes = Nodes::start(count, &nodes::fresh(&args.store)?, &upstreams).await?;
    eprintln!("{count} nodes, {} producers, {} s", args.producers, args.seconds);
    let addrs = nodes.addrs();
    let requests = (0..args.groups).map(|group| operation(addrs[0], group, args.payload)).collect();
    let mut clients = Vec::new();
    for _ in 0..args.producers {
        clients.push(connect(&addrs).await?);
    }
    let submitted = AtomicU64::new(0);
    let world = Arc::new(World { sim, requests, submitted, start: Instant::now(), args: args.clone() });
    let produce = |(number, clients)| tokio::spawn(produce(Arc::clone(&world), clients, number));
    let tasks: Vec<_> = (1..).zip(clients).map(produce).collect();
    let mut acceptance = Recorder::new()?;
    for task in tasks {
        acceptance.merge(&task.await.map_err(|error| error.to_string())??);
    }
    let operations = world.submitted.load(Ordering::Relaxed);
    while world.sim.stats().calls < operations {
        if world.start.elapsed() > Duration::from_secs(args.seconds) + PATIENCE {
            let carried = world.sim.stats().calls;
            return Err(format!("{carried} of {operations} operations were carried within {PATIENCE:?}"));
        }
        tokio::time::sleep(LOOK).await;
    }
    let carried_per_s = (operations as f64 / world.start.elapsed().as_secs_f64()).round();
    Ok(Load { nodes: count, operations, carried_per_s, acceptance: acceptance.latency() })
}

struct World {
    sim: HttpSim,
    /// Rendered before the time that counts, one for each group.
    requests: Vec<Vec<u8>>,
    submitted: AtomicU64,
    start: Instant,
    args: Args,
}

/// A connection to each.
async fn connect(addrs: &[SocketAddr]) -> Result<Vec<Client>, String> {
    let mut clients = Vec::new();
    for addr in addrs {
        clients.push(Client::connect(*addr).await?);
    }
    Ok(clients)
}

/// Hands operations in, each at a random node, until the time is over.
async fn produce(world: Arc<World>, mut clients: Vec<Client>, number: u64) -> Result<Recorder, String> {
    let (mut recorder, args) = (Recorder::new()?, &world.args);
    let mut chance = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    while world.start.elapsed() < Duration::from_secs(args.seconds) {
        // An xorshift: good enough to spread requests, and the same in every run.
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        let node = (chance % clients.len() as u64) as usize;
        let group = ((chance >> 32) % args.groups as u64) as usize;
        let submitted = world.submitted.fetch_add(1, Ordering::Relaxed) + 1;
        let started = Instant::now();
        clients[node].post(&world.requests[group]).await?;
        recorder.record(started.elapsed());
        while world.sim.stats().calls + args.outstanding < submitted {
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(recorder)
}

fn operation(addr: SocketAddr, group: usize, payload: usize) -> Vec<u8> {
    // Two quotation marks are part of a body that is a JSON string.
    let body = "x".repeat(payload.saturating_sub(2));
    let operation = json!({
        "kind": "http",
        "upstream": "sink",
        "group": format!("group-{group}"),
        "request": { "method": "POST", "path": "/x", "headers": {}, "body": body },
    });
    request(addr, "POST", "/v1/operations", &operation.to_string())
}
