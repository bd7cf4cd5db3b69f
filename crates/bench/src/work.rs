//! Remote workers over HTTP: a server, producers that submit empty jobs in batches, and worker
//! processes that take and settle them, as `tidegate worker` does. In the same run, the requested
//! peer with as many processes of its own. Then operations that await their completion.

mod awaiting;
mod load;
mod worker;

use std::net::{Ipv4Addr, SocketAddr};

use serde::Serialize;
use tidegate_server::config::Overrides;
use tidegate_server::{Config, Server};

use crate::goal::Goal;
use crate::machine::Machine;
use crate::peer::{self, Peer, PeerLoad, PeerReport};
use crate::report::Latency;
use crate::scratch::Scratch;
use awaiting::AwaitingReport;

/// The kind of the jobs.
const KIND: &str = "bench";

/// Arguments of `bench work`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The store: `file:DIR`, where a fresh directory is created and removed, `memory:`,
    /// `redis://…` or `postgres://…`, where a prefix or a schema of its own is used and left.
    #[arg(long, default_value = "file:tidegate-bench")]
    pub store: String,
    /// Seconds to measure.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Worker processes.
    #[arg(long, default_value_t = 4)]
    pub processes: usize,
    /// Jobs that each of them executes at once.
    #[arg(long, default_value_t = 16)]
    pub concurrency: usize,
    /// Producers, each waiting for its acceptance.
    #[arg(long, default_value_t = 4)]
    pub producers: usize,
    /// Jobs that a producer submits in one request.
    #[arg(long, default_value_t = 64)]
    pub batch: usize,
    /// Groups.
    #[arg(long, default_value_t = 1_000)]
    pub groups: u64,
    /// Maximum number of jobs accepted but not ended.
    #[arg(long, default_value_t = 1_024)]
    pub outstanding: u64,
    /// Operations that await their completion, measured afterwards; 0 to leave that out.
    #[arg(long, default_value_t = 100_000)]
    pub awaiting: u64,
    /// Seconds for which these are watched.
    #[arg(long, default_value_t = 10)]
    pub idle_seconds: u64,
    /// Another queue under the same load in the same run, on the same server, with as many worker
    /// processes: bullmq, on Redis.
    #[arg(long, value_enum)]
    pub peer: Vec<Peer>,
    /// Work for the server at this address. The benchmark starts itself with it.
    #[arg(long, hide = true, value_name = "ADDRESS")]
    pub work_for: Option<SocketAddr>,
    /// Fill this store with operations that await their completion, and report. The benchmark
    /// starts itself with it.
    #[arg(long, hide = true, value_name = "URL")]
    pub await_in: Option<String>,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    processes: usize,
    concurrency: usize,
    lifecycles: u64,
    lifecycles_per_s: f64,
    /// From acceptance until a worker has the claim.
    start_delay: Latency,
    peers: Vec<PeerReport>,
    awaiting: Option<AwaitingReport>,
    goals: Vec<Goal>,
}

pub(crate) async fn run(args: Args) -> Result<Option<Report>, String> {
    if let Some(addr) = args.work_for {
        return worker::work_until_parent_is_gone(addr, &args).await.map(|()| None);
    }
    if let Some(url) = &args.await_in {
        return awaiting::fill_and_report(url, &args).await.map(|()| None);
    }
    if [args.processes, args.concurrency, args.producers, args.batch].contains(&0) || args.groups == 0 {
        return Err("no figure but --awaiting may be 0".into());
    }
    if args.batch > 1_000 || args.concurrency > 1_000 {
        return Err("--batch and --concurrency are at most 1,000".into());
    }
    if args.peer.iter().any(|peer| *peer != Peer::Bullmq) {
        return Err("bullmq is the only peer with worker processes here".into());
    }
    // Installed before anything is measured, run when nothing else is.
    let peers = peer::prepare(&args.peer, &args.store)?;
    let scratch = Scratch::on_any_store(&args.store)?;
    let server = Server::start(config(&scratch)?).await.map_err(|error| error.to_string())?;
    let measured = load::drive(&server, &args).await;
    server.shutdown().await;
    let run = measured?;
    let per_s = run.lifecycles as f64 / run.took.as_secs_f64();
    let load = peer_load(&args);
    let peers = peers.iter().map(|peer| peer.run(&load, per_s)).collect::<Result<Vec<_>, _>>()?;
    let awaiting = match args.awaiting {
        0 => None,
        _ => Some(awaiting::measure(&args).await?),
    };
    let goals = goals(&args, per_s, &peers, awaiting.as_ref());
    Ok(Some(Report {
        bench: "work",
        store: tidegate_server::backend::redact_url(&args.store),
        machine: Machine::detect(),
        processes: args.processes,
        concurrency: args.concurrency,
        lifecycles: run.lifecycles,
        lifecycles_per_s: per_s.round(),
        start_delay: run.start_delay.latency(),
        peers,
        awaiting,
        goals,
    }))
}

fn config(scratch: &Scratch) -> Result<Config, String> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let over = Overrides { listen: Some(listen), store_url: Some(scratch.url().to_owned()), workers: None };
    let text = format!("[[kind]]\nname = \"{KIND}\"\nworker = \"remote\"\n");
    // The environment configures the user's own server, not this one.
    Config::parse("bench", &text, &|_| None, &over, &[]).map_err(|problems| problems.to_string())
}

fn peer_load(args: &Args) -> PeerLoad {
    PeerLoad {
        store: args.store.clone(),
        seconds: args.seconds,
        producers: args.producers as u64,
        workers: args.concurrency as u64,
        processes: args.processes as u64,
        batch: args.batch as u64,
        groups: args.groups,
        // An empty job.
        payload: 0,
        outstanding: args.outstanding,
    }
}

fn goals(args: &Args, per_s: f64, peers: &[PeerReport], awaiting: Option<&AwaitingReport>) -> Vec<Goal> {
    let mut goals = Vec::new();
    if args.store.starts_with("file:") {
        goals.push(Goal::at_least("lifecycles per second on an embedded store", 15_000.0, per_s));
    }
    for peer in peers {
        goals.push(Goal::at_least("lifecycles per job of the peer", 2.5, peer.ours_to_theirs()));
    }
    if let Some(awaiting) = awaiting {
        goals.push(Goal::at_most("bytes of memory per awaiting operation", 300.0, awaiting.bytes_each()));
        goals.push(Goal::at_most("percent of a core while they wait", 1.0, awaiting.idle_cpu_percent()));
    }
    goals
}
