//! The command-line arguments, parsed with clap.

#[cfg(feature = "sim")]
mod sim;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::client::RemoteArgs;
use crate::deploy;
use crate::remote::{cluster, flight, generation, group, key, ledger, limit, op, provider};
use crate::token;
#[cfg(feature = "sim")]
pub(crate) use sim::{FaultArgs, HttpSimArgs, ShopifySimArgs, SimCommand};

const BEGIN: &str = "\
Getting started:
  tidegate demo                  a demo on this machine, with a status page
  tidegate serve                 your own server, configured in tidegate.toml
  tidegate op submit --help      how to submit an operation
  tidegate proxy --help          idempotent POSTs in front of your own service

Data goes to stdout, everything else to stderr.
Exit codes: 0 success, 1 failure, 2 wrong usage.";

/// The help heading of the options that every command takes.
const ALWAYS: &str = "Every command";

const SERVING: &str = "\
Options override environment variables (TIDEGATE_SERVER_LISTEN, TIDEGATE_STORE_URL, …), which
override the file. docs/configuration.md describes every key of the file. The server needs at least
one [[upstream]] to send anything.

SIGTERM or ctrl-c shuts down gracefully: calls in flight may finish. A second one stops at once.";

const PROXYING: &str = "\
You must choose how keys are scoped to callers: --scope-header NAME or --unscoped, as an option or
in the file.
When the outcome of a request is unknown (a timeout, a broken connection, a gateway's 502 or 504),
its key is released by default, so a repeat may run again. Set on_unknown = \"hold\" in the file
where money moves.
Options override environment variables (TIDEGATE_PROXY_LISTEN, TIDEGATE_PROXY_STORE, …), which
override the file. docs/proxy.md describes the proxy, crates/server/src/config/proxy.toml every key
of the file.

SIGTERM or ctrl-c shuts down gracefully: requests in flight may finish and their responses are
stored. A second one stops at once.

Example:
  tidegate proxy --upstream http://127.0.0.1:8080 --scope-header X-Tenant";

const WORKING: &str = "\
The server needs a [[kind]] with the name of a built-in kind, such as http, and worker = \"remote\";
this command needs the same [[upstream]] sections, and their credentials. docs/workers.md describes
the protocol, for workers of your own kinds.

SIGTERM or ctrl-c stops gracefully: operations in progress may finish. A second one stops at once.

Example:
  tidegate worker --server http://127.0.0.1:7400 --concurrency 16 --kinds http";

/// Sends calls to third-party APIs: accepted once, in order per group, within limits, settled once.
#[derive(Parser, Debug)]
#[command(name = "tidegate", version, max_term_width = 100, after_help = BEGIN)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,
    /// When to use colours: auto (on a terminal, unless NO_COLOR is set), always, never.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN", hide_possible_values = true, help_heading = ALWAYS)]
    pub color: Color,
    /// Print JSON on stdout instead of text, and errors as JSON on stderr, for scripts.
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

/// The options of the log.
#[derive(clap::Args, Debug)]
pub(crate) struct LogArgs {
    /// Log format of serve, proxy and demo: text, json. Default: text on a terminal, else json.
    #[arg(long, global = true, value_enum, value_name = "FORMAT", hide_possible_values = true, help_heading = ALWAYS)]
    pub log_format: Option<LogFormat>,
    /// Log level: error, warn, info, debug, trace, or a list such as info,tidegate=debug. Default:
    /// info; demo: warn. Changes made by an operator are always logged, unless audit=off.
    #[arg(long, global = true, env = "TIDEGATE_LOG", value_name = "LEVEL", help_heading = ALWAYS)]
    pub log_level: Option<String>,
}

/// The format of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable.
    Text,
    /// One object per line.
    Json,
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Serve the API and the status page, and execute operations.
    #[command(after_help = SERVING)]
    Serve(ServeArgs),
    /// Make POSTs to any HTTP service idempotent: a repeat with the same Idempotency-Key gets the
    /// first response.
    #[command(after_help = PROXYING)]
    Proxy(ProxyArgs),
    /// Execute operations of built-in kinds for a server that leaves them to remote workers.
    #[command(after_help = WORKING)]
    Worker(WorkerArgs),
    /// Run a demo with simulated upstreams: no account, no key, no other server.
    #[cfg(feature = "sim")]
    Demo(DemoArgs),
    /// Run a simulated API to test against.
    #[cfg(feature = "sim")]
    #[command(subcommand)]
    Sim(SimCommand),
    /// Deploy a template to a Discord guild: plan, apply, status.
    Deploy(deploy::DeployArgs),
    /// Submit, inspect, cancel, rerun and resolve operations.
    Op(op::OpArgs),
    /// Inspect, pause and resume groups.
    Group(group::GroupArgs),
    /// Inspect and set limits.
    Limit(limit::LimitArgs),
    /// Inspect, release and expire idempotency keys, and record the outcomes of their requests.
    Key(key::KeyArgs),
    /// Inspect which entities of other modules are being asked for.
    Flight(flight::FlightArgs),
    /// Create, inspect and cancel generations: pictures and videos from several providers.
    Generation(generation::GenerationArgs),
    /// Inspect the providers of generations, and set their limits.
    Provider(provider::ProviderArgs),
    /// List attempts at providers, and what may have been billed twice.
    Ledger(ledger::LedgerArgs),
    /// Inspect the nodes that share a store.
    Cluster(cluster::ClusterArgs),
    /// Create, list and revoke tokens for callers of a server.
    Token(token::TokenArgs),
    /// Check a configuration file in this environment and report problems with line and column, as
    /// serve would, or as proxy would if the file has a `[proxy]` table.
    CheckConfig {
        /// The configuration file, such as tidegate.toml.
        file: PathBuf,
    },
}

