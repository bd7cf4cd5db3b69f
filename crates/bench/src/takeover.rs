//! A partition with a long queue whose owner is killed: the time until another node serves it, with
//! the default leases.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tidegate_core::OperationId;
use tokio::time::Instant;

use crate::call::{self, delayed};
use crate::client::{Client, request};
use crate::delayed_backlog::DelayedBacklog;
use crate::flags::SharedStoreArgs;
use crate::machine::Machine;
use crate::nodes::{self, Nodes};

/// Operations per request.
const BATCH: u64 = 500;
const GROUPS: u64 = 1_000;
/// After this long the benchmark gives up.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

/// Arguments of `bench takeover`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub shared: SharedStoreArgs,
    /// Nodes.
    #[arg(long, default_value_t = 4)]
    pub nodes: usize,
    /// Operations that wait in the partition.
    #[arg(long, default_value_t = 1_000_000)]
    pub operations: u64,
    /// Bytes of the body that each operation would send.
    #[arg(long, default_value_t = 512)]
    pub payload: usize,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    nodes: usize,
    operations: u64,
    filled_per_s: f64,
    /// From the kill until another node had accepted into the partition.
    accepted_after_s: f64,
    /// From the kill until it had responded for the first operation of the queue.
    answered_after_s: f64,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    let (store, count) = (&args.shared.store, args.nodes);
    if count < 2 || args.operations == 0 {
        return Err("--nodes must be at least 2, --operations at least 1".into());
    }
    let mut nodes =
        Nodes::start(count, &nodes::fresh_store_url(store)?, &call::upstream(call::NOWHERE)).await?;
    let addrs = nodes.addrs();
    let first = submit_one(addrs[0]).await?.ok_or("the first operation was not accepted")?;
    eprintln!("{count} nodes; filling {} operations", args.operations);
    let start = Instant::now();
    let Args { operations, payload, .. } = args;
    DelayedBacklog { operations, groups: GROUPS, payload, batch: BATCH }.submit(&addrs).await?;
    let filled_per_s = (args.operations as f64 / start.elapsed().as_secs_f64()).round();
    let owner = nodes.owner_of(first.partition()).await?;
    eprintln!("killing the owner");
    nodes.kill(owner)?;
    let killed = Instant::now();
    let left = nodes.addrs();
    let mut turn = 0;
    // A node that is not up to date yet responds with 503; then the next one is tried.
    while submit_one(left[turn % left.len()]).await.ok().flatten().is_none() {
        turn += 1;
        if killed.elapsed() > PATIENCE {
            return Err(format!("no node has accepted anything {PATIENCE:?} after the kill"));
        }
        tokio::time::sleep(LOOK).await;
    }
    let accepted_after_s = seconds(killed);
    let mut client = Client::connect(left[0]).await?;
    let path = format!("/v1/operations/{first}");
    let (status, _) = client.send(&request(left[0], "GET", &path, "")).await?;
    if status != 200 {
        return Err(format!("the first operation returns {status} after the takeover"));
    }
    Ok(Report {
        bench: "takeover",
        store: tidegate_server::backend::redact_url(store),
        machine: Machine::detect(),
        nodes: count,
        operations: args.operations,
        filled_per_s,
        accepted_after_s,
        answered_after_s: seconds(killed),
    })
}

fn seconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1_000.0).round() / 1_000.0
}

/// Submits one operation; `None` when it is not accepted now.
async fn submit_one(addr: SocketAddr) -> Result<Option<OperationId>, String> {
    let mut client = Client::connect(addr).await?;
    let (status, body) = client.send(&call::single(addr, &delayed(0, &call::body(16)))).await?;
    if status != 202 {
        return Ok(None);
    }
    let accepted: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let id = accepted["id"].as_str().and_then(|id| id.parse().ok());
    id.map(Some).ok_or_else(|| "an acceptance has no id".into())
}
