//! Some nodes, the store they share and the two upstreams they call: `limited`, which has a bucket
//! and so one partition, and `wide`, which has none and is spread over all of them by group. All of
//! it ends with its handle.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde_json::Value;
use tempfile::TempDir;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tokio::time::{sleep, timeout};

use super::node_clients::{NodeClients, partition_of};
use super::store::Store;
use crate::child::{RunningServer, StartingServer, tidegate, upstream};

/// Partitions of a store.
pub(super) const PARTITIONS: usize = 16;
const WORKERS: usize = 16;
pub(super) const CAPACITY: u64 = 20;
pub(super) const REFILL_PER_S: f64 = 50.0;
/// Calls that the upstream takes beyond that: a machine that stands still for a tenth of a second
/// holds up as many on their way, and they arrive together with the next. Granted twice, a full
/// bucket would be far more.
const HELD_UP: u64 = 5;
/// Long enough that some calls are under way at any time.
const LATENCY: Duration = Duration::from_millis(40);
/// How long shares may take to be what they should be: a lease that runs out, and a look.
const SETTLED: Duration = Duration::from_secs(15);
/// How long an orderly end may take.
const STOPPED: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);
const LEVEL: &str = "warn,tidegate_cluster=info";

/// A node, while it is there.
struct Node {
    running: Option<RunningServer>,
    listen: String,
    environment: Vec<(String, String)>,
}

/// What is out of the ordinary about the nodes of a test.
#[derive(Default)]
pub(super) struct Setup {
    /// Where they are told that the store is; else where it is.
    pub url: Option<String>,
    /// What more is said about the store.
    pub store: String,
    /// Variables of each node; of none when there are none.
    pub environments: Vec<Vec<(String, String)>>,
}

/// The whole world of a test.
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// The way in.
    pub doors: Arc<NodeClients>,
    /// The upstream with a limit.
    pub limited: HttpSim,
    /// The upstream without.
    pub wide: HttpSim,
    dir: TempDir,
    // After the nodes, so that they are gone before it is.
    pub store: Store,
}

fn start(dir: &Path, listen: &str, environment: &[(String, String)]) -> RunningServer {
    let mut command = tidegate();
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.arg("serve").arg("--config").arg(dir.join("tidegate.toml")).current_dir(dir);
    command.args(["--listen", listen, "--log-level", LEVEL]);
    tokio::task::block_in_place(|| RunningServer::of(StartingServer::of(command)))
}

impl Nodes {
    /// Starts them, and waits until each has its share.
    pub(super) async fn start(count: usize, store: Store) -> Self {
        Self::start_with(count, store, Setup::default()).await
    }

    /// The same with what is out of the ordinary.
    pub(super) async fn start_with(count: usize, store: Store, setup: Setup) -> Self {
        let limit = HttpSimOptions {
            capacity: CAPACITY + HELD_UP,
            refill_per_s: Some(REFILL_PER_S),
            ..sim_options()
        };
        let limited = HttpSim::start(limit).await.unwrap();
        let wide = HttpSim::start(sim_options()).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let upstreams = upstream("limited", &limited, Some((CAPACITY, REFILL_PER_S)));
        let spread = upstream("wide", &wide, None);
        let text = format!(
            "[server]\nworkers = {WORKERS}\ndrain_s = 10\n[store]\nurl = \"{}\"\n{}\n{upstreams}{spread}spread = \"group\"\n",
            setup.url.unwrap_or_else(|| store.url()),
            setup.store
        );
        std::fs::write(dir.path().join("tidegate.toml"), text).unwrap();
        let mut nodes = Vec::new();
        for node in 0..count {
            let environment = setup.environments.get(node).cloned().unwrap_or_default();
            let running = start(dir.path(), "127.0.0.1:0", &environment);
            let listen = running.address.trim_start_matches("http://").to_owned();
            nodes.push(Node { running: Some(running), listen, environment });
        }
        let addresses: Vec<_> = nodes.iter().map(|node| format!("http://{}", node.listen)).collect();
        let doors = Arc::new(NodeClients::of(&addresses));
        let world = Self { nodes, doors, limited, wide, dir, store };
        world.wait_until_shared_by(&(0..count).collect::<Vec<_>>()).await;
        world
    }