/// The options of `serve`.
#[derive(clap::Args, Debug)]
pub(crate) struct ServeArgs {
    /// The configuration file. Default: tidegate.toml in the current directory if it exists.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where operations are stored: file:DIR, memory: (lost on exit), or redis://… or postgres://…,
    /// which several nodes can share. Default: file:tidegate-data.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// The address to listen on; with port 0 the system chooses one. Default: 127.0.0.1:7400.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// The maximum number of calls in flight. Default: 64.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub workers: Option<u32>,
}

/// The options of `proxy`.
#[derive(clap::Args, Debug)]
pub(crate) struct ProxyArgs {
    /// The service to forward requests to, http:// or https://. Its path, if any, is prepended to
    /// every request path.
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// The address to listen on; with port 0 the system chooses one. Default: 127.0.0.1:7402.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = tidegate_server::config::parse_address)]
    pub listen: Option<SocketAddr>,
    /// Where keys and responses are stored: file:DIR, memory: (lost on exit), or redis://… or
    /// postgres://…, which several proxies can share. Default: file:tidegate-proxy-data.
    #[arg(long, value_name = "URL")]
    pub store: Option<String>,
    /// How long a response is kept, such as 90s, 10m, 1h or 7d. Default: 1h.
    #[arg(long, value_name = "TIME", value_parser = tidegate_server::config::parse_duration)]
    pub ttl: Option<Duration>,
    /// The header that identifies the caller, such as X-Tenant: each value has its own keys. A
    /// request with a key but without this header is refused. Only a hash of the value is stored.
    /// Avoid Authorization: a repeat with a refreshed token would count as another caller.
    #[arg(long, value_name = "NAME", conflicts_with = "unscoped")]
    pub scope_header: Option<String>,
    /// Do not distinguish callers: there is only one, or they may see each other's responses.
    #[arg(long)]
    pub unscoped: bool,
    /// The configuration file, which has all other settings. There is no default file.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The address for /healthz, /readyz and /metrics, and, only if it is a loopback address,
    /// /v1/keys. Default: 127.0.0.1:7401.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = tidegate_server::config::parse_address)]
    pub admin: Option<SocketAddr>,
}

/// The options of `worker`.
#[derive(clap::Args, Debug)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The maximum number of operations at once.
    #[arg(long, default_value_t = 16, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub concurrency: u32,
    /// The kinds to execute, comma-separated. Default: all built-in kinds that the configuration
    /// leaves to remote workers.
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    pub kinds: Vec<String>,
    /// The configuration file with the upstreams. Default: tidegate.toml in the current directory
    /// if it exists.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How long the server waits for a sign of this worker before others get its operations, in
    /// seconds.
    #[arg(long, default_value_t = 30, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub lease_s: u64,
}

/// The options of `demo`.
#[cfg(feature = "sim")]
#[derive(clap::Args, Debug)]
pub(crate) struct DemoArgs {
    /// Stop after this many seconds. Default: run until ctrl-c.
    #[arg(long = "for", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: Option<u64>,
    /// The address for the API and the status page.
    #[arg(long, default_value = "127.0.0.1:7400", value_name = "ADDRESS:PORT")]
    pub listen: SocketAddr,
}
