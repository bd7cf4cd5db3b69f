//! What can be said on the command line.

mod sim;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::deploy;
use crate::remote::{cluster, group, key, limit, op};
pub(crate) use sim::{HttpSimArgs, ShopifySimArgs, SimCommand};

const BEGIN: &str = "\
To begin:
  tidegate demo                  all of it at work on this machine, with a page to look at
  tidegate serve                 your own server; its configuration is tidegate.toml
  tidegate op submit --help      how to hand something in
  tidegate proxy --help          idempotent POSTs in front of a service of yours

Data is on stdout, everything else on stderr. Exits with 0 when done, 1 when it failed, 2 when called in a wrong way.";

/// The heading of what every command takes.
const ALWAYS: &str = "Every command";

const SERVING: &str = "\
What is said here goes before the environment (TIDEGATE_SERVER_LISTEN, TIDEGATE_STORE_URL, …), and that before the file.
Every key of the file is told in docs/configuration.md. Without any [[upstream]] in it nothing can be carried.

SIGTERM or ctrl-c ends it in order: calls under way may finish. A second one ends it at once.";

const PROXYING: &str = "\
Whose a key is must be chosen: --scope-header NAME or --unscoped, here or in the file.
When nobody knows whether a request was done (a time-out, a broken connection, a gateway's 502 or 504), its key is
released by default, so a repeat may run again: set on_unknown = \"hold\" in the file where money moves.
What is said here goes before the environment (TIDEGATE_PROXY_LISTEN, TIDEGATE_PROXY_STORE, …), and that before the file.
What it does is told in docs/proxy.md, every key of the file in crates/server/src/config/proxy.toml.

SIGTERM or ctrl-c ends it in order: requests in work may finish and are stored. A second one ends it at once.

Example:
  tidegate proxy --upstream http://127.0.0.1:8080 --scope-header X-Tenant";

/// Carries calls to other people's APIs: accepted once, in order per group, within limits, settled once.
#[derive(Parser, Debug)]
#[command(name = "tidegate", version, max_term_width = 100, after_help = BEGIN)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,
    /// When to use colours: auto (on a terminal, unless NO_COLOR is set), always, never.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", hide_possible_values = true, help_heading = ALWAYS)]
    pub color: Color,
    /// For scripts: JSON on stdout instead of text, and an error as JSON on stderr.
    #[arg(long, global = true, help_heading = ALWAYS)]
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
    /// How serve, proxy and demo write their log: text, json. Usually text on a terminal, else json.
    #[arg(long, global = true, value_enum, value_name = "FORMAT", hide_possible_values = true, help_heading = ALWAYS)]
    pub log_format: Option<LogFormat>,
    /// What they log: error, warn, info, debug, trace, or a list as in info,tidegate=debug. Usually info; demo: warn. Who
    /// changed something by hand is always logged, unless audit=off.
    #[arg(long, global = true, env = "TIDEGATE_LOG", value_name = "LEVEL", help_heading = ALWAYS)]
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
    #[command(after_help = SERVING)]
    Serve(ServeArgs),
    /// Put idempotent POSTs in front of any HTTP service: a repeat with the same Idempotency-Key gets the first answer.
    #[command(after_help = PROXYING)]
    Proxy(ProxyArgs),
    /// Show all of it at work, with simulated upstreams: no account, no key, no other server.
    Demo(DemoArgs),
    /// Run a simulated API to try things out against.
    #[command(subcommand)]
    Sim(SimCommand),
    /// Make a Discord guild what its template says: plan, apply, status.
    Deploy(deploy::DeployArgs),
    /// Hand in operations, look at them and operate on them.
    Op(op::OpArgs),
    /// Look at groups, pause and resume them.
    Group(group::GroupArgs),
    /// Look at limits and set them.
    Limit(limit::LimitArgs),
    /// Look at idempotency keys, release and expire them, and record what came of their requests.
    Key(key::KeyArgs),
    /// Look at the nodes that share a store.
    Cluster(cluster::ClusterArgs),
    /// Say what is wrong with a configuration, with line and column, as serve would in this environment; or as proxy
    /// would, when there is a `[proxy]` in it.
    CheckConfig {
        /// The file, as in tidegate.toml.
        file: PathBuf,
    },
}

/// How to serve.
#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    /// The configuration. Usually tidegate.toml of this folder, and without that the defaults.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where operations are kept: file:DIR, memory: which forgets them, or redis://… or postgres://… which many nodes
    /// share. Usually file:tidegate-data.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// Where to serve; port 0 lets the system choose. Usually 127.0.0.1:7400.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Calls under way at once. Usually 64.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub workers: Option<u32>,
}

/// How to put it in front of a service.
#[derive(clap::Args, Debug)]
pub(crate) struct ProxyArgs {
    /// The service that requests are sent on to, http:// or https://. A path in it is put before every path.
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Where to take requests; port 0 lets the system choose. Usually 127.0.0.1:7402.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = tidegate_server::config::parse_address)]
    pub listen: Option<SocketAddr>,
    /// Where keys and answers are kept: file:DIR, memory: which forgets them, or redis://… or postgres://… which many
    /// proxies share. Usually file:tidegate-proxy-data.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// How long an answer is kept, as in 90s, 10m, 1h or 7d. Usually 1h.
    #[arg(long, value_name = "TIME", value_parser = tidegate_server::config::parse_duration)]
    pub ttl: Option<Duration>,
    /// The header that tells callers apart, such as X-Tenant: each value of it has keys of its own. A request with a key
    /// and without this header is refused. Only a hash of it is kept. A repeat with a refreshed Authorization would be
    /// another caller's.
    #[arg(long, value_name = "NAME", conflicts_with = "unscoped")]
    pub scope_header: Option<String>,
    /// Callers are not told apart: there is only one, or they may see each other's answers.
    #[arg(long)]
    pub unscoped: bool,
    /// The configuration, in which everything else can be set. It is read only when it is named.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to serve /healthz, /readyz and /metrics, and on a loopback address alone /v1/keys. Usually 127.0.0.1:7401.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = tidegate_server::config::parse_address)]
    pub admin: Option<SocketAddr>,
}

/// How to show it.
#[derive(clap::Args, Debug)]
pub(crate) struct DemoArgs {
    /// End after this many seconds; without it, ctrl-c ends it.
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: Option<u64>,
    /// Where to serve the API and the page.
    #[arg(long, default_value = "127.0.0.1:7400", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
}
