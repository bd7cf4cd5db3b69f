//! Nodes to be measured: processes of the `tidegate` command on one store, each on a port of its
//! own. They end with their handle. What they are measured for is not known here.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tidegate_core::id::Partition;
use tidegate_store::{Clock, WallClock};
use tokio::time::Instant;

use crate::client::{Client, request};
use crate::scratch;

/// How long a node may take until it serves, and all of them until they share the partitions.
const START: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(50);
/// The variable in which nodes find a token for upstreams that need one, and the token, which is
/// worthless.
pub(crate) const TOKEN_VAR: &str = "TIDEGATE_BENCH_TOKEN";
pub(crate) const TOKEN: &str = "a token of the benchmark";
/// What a node prints when it serves.
const SERVES: &str = "tidegate serves http://";

struct Node {
    child: Option<Child>,
    addr: SocketAddr,
}

/// Some nodes.
pub(crate) struct Nodes {
    nodes: Vec<Node>,
    /// The directory of their configuration.
    dir: TempDir,
}

/// Returns a fresh store on the same server: another prefix, or another schema.
pub(crate) fn fresh_store_url(store: &str) -> Result<String, String> {
    let name = match store.split(':').next().unwrap_or_default() {
        "postgres" | "postgresql" => "schema",
        "redis" | "rediss" | "redis+cluster" | "rediss+cluster" => "prefix",
        _ => return Err("nodes share a store on redis://… or postgres://…".into()),
    };
    if store.contains(&format!("{name}=")) {
        return Err(format!("leave {name}= out: each run has one of its own"));
    }
    let sign = if store.contains('?') { '&' } else { '?' };
    Ok(format!("{store}{sign}{name}=bench_{}", WallClock.now().as_micros()))
}

impl Nodes {
    /// Starts them on a store, with these upstreams, and waits until all partitions are shared
    /// among them.
    pub(crate) async fn start(count: usize, store: &str, upstreams: &str) -> Result<Self, String> {
        let dir = scratch::dir_in(&std::env::temp_dir())?;
        let text = format!("[store]\nurl = {store:?}\n{upstreams}");
        let file = dir.path().join("tidegate.toml");
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        let mut nodes = Self { nodes: Vec::new(), dir };
        for _ in 0..count {
            let node = nodes.start_node(SocketAddr::from(([127, 0, 0, 1], 0))).await?;
            nodes.nodes.push(node);
        }
        nodes.wait_until_balanced().await?;
        Ok(nodes)
    }

    async fn start_node(&self, listen: SocketAddr) -> Result<Node, String> {
        let file = self.dir.path().join("tidegate.toml");
        let started = tokio::task::spawn_blocking(move || spawn_node(&file, listen)).await;
        started.map_err(|error| error.to_string())?
    }

    /// Shuts one down gracefully, waits for that, starts it again on the same address, and waits
    /// until it has its share.
    pub(crate) async fn restart(&mut self, node: usize) -> Result<(), String> {
        let mut child = self.terminate(node)?;
        let ended = tokio::task::spawn_blocking(move || child.wait()).await;
        let ended = ended.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        if !ended.success() {
            return Err(format!("a node that was asked to shut down exited with {ended}"));
        }
        self.nodes[node] = self.start_node(self.nodes[node].addr).await?;
        self.wait_until_balanced().await
    }

    /// Returns the addresses of the running nodes.
    pub(crate) fn addrs(&self) -> Vec<SocketAddr> {
        self.nodes.iter().filter(|node| node.child.is_some()).map(|node| node.addr).collect()
    }

