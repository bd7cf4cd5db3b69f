//! How fast calls are sent to a real HTTP upstream: with operations submitted while they are sent,
//! with a long queue whose payloads are in memory, and with one whose payloads are read back from
//! the store. Compared with a bare client that has as many calls in flight to the same upstream, in
//! the same run.

mod bare;
mod executor;
mod metered;
mod queue;
mod upstream;

use std::collections::BTreeMap;

use serde::Serialize;
use tokio::time::Instant;

use crate::goal::{Goal, to_thousandths};
use crate::machine::{Machine, cpu_seconds};
use crate::report::median;
use crate::server_process::ServerProcess;

/// Minimum share of the speed with a short queue.
const DEEP_MIN: f64 = 0.85;
/// Minimum share of the speed of the bare client.
const SHALLOW_MIN: f64 = 0.6;

/// Arguments of `bench carry`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The store: `file:DIR`, where fresh directories are created and removed, `memory:`,
    /// `redis://…` or `postgres://…`.
    ///
    /// On a server each case uses a prefix or a schema of its own and leaves it there.
    #[arg(long, default_value = "file:tidegate-bench")]
    pub store: String,
    /// Operations per case; in the deep one all of them are queued before the first is sent.
    #[arg(long, default_value_t = 150_000)]
    pub operations: u64,
    /// How often everything is measured, in turns; the medians count.
    #[arg(long, default_value_t = 3)]
    pub turns: usize,
    /// Calls in flight.
    #[arg(long, default_value_t = 64)]
    pub workers: usize,
    /// Groups.
    #[arg(long, default_value_t = 1_000)]
    pub groups: u64,
    /// Bytes of the body that each call sends.
    #[arg(long, default_value_t = 512)]
    pub payload: usize,
    /// Producers of the shallow case, each waiting for its acceptance.
    #[arg(long, default_value_t = 64)]
    pub producers: usize,
    /// Maximum number of operations accepted but not sent, in the shallow case.
    #[arg(long, default_value_t = 2_000)]
    pub outstanding: usize,
    /// Run the upstream until the parent exits. The benchmark starts itself with it.
    #[arg(long, hide = true)]
    pub answer: bool,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    /// The server's version and durability settings, by its own names.
    server: Option<BTreeMap<String, String>>,
    operations: u64,
    workers: usize,
    groups: u64,
    payload: usize,
    bare: Figures,
    executor: Figures,
    shallow: Figures,
    in_memory: Figures,
    deep: Figures,
    /// Medians of the ratios of each turn: the figures of a turn belong together.
    deep_to_shallow: f64,
    deep_to_in_memory: f64,
    shallow_to_bare: f64,
    shallow_to_executor: f64,
    executor_to_bare: f64,
    goals: Vec<Goal>,
    turns: Vec<Turn>,
}

/// Medians of one case.
#[derive(Debug, Serialize)]
struct Figures {
    calls_per_s: f64,
    cpu_us_per_call: Option<f64>,
}

/// One run of each case.
#[derive(Debug, Serialize)]
struct Turn {
    /// The bare client.
    bare: Run,
    /// The HTTP executor without a queue.
    executor: Run,
    /// Operations submitted while they are sent.
    shallow: Run,
    /// Queued first, payloads in memory.
    in_memory: Run,
    /// Queued first, payloads in the store.
    deep: Run,
}

/// One run of one case.
#[derive(Debug, Serialize)]
struct Run {
    calls: u64,
    seconds: f64,
    calls_per_s: f64,
    /// CPU time of the calling process, without that of the upstream and of a store's server.
    cpu_us_per_call: Option<f64>,
}

/// Measures time and CPU time since a moment.
struct Stopwatch {
    since: Instant,
    cpu: Option<f64>,
}

impl Stopwatch {
    fn start() -> Self {
        Self { since: Instant::now(), cpu: cpu_seconds() }
    }

