//! What can be said on the command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use crate::remote::{group, limit, op};

/// Carries calls to other people's APIs: accepted once, in order per group, within limits, settled once.
#[derive(Parser, Debug)]
#[command(name = "tidegate", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// JSON on stdout instead of a table.
    #[arg(long, global = true)]
    pub json: bool,
    #[command(flatten)]
    pub log: LogArgs,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How the log is written.
#[derive(clap::Args, Debug)]
pub(crate) struct LogArgs {
    /// How the log is written: text on a terminal, else JSON.
    #[arg(long, global = true, value_enum)]
    pub log_format: Option<LogFormat>,
    /// What is logged: error, warn, info, debug, trace, or a list such as info,tidegate=debug. Usually info, and
    /// warn for the demo.
    #[arg(long, global = true, env = "TIDEGATE_LOG")]
    pub log_level: Option<String>,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One object on each line.
    Json,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Serve the API and the page, and carry operations.
    Serve(ServeArgs),
    /// Show all of it at work, with simulated upstreams: no account, no key, no other server.
    Demo(DemoArgs),
    /// Run one simulator.
    #[command(subcommand)]
    Sim(SimCommand),
    /// Hand in operations, look at them and operate on them.
    Op(op::OpArgs),
    /// Look at groups, pause and resume them.
    Group(group::GroupArgs),
    /// Look at limits and set them.
    Limit(limit::LimitArgs),
    /// Measure, beside the ceiling or the peer it is compared with; prints JSON.
    #[command(subcommand)]
    Bench(tidegate_bench::Bench),
    /// Say what is wrong with a configuration, with line and column.
    CheckConfig {
        /// The file.
        file: PathBuf,
    },
}

/// How to serve.
#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    /// The configuration; tidegate.toml when that is there.
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// Where operations are kept: file:DIR or memory:.
    #[arg(long)]
    pub store: Option<String>,
    /// Where to serve, as in 127.0.0.1:7400.
    #[arg(long)]
    pub listen: Option<SocketAddr>,
    /// Calls under way at once.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub workers: Option<u32>,
}

/// How to show it.
#[derive(clap::Args, Debug)]
pub(crate) struct DemoArgs {
    /// End after this many seconds.
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: Option<u64>,
    /// Where to serve the API and the page.
    #[arg(long, default_value = "127.0.0.1:7400")]
    pub listen: SocketAddr,
}

/// Which simulator.
#[derive(Subcommand, Debug)]
pub(crate) enum SimCommand {
    /// A plain HTTP API that enforces a limit and fails as it is told. Counts are at /_sim/stats.
    Http(HttpSimArgs),
}

/// How it behaves.
#[derive(clap::Args, Debug)]
pub(crate) struct HttpSimArgs {
    /// Where it listens; port 0 lets the system choose.
    #[arg(long, default_value = "127.0.0.1:7410")]
    pub listen: SocketAddr,
    /// What its bucket holds, in calls.
    #[arg(long, default_value_t = 40)]
    pub capacity: u64,
    /// What comes back each second; without it there is no limit.
    #[arg(long)]
    pub refill_per_s: Option<f64>,
    /// How long each answer takes.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub latency_ms: u64,
    /// How often a call fails without effect, 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    pub fail_rate: f64,
    /// How often the answer is dropped after the effect, 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    pub cut_rate: f64,
    /// Which calls fail and which are cut.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}
