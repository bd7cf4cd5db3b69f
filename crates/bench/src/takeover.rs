//! A partition with a long queue whose owner is killed: the time until another node serves it, by the default leases.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tidegate_core::OperationId;
use tokio::time::Instant;

use crate::client::{Client, request};
use crate::machine::Machine;
use crate::nodes::{self, Nodes};

/// Longer than any run: nothing is carried.
const DELAY_MS: u64 = 3_600_000;
/// Operations in a request, and connections that send them.
const BATCH: u64 = 500;
const CLIENTS: usize = 8;
const GROUPS: u64 = 1_000;
/// After this it is given up.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

/// How `bench takeover` is run.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The store: `redis://…` or `postgres://…`. Each run uses a prefix or a schema of its own in it and leaves it there.
    #[arg(long)]
    pub store: String,
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

/// What was measured.
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
    /// Until it had answered for the first operation of the queue.
    answered_after_s: f64,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if args.nodes < 2 || args.operations == 0 {
        return Err("--nodes must be at least 2, --operations at least 1".into());
    }
    // Never called within the hour.
    let upstreams = "[[upstream]]\nname = \"sink\"\nbase_url = \"http://127.0.0.1:9\"\n";
    let mut nodes = Nodes::start(args.nodes, &nodes::fresh(&args.store)?, upstreams).await?;
    let addrs = nodes.addrs();
    let first = submit_one(addrs[0]).await?.ok_or("the first operation was not accepted")?;
    eprintln!("{} nodes; filling {} operations", args.nodes, args.operations);
    let start = Instant::now();
    fill(&addrs, &args).await?;
    let filled_per_s = (args.operations as f64 / start.elapsed().as_secs_f64()).round();
    let owner = nodes.owner_of(first.partition()).await?;
    eprintln!("killing the owner");
    nodes.kill(owner)?;
    let killed = Instant::now();
    let left = nodes.addrs();
    let mut turn = 0;
    // A node that does not know better yet answers 503; the next one is asked then.
    while submit_one(left[turn % left.len()]).await.ok().flatten().is_none() {
        turn += 1;
        if killed.elapsed() > PATIENCE {
            return Err(format!("nobody has accepted anything {PATIENCE:?} after the kill"));
        }
        tokio::time::sleep(LOOK).await;
    }
    let accepted_after_s = seconds(killed);
    let mut client = Client::connect(left[0]).await?;
    let path = format!("/v1/operations/{first}");
    let (status, _) = client.send(&request(left[0], "GET", &path, "")).await?;
    if status != 200 {
        return Err(format!("the first operation is answered with {status} after the take-over"));
    }
    Ok(Report {
        bench: "takeover",
        store: tidegate_server::backend::shown(&args.store),
        machine: Machine::here(),
        nodes: args.nodes,
        operations: args.operations,
        filled_per_s,
        accepted_after_s,
        answered_after_s: seconds(killed),
    })
}

fn seconds(since: Instant) -> f64 {
    (since.elapsed().as_secs_f64() * 1_000.0).round() / 1_000.0
}

/// Hands one in; `None` when it is not accepted now.
async fn submit_one(addr: SocketAddr) -> Result<Option<OperationId>, String> {
    let body = operation(0, 16).to_string();
    let mut client = Client::connect(addr).await?;
    let (status, body) = client.send(&request(addr, "POST", "/v1/operations", &body)).await?;
    if status != 202 {
        return Ok(None);
    }
    let accepted: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let id = accepted["id"].as_str().and_then(|id| id.parse().ok());
    id.map(Some).ok_or_else(|| "an acceptance has no id".into())
}

/// Fills the queue by several connections, in batches.
async fn fill(addrs: &[SocketAddr], args: &Args) -> Result<(), String> {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..CLIENTS {
        let (addr, next, args) = (addrs[number % addrs.len()], Arc::clone(&next), args.clone());
        tasks.spawn(async move {
            let mut client = Client::connect(addr).await?;
            loop {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= args.operations {
                    return Ok::<_, String>(());
                }
                let end = (first + BATCH).min(args.operations);
                let batch: Vec<_> = (first..end).map(|number| operation(number, args.payload)).collect();
                let body = json!({ "operations": batch }).to_string();
                client.post(&request(addr, "POST", "/v1/operations/batch", &body)).await?;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    Ok(())
}

fn operation(number: u64, payload: usize) -> Value {
    let body = "x".repeat(payload.saturating_sub(2));
    json!({
        "kind": "http",
        "upstream": "sink",
        "group": format!("group-{}", number % GROUPS),
        "delay_ms": DELAY_MS,
        "request": { "method": "POST", "path": "/x", "headers": {}, "body": body },
    })
}
