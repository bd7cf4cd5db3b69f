//! The cost of a growing number of groups: a take on the model, and an engine in which all groups
//! wait.

mod idle;
mod steps;

use serde::Serialize;

use crate::machine::Machine;

/// Arguments of `bench groups`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Groups in the small case.
    #[arg(long, default_value_t = 10)]
    pub few: u64,
    /// Groups in the large case, and groups that wait while the CPU is watched.
    #[arg(long, default_value_t = 100_000)]
    pub many: u64,
    /// Operations per group.
    #[arg(long, default_value_t = 10)]
    pub depth: u64,
    /// Further groups that wait for one bucket.
    #[arg(long, default_value_t = 10_000)]
    pub waiting: u64,
    /// Operations taken and settled per case.
    #[arg(long, default_value_t = 400_000)]
    pub steps: u64,
    /// The store of the idle engine: `memory:`, or `file:DIR`, where a fresh directory is created
    /// and removed.
    #[arg(long, default_value = "memory:")]
    pub store: String,
    /// Seconds to watch the idle engine; 0 skips it.
    #[arg(long, default_value_t = 5)]
    pub idle_seconds: u64,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    machine: Machine,
    depth: u64,
    waiting_groups: u64,
    few: Case,
    many: Case,
    /// The large case's time divided by the small one's.
    ratio: f64,
    idle: Option<idle::IdleReport>,
}

/// One number of groups.
#[derive(Clone, Copy, Debug, Serialize)]
struct Case {
    groups: u64,
    steps: u64,
    ns_per_take_and_settle: f64,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if args.few == 0 || args.many == 0 || args.depth == 0 || args.steps == 0 {
        return Err("--few, --many, --depth and --steps must be at least 1".into());
    }
    let settings = args.clone();
    let measured = tokio::task::spawn_blocking(move || steps::measure(&settings)).await;
    let (few, many) = measured.map_err(|error| error.to_string())??;
    let idle = match args.idle_seconds {
        0 => None,
        _ => Some(idle::measure(&args).await?),
    };
    let ratio = many.ns_per_take_and_settle / few.ns_per_take_and_settle;
    Ok(Report {
        bench: "groups",
        machine: Machine::detect(),
        depth: args.depth,
        waiting_groups: args.waiting,
        few,
        many,
        ratio: (ratio * 100.0).round() / 100.0,
        idle,
    })
}