    fn running(&mut self, node: usize) -> &mut RunningServer {
        self.nodes[node].running.as_mut().unwrap()
    }

    /// SIGTERM, out of rotation at the same moment, and waits for its end; answers what it had
    /// said.
    pub(super) async fn stop(&mut self, node: usize) -> String {
        self.stop_within(node, STOPPED).await
    }

    /// The same for a stop that may take another time.
    pub(super) async fn stop_within(&mut self, node: usize, most: Duration) -> String {
        self.doors.set_open(node, false);
        let running = self.running(node);
        running.signal("TERM");
        let ended = async {
            loop {
                match running.exit_status() {
                    Some(status) => return status,
                    None => sleep(LOOK).await,
                }
            }
        };
        let status = timeout(most, ended).await.expect("it stops in time");
        assert!(status.success(), "{status}");
        self.kill(node)
    }

    /// SIGKILL; answers what it had said.
    pub(super) fn kill(&mut self, node: usize) -> String {
        let Some(running) = self.nodes[node].running.take() else { return String::new() };
        let said = tokio::task::block_in_place(|| running.kill());
        println!("node {node} is gone and said:\n{said}");
        said
    }

    /// Starts it again where it was, and takes it into rotation.
    pub(super) fn start_again(&mut self, node: usize) {
        let Node { running, listen, environment } = &mut self.nodes[node];
        *running = Some(start(self.dir.path(), listen, environment));
        self.doors.set_open(node, true);
    }

    /// SIGSTOP and out of rotation, or SIGCONT and back.
    pub(super) fn freeze(&mut self, node: usize, is_frozen: bool) {
        self.running(node).signal(if is_frozen { "STOP" } else { "CONT" });
        self.doors.set_open(node, !is_frozen);
    }

    /// Where a node serves.
    pub(super) fn address(&self, node: usize) -> String {
        format!("http://{}", self.nodes[node].listen)
    }

    /// The partitions of a node, as this one sees it.
    pub(super) async fn partitions_of(&self, node: usize, seen_by: usize) -> BTreeSet<u16> {
        let at = &self.nodes[node].listen;
        let answer = self.doors.at(seen_by).call(Method::GET, "/v1/cluster", &[], None).await;
        let view: Value = answer.map_or(Value::Null, |(_, view)| serde_json::from_str(&view).unwrap());
        let nodes = view["nodes"].as_array().cloned().unwrap_or_default();
        let it = nodes.iter().find(|node| node["address"].as_str() == Some(at));
        let partitions = it.and_then(|it| it["partitions"].as_array().cloned()).unwrap_or_default();
        partitions.iter().map(|partition| partition.as_u64().unwrap() as u16).collect()
    }

    /// The node that owns what this operation is in, as this one sees it.
    pub(super) async fn owner_of(&self, id: &str, seen_by: usize) -> usize {
        for node in 0..self.nodes.len() {
            if self.partitions_of(node, seen_by).await.contains(&partition_of(id)) {
                return node;
            }
        }
        panic!("nobody owns the partition of {id}");
    }

    /// Waits until all these nodes agree that they share all partitions evenly among them.
    pub(super) async fn wait_until_shared_by(&self, nodes: &[usize]) {
        let mut seen = Vec::new();
        let even = async {
            loop {
                seen.clear();
                for by in nodes {
                    for node in nodes {
                        seen.push(self.partitions_of(*node, *by).await.len());
                    }
                }
                let each = PARTITIONS / nodes.len();
                let all = seen.chunks(nodes.len()).all(|by| by.iter().sum::<usize>() == PARTITIONS);
                if all && seen.iter().all(|owned| (each..=each + 1).contains(owned)) {
                    return;
                }
                sleep(LOOK).await;
            }
        };
        let agreed = timeout(SETTLED, even).await;
        assert!(agreed.is_ok(), "nodes {nodes:?} do not share evenly within {SETTLED:?}: {seen:?}");
    }
}

impl Drop for Nodes {
    /// What they said helps whoever looks for the reason of a failure.
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (n, node) in self.nodes.iter_mut().enumerate() {
                if let Some(running) = node.running.take() {
                    println!("node {n} at {} said:\n{}", node.listen, running.kill());
                }
            }
        }
    }
}

fn sim_options() -> HttpSimOptions {
    HttpSimOptions { latency: LATENCY, ..HttpSimOptions::default() }
}
