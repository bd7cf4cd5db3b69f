//! A long queue: the memory per waiting operation, and the recovery time after a crash. A child
//! process fills the store and is killed while it is still writing; this process then opens the
//! store.

mod child;
mod fill;

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidegate::{Engine, Executors};
use tidegate_upstream::Upstream;
use tokio::time::Instant;

use crate::instant_upstream::InstantUpstream;
use crate::machine::{Machine, dir_bytes, used_kib};
use crate::scratch::{self, Scratch};

/// Pause for what is still running after the last response; only the queue's own memory counts.
const CALM: Duration = Duration::from_secs(2);

/// Arguments of `bench backlog`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The store: `file:DIR`, where a fresh directory is created and removed.
    #[arg(long, default_value = "file:tidegate-bench")]
    pub store: String,
    /// Waiting operations.
    #[arg(long, default_value_t = 1_000_000)]
    pub operations: u64,
    /// Groups.
    #[arg(long, default_value_t = 1_000)]
    pub groups: u64,
    /// Bytes per payload.
    #[arg(long, default_value_t = 512)]
    pub payload: usize,
    /// Fill this store, report the figures, and continue until killed. The benchmark starts itself
    /// with it.
    #[arg(long, hide = true, value_name = "URL")]
    pub fill: Option<String>,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    filled: FillReport,
    reopened: ReopenReport,
    disk_bytes_per_operation: u64,
}

/// The child's report once it has filled the store.
#[derive(Debug, Serialize, Deserialize)]
struct FillReport {
    operations: u64,
    /// Those, and the ones accepted after them before the child asked to be killed.
    accepted_before_kill: u64,
    operations_per_s: f64,
    resident_mib_before: u64,
    resident_mib_after: u64,
    /// Growth of the process per operation.
    bytes_per_operation: f64,
    /// The most memory that cached payloads may take, whatever the number of operations.
    payload_cache_bytes: u64,
    /// The same without the cache.
    bytes_per_operation_without_cache: f64,
}

/// The state after the child was killed.
#[derive(Debug, Serialize)]
struct ReopenReport {
    /// At least as many as the child knew to be accepted.
    operations: u64,
    store_open_s: f64,
    engine_open_s: f64,
    /// Both: from nothing to an engine that responds.
    open_s: f64,
    bytes_per_operation: f64,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if args.operations == 0 || args.groups == 0 {
        return Err("--operations and --groups must be at least 1".into());
    }
    if let Some(url) = &args.fill {
        return Err(fill::fill_until_killed(url, &args).await?);
    }
    let scratch = Scratch::new(&args.store)?;
    let Some(dir) = scratch.path() else {
        return Err("a backlog in memory: does not outlive its process; give file:DIR".into());
    };
    eprintln!("a child process fills {} operations", args.operations);
    let url = scratch.url().to_owned();
    let filled = tokio::task::spawn_blocking(move || child::fill_and_kill(&url)).await;
    let filled = filled.map_err(|error| error.to_string())??;
    eprintln!("it was killed; opening what it left");
    let reopened = reopen(scratch.url()).await?;
    if reopened.operations < filled.accepted_before_kill {
        let (had, has) = (filled.accepted_before_kill, reopened.operations);
        return Err(format!("{had} operations were accepted before the kill and {has} are there after it"));
    }
    let disk_bytes_per_operation = dir_bytes(&dir) / reopened.operations;
    Ok(Report { bench: "backlog", machine: Machine::detect(), filled, reopened, disk_bytes_per_operation })
}

async fn reopen(url: &str) -> Result<ReopenReport, String> {
    let before = resident()?;
    let start = Instant::now();
    let store = scratch::open(url).await?;
    let store_open_s = seconds(start);
    let engine = open_engine(store).await?;
    let counts = engine.counts().await.map_err(|error| error.to_string())?;
    let open_s = seconds(start);
    let operations = counts.queued + counts.waiting;
    tokio::time::sleep(CALM).await;
    let bytes_per_operation = per_operation(resident()?.saturating_sub(before), operations);
    engine.drain().await;
    let engine_open_s = ((open_s - store_open_s) * 1_000.0).round() / 1_000.0;
    Ok(ReopenReport { operations, store_open_s, engine_open_s, open_s, bytes_per_operation })
}

/// Opens an engine with all defaults, as a server would.
async fn open_engine(store: Arc<dyn tidegate_store::Store>) -> Result<Engine, String> {
    let upstream = Arc::new(InstantUpstream::default()) as Arc<dyn Upstream>;
    let executors = Executors::from([("bench".into(), upstream)]);
    Engine::builder(store).executors(executors).open().await.map_err(|error| error.to_string())
}

fn seconds(start: Instant) -> f64 {
    (start.elapsed().as_secs_f64() * 1_000.0).round() / 1_000.0
}

/// Returns the bytes of memory that this process uses now.
fn resident() -> Result<u64, String> {
    let kib = used_kib().ok_or("this system does not report the memory of a process in /proc/self/status")?;
    Ok(kib * 1_024)
}

fn per_operation(bytes: u64, operations: u64) -> f64 {
    (bytes as f64 / operations.max(1) as f64).round()
}