    fn stop(&self, calls: u64) -> Run {
        let seconds = self.since.elapsed().as_secs_f64();
        let cpu = self.cpu.zip(cpu_seconds()).map(|(before, after)| after - before);
        Run {
            calls,
            seconds: to_thousandths(seconds),
            calls_per_s: (calls as f64 / seconds).round(),
            cpu_us_per_call: cpu.map(|cpu| to_thousandths(cpu * 1e6 / calls as f64)),
        }
    }
}

impl Figures {
    fn of(turns: &[Turn], case: fn(&Turn) -> &Run) -> Self {
        let cpu: Option<Vec<f64>> = turns.iter().map(|turn| case(turn).cpu_us_per_call).collect();
        Self {
            calls_per_s: median(turns.iter().map(|turn| case(turn).calls_per_s)),
            cpu_us_per_call: cpu.map(|cpu| to_thousandths(median(cpu.into_iter()))),
        }
    }
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if args.answer {
        return Err(upstream::serve_until_parent_exits().await?);
    }
    let counts = [args.workers, args.turns, args.producers, args.outstanding];
    if args.operations == 0 || args.groups == 0 || counts.contains(&0) {
        let all = "--operations, --turns, --workers, --groups, --producers and --outstanding";
        return Err(format!("{all} must be at least 1"));
    }
    let upstream = ServerProcess::start_self(&["--answer"]).await?;
    let (mut turns, mut server) = (Vec::new(), BTreeMap::new());
    for turn in 1..=args.turns {
        eprintln!("turn {turn} of {}: the bare client", args.turns);
        let bare = bare::measure(&args, &upstream).await?;
        eprintln!("turn {turn} of {}: the executor alone", args.turns);
        let executor = executor::measure(&args, &upstream).await?;
        eprintln!("turn {turn} of {}: a short queue", args.turns);
        let shallow = queue::shallow(&args, &upstream, &mut server).await?;
        eprintln!("turn {turn} of {}: a long queue in memory", args.turns);
        let in_memory = queue::in_memory(&args, &upstream).await?;
        eprintln!("turn {turn} of {}: a long queue in the store", args.turns);
        let deep = queue::deep(&args, &upstream).await?;
        turns.push(Turn { bare, executor, shallow, in_memory, deep });
    }
    Ok(report(&args, server, turns))
}

fn report(args: &Args, server: BTreeMap<String, String>, turns: Vec<Turn>) -> Report {
    let ratio = |one: fn(&Turn) -> &Run, of: fn(&Turn) -> &Run| {
        median(turns.iter().map(|turn| one(turn).calls_per_s / of(turn).calls_per_s))
    };
    let deep_to_shallow = ratio(|turn| &turn.deep, |turn| &turn.shallow);
    let shallow_to_bare = ratio(|turn| &turn.shallow, |turn| &turn.bare);
    Report {
        bench: "carry",
        store: tidegate_server::backend::redact_url(&args.store),
        machine: Machine::detect(),
        server: (!server.is_empty()).then_some(server),
        operations: args.operations,
        workers: args.workers,
        groups: args.groups,
        payload: args.payload,
        bare: Figures::of(&turns, |turn| &turn.bare),
        executor: Figures::of(&turns, |turn| &turn.executor),
        shallow: Figures::of(&turns, |turn| &turn.shallow),
        in_memory: Figures::of(&turns, |turn| &turn.in_memory),
        deep: Figures::of(&turns, |turn| &turn.deep),
        deep_to_shallow: to_thousandths(deep_to_shallow),
        deep_to_in_memory: to_thousandths(ratio(|turn| &turn.deep, |turn| &turn.in_memory)),
        shallow_to_bare: to_thousandths(shallow_to_bare),
        shallow_to_executor: to_thousandths(ratio(|turn| &turn.shallow, |turn| &turn.executor)),
        executor_to_bare: to_thousandths(ratio(|turn| &turn.executor, |turn| &turn.bare)),
        goals: vec![
            Goal::at_least("a long queue, of the speed of a short one", DEEP_MIN, deep_to_shallow),
            Goal::at_least("a short queue, of the speed of the bare client", SHALLOW_MIN, shallow_to_bare),
        ],
        turns,
    }
}

#[cfg(test)]
mod tests;