    /// Waits until every partition has an owner and no node has more than one more than another.
    async fn wait_until_balanced(&self) -> Result<(), String> {
        let (since, count) = (Instant::now(), self.nodes.len());
        loop {
            let shares: Vec<usize> =
                self.partition_owners().await?.into_iter().map(|(_, share)| share.len()).collect();
            let most = shares.iter().max().copied().unwrap_or_default();
            let least = shares.iter().min().copied().unwrap_or_default();
            if shares.len() == count && least > 0 && most - least <= 1 {
                return Ok(());
            }
            if since.elapsed() > START {
                return Err(format!("{count} nodes do not share evenly after {START:?}: {shares:?}"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Returns which node has which partitions, as the first running node sees it.
    async fn partition_owners(&self) -> Result<Vec<(SocketAddr, Vec<u64>)>, String> {
        let first = *self.addrs().first().ok_or("no node is left")?;
        let mut client = Client::connect(first).await?;
        let (_, body) = client.send(&request(first, "GET", "/v1/cluster", "")).await?;
        let view: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let nodes = view["nodes"].as_array().cloned().unwrap_or_default();
        let seen = nodes.iter().filter_map(|node| {
            let share = node["partitions"].as_array()?.iter().filter_map(Value::as_u64).collect();
            Some((node["address"].as_str()?.parse().ok()?, share))
        });
        Ok(seen.collect())
    }

    /// Returns the number of the node that owns a partition.
    pub(crate) async fn owner_of(&self, partition: Partition) -> Result<usize, String> {
        let seen = self.partition_owners().await?;
        let owner = seen.iter().find(|(_, share)| share.contains(&u64::from(partition)));
        let addr = owner.map(|(addr, _)| *addr);
        let place = self.nodes.iter().position(|node| node.child.is_some() && Some(node.addr) == addr);
        place.ok_or_else(|| format!("no node owns partition {partition}"))
    }

    /// Kills one, as a power failure would.
    pub(crate) fn kill(&mut self, node: usize) -> Result<(), String> {
        let Some(mut child) = self.nodes[node].child.take() else { return Ok(()) };
        child.kill().and_then(|()| child.wait()).map(drop).map_err(|error| error.to_string())
    }

    /// Asks one to shut down gracefully, and does not wait for it.
    pub(crate) fn terminate(&mut self, node: usize) -> Result<Child, String> {
        let child = self.nodes[node].child.take().ok_or("it has already exited")?;
        let asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        asked.map_err(|error| format!("kill cannot be run: {error}"))?;
        Ok(child)
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in self.nodes.iter_mut().filter_map(|node| node.child.as_mut()) {
            // It may have exited on its own; either way nothing is left behind.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the `tidegate` command that was built next to this program.
fn tidegate() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let program = this.with_file_name("tidegate");
    match program.is_file() {
        true => Ok(program),
        false => Err(format!("{} is missing: build it with `cargo build --release`", program.display())),
    }
}

fn spawn_node(file: &std::path::Path, listen: SocketAddr) -> Result<Node, String> {
    let program = tidegate()?;
    let mut child = Command::new(&program)
        .args(["serve", "--listen", &listen.to_string(), "--log-level", "error", "--config"])
        .arg(file)
        .env(TOKEN_VAR, TOKEN)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{}: {error}", program.display()))?;
    let said = child.stderr.take().ok_or("a node has no output")?;
    let (tell, told) = mpsc::channel();
    // Read to the end, or a full pipe would block the node.
    std::thread::spawn(move || {
        for line in BufReader::new(said).lines().map_while(Result::ok) {
            match line.split_once(SERVES) {
                // The address is received only once.
                Some((_, addr)) => {
                    // With a JSON log the banner is a line of JSON.
                    let addr = addr.split('"').next().unwrap_or_default();
                    drop(tell.send(addr.trim().to_owned()));
                }
                None => eprintln!("{line}"),
            }
        }
    });
    match told.recv_timeout(START).ok().and_then(|addr| addr.parse().ok()) {
        Some(addr) => Ok(Node { child: Some(child), addr }),
        None => {
            // It may have exited on its own; its message is on stderr.
            let _ = child.kill();
            let _ = child.wait();
            Err(format!("a node did not serve within {START:?}"))
        }
    }
}
