//! A rolling restart: nodes are shut down and started again, one after the other, while producers
//! continue. A node is out of rotation from the moment it is asked to shut down until it serves
//! again, as behind a load balancer. Measures how long requests took, and how many failed.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde::Serialize;
use tidegate_sim::rng::SeededRng;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::call;
use crate::client::Client;
use crate::flags::SharedStoreArgs;
use crate::machine::Machine;
use crate::nodes::{self, Nodes};
use crate::report::{Latency, Recorder};

/// Pause between two restarts.
const BETWEEN: Duration = Duration::from_secs(1);
const GROUPS: u64 = 1_000;

/// Arguments of `bench rolling`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub shared: SharedStoreArgs,
    /// Nodes.
    #[arg(long, default_value_t = 3)]
    pub nodes: usize,
    /// Producers, each waiting for its acceptance.
    #[arg(long, default_value_t = 16)]
    pub producers: usize,
    /// Milliseconds that a producer pauses between two requests: a rolling restart is not a test of
    /// throughput.
    #[arg(long, default_value_t = 10)]
    pub rest_ms: u64,
    /// How often each node is restarted.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    nodes: usize,
    restarts: usize,
    requests: u64,
    /// Requests without an acceptance.
    failed: u64,
    acceptance: Latency,
    seconds: f64,
}

/// The nodes in rotation: address, and how often each was started.
type Rotation = Arc<RwLock<Vec<(SocketAddr, usize, bool)>>>;

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    let (SharedStoreArgs { store }, count) = (args.shared, args.nodes);
    if count < 2 || args.producers == 0 || args.rounds == 0 {
        return Err("--nodes must be at least 2; --producers and --rounds at least 1".into());
    }
    let sim = HttpSim::start(HttpSimOptions::default()).await.map_err(|error| error.to_string())?;
    let upstreams = format!("{}spread = \"group\"\n", call::upstream(&format!("http://{}", sim.addr())));
    let mut nodes = Nodes::start(count, &nodes::fresh_store_url(&store)?, &upstreams).await?;
    let rotation = nodes.addrs().into_iter().map(|addr| (addr, 0, true)).collect();
    let rotation: Rotation = Arc::new(RwLock::new(rotation));
    let (end, ended) = watch::channel(false);
    let start = Instant::now();
    let produce = |number| tokio::spawn(produce(number, args.rest_ms, Arc::clone(&rotation), ended.clone()));
    let producers: Vec<_> = (1..=args.producers as u64).map(produce).collect();
    for round in 1..=args.rounds {
        for node in 0..count {
            tokio::time::sleep(BETWEEN).await;
            set_in_rotation(&rotation, node, false);
            nodes.restart(node).await?;
            set_in_rotation(&rotation, node, true);
            eprintln!("round {round}: node {node} is back");
        }
    }
    tokio::time::sleep(BETWEEN).await;
    end.send_replace(true);
    let (mut acceptance, mut requests, mut failed) = (Recorder::new()?, 0, 0);
    for producer in producers {
        let (latency, sent, lost) = producer.await.map_err(|error| error.to_string())??;
        acceptance.merge(&latency);
        (requests, failed) = (requests + sent, failed + lost);
    }
    Ok(Report {
        bench: "rolling",
        store: tidegate_server::backend::redact_url(&store),
        machine: Machine::detect(),
        nodes: count,
        restarts: count * args.rounds,
        requests,
        failed,
        acceptance: acceptance.latency(),
        seconds: (start.elapsed().as_secs_f64() * 10.0).round() / 10.0,
    })
}

/// Takes a node out of rotation, or back into it.
fn set_in_rotation(rotation: &Rotation, node: usize, is_in: bool) {
    let mut rotation = rotation.write().unwrap_or_else(PoisonError::into_inner);
    let (_, starts, was_in) = &mut rotation[node];
    *starts += usize::from(is_in);
    *was_in = is_in;
}

/// Submits operations, each to a random node in rotation, until it is told to stop.
async fn produce(
    number: u64,
    rest_ms: u64,
    rotation: Rotation,
    ended: watch::Receiver<bool>,
) -> Result<(Recorder, u64, u64), String> {
    let (mut latency, mut sent, mut failed) = (Recorder::new()?, 0, 0);
    let mut clients: Vec<Option<(usize, Client)>> = Vec::new();
    let mut chance = SeededRng::new(number);
    while !*ended.borrow() {
        let drawn = chance.next();
        let all = rotation.read().unwrap_or_else(PoisonError::into_inner).clone();
        let there: Vec<usize> = (0..all.len()).filter(|node| all[*node].2).collect();
        let node = there[(drawn % there.len() as u64) as usize];
        let (addr, starts, _) = all[node];
        clients.resize_with(all.len(), || None);
        let request = call::single(addr, &call::call((drawn >> 32) % GROUPS, &"x".into()));
        let asked = Instant::now();
        let accepted = match &mut clients[node] {
            Some((of, client)) if *of == starts => client.post(&request).await,
            slot => {
                let (_, client) = slot.insert((starts, Client::connect(addr).await?));
                client.post(&request).await
            }
        };
        latency.record(asked.elapsed());
        sent += 1;
        if let Err(error) = accepted {
            eprintln!("{error}");
            (failed, clients[node]) = (failed + 1, None);
        }
        tokio::time::sleep(Duration::from_millis(rest_ms)).await;
    }
    Ok((latency, sent, failed))
}
