//! Whole lifecycles through several nodes: every request goes to a random one, which forwards it to
//! the owner of its partition. Before and after it, the same load on a single node, because the
//! machine's speed drifts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tidegate_sim::rng::SeededRng;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::Instant;

use crate::call;
use crate::client::Client;
use crate::flags::{LoadArgs, SharedStoreArgs};
use crate::machine::Machine;
use crate::nodes::{self, Nodes};
use crate::report::{Latency, Recorder};

/// How long a producer waits before it checks again whether it may continue.
const LOOK: Duration = Duration::from_millis(1);
/// How long the last ones may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Arguments of `bench cluster`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub shared: SharedStoreArgs,
    /// Nodes.
    #[arg(long, default_value_t = 3)]
    pub nodes: usize,
    #[command(flatten)]
    pub load: LoadArgs,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    one_before: Run,
    many: Run,
    one_after: Run,
    /// Several nodes compared with the mean of the two runs with one.
    ratio: f64,
}

#[derive(Debug, Serialize)]
struct Run {
    nodes: usize,
    operations: u64,
    carried_per_s: f64,
    acceptance: Latency,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    let Args { shared: SharedStoreArgs { store }, nodes, load } = args;
    if nodes == 0 || load.producers == 0 || load.groups == 0 || load.outstanding == 0 {
        return Err("--nodes, --producers, --groups and --outstanding must be at least 1".into());
    }
    let one_before = measure(&store, &load, 1).await?;
    let many = measure(&store, &load, nodes).await?;
    let one_after = measure(&store, &load, 1).await?;
    let one = f64::midpoint(one_before.carried_per_s, one_after.carried_per_s);
    Ok(Report {
        bench: "cluster",
        store: tidegate_server::backend::redact_url(&store),
        machine: Machine::detect(),
        ratio: (many.carried_per_s / one * 1_000.0).round() / 1_000.0,
        one_before,
        many,
        one_after,
    })
}

async fn measure(store: &str, load: &LoadArgs, count: usize) -> Result<Run, String> {
    let sim = HttpSim::start(HttpSimOptions::default()).await.map_err(|error| error.to_string())?;
    let upstreams = format!("{}spread = \"group\"\n", call::upstream(&format!("http://{}", sim.addr())));
    let nodes = Nodes::start(count, &nodes::fresh_store_url(store)?, &upstreams).await?;
    eprintln!("{count} nodes, {} producers, {} s", load.producers, load.seconds);
    let addrs = nodes.addrs();
    let body = call::body(load.payload);
    let request = |group| call::single(addrs[0], &call::call(group, &body));
    let requests = (0..load.groups).map(request).collect();
    let mut clients = Vec::new();
    for _ in 0..load.producers {
        clients.push(connect(&addrs).await?);
    }
    let submitted = AtomicU64::new(0);
    let world = Arc::new(ClusterLoad { sim, requests, submitted, start: Instant::now(), load: load.clone() });
    let produce = |(number, clients)| tokio::spawn(produce(Arc::clone(&world), clients, number));
    let tasks: Vec<_> = (1..).zip(clients).map(produce).collect();
    let mut acceptance = Recorder::new()?;
    for task in tasks {
        acceptance.merge(&task.await.map_err(|error| error.to_string())??);
    }
    let operations = world.submitted.load(Ordering::Relaxed);
    while world.sim.stats().calls < operations {
        if world.start.elapsed() > Duration::from_secs(load.seconds) + PATIENCE {
            let carried = world.sim.stats().calls;
            return Err(format!("{carried} of {operations} operations were sent within {PATIENCE:?}"));
        }
        tokio::time::sleep(LOOK).await;
    }
    let carried_per_s = (operations as f64 / world.start.elapsed().as_secs_f64()).round();
    Ok(Run { nodes: count, operations, carried_per_s, acceptance: acceptance.latency() })
}

struct ClusterLoad {
    sim: HttpSim,
    /// The requests, one per group, rendered before the measurement.
    requests: Vec<Vec<u8>>,
    submitted: AtomicU64,
    start: Instant,
    load: LoadArgs,
}

/// Opens a connection to each node.
async fn connect(addrs: &[SocketAddr]) -> Result<Vec<Client>, String> {
    let mut clients = Vec::new();
    for addr in addrs {
        clients.push(Client::connect(*addr).await?);
    }
    Ok(clients)
}

/// Submits operations, each to a random node, until the time is over.
async fn produce(world: Arc<ClusterLoad>, mut clients: Vec<Client>, number: u64) -> Result<Recorder, String> {
    let (mut recorder, load) = (Recorder::new()?, &world.load);
    // The same in every run.
    let mut chance = SeededRng::new(number);
    while world.start.elapsed() < Duration::from_secs(load.seconds) {
        let drawn = chance.next();
        let node = (drawn % clients.len() as u64) as usize;
        let group = ((drawn >> 32) % load.groups) as usize;
        let submitted = world.submitted.fetch_add(1, Ordering::Relaxed) + 1;
        let started = Instant::now();
        clients[node].post(&world.requests[group]).await?;
        recorder.record(started.elapsed());
        while world.sim.stats().calls + load.outstanding < submitted {
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(recorder)
}
