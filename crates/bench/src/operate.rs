//! What an operator's views cost: the first view of the page and the metrics of a server that
//! stores millions of operations; then the lifecycles per second of a server without and with
//! tokens, traces and open pages. The page's own memory in a browser is not measured here.

mod load;
mod overhead;
mod sink;
mod views;

use std::net::{Ipv4Addr, SocketAddr};

use serde::Serialize;
use tidegate_server::Config;
use tidegate_server::config::Overrides;
use tidegate_upstream::http::UpstreamConfig;

use crate::call;
use crate::goal::Goal;
use crate::machine::Machine;
use overhead::OverheadReport;
use views::ViewsReport;

/// The largest first view, in bytes, and the longest time that it and the metrics may take.
const VIEW_BYTES: f64 = 120.0 * 1_024.0;
const VIEW_MS: f64 = 200.0;
const METRICS_MS: f64 = 20.0;
/// The least share of the plain throughput with each of these.
const WITH_TOKEN: f64 = 0.95;
const WITH_TRACES: f64 = 0.90;
const WITH_PAGES: f64 = 0.97;

/// Arguments of `bench operate`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The server's store: `file:DIR`, where fresh directories are created and removed, or
    /// `memory:`.
    #[arg(long, default_value = "file:tidegate-bench")]
    pub store: String,
    /// Operations that wait while views are measured.
    #[arg(long, default_value_t = 5_000_000)]
    pub operations: u64,
    /// Their groups.
    #[arg(long, default_value_t = 100_000)]
    pub groups: u64,
    /// Bytes of the body that each of them would send.
    #[arg(long, default_value_t = 64)]
    pub payload: usize,
    /// Requests for each view.
    #[arg(long, default_value_t = 50)]
    pub requests: usize,
    /// Keep-alive connections that each carry one operation at a time, from its acceptance to its
    /// end.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Open pages.
    #[arg(long, default_value_t = 10)]
    pub pages: usize,
    /// Seconds for each measurement of the throughput.
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// How often each is measured, in turns.
    #[arg(long, default_value_t = 3)]
    pub turns: usize,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    views: ViewsReport,
    overhead: OverheadReport,
    goals: Vec<Goal>,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    let counts = [args.requests, args.connections, args.pages, args.turns];
    if counts.contains(&0) || [args.operations, args.groups, args.seconds].contains(&0) {
        return Err("every count must be at least 1".into());
    }
    let views = views::measure(&args).await?;
    let overhead = overhead::measure(&args).await?;
    let goals = vec![
        Goal::at_most("bytes of the first view", VIEW_BYTES, views.overview.bytes as f64),
        Goal::at_most("first view p99, ms", VIEW_MS, views.overview.time.p99_ms()),
        Goal::at_most("metrics p99, ms", METRICS_MS, views.metrics.time.p99_ms()),
        Goal::at_least("throughput with a token", WITH_TOKEN, overhead.with_token),
        Goal::at_least("throughput with traces", WITH_TRACES, overhead.with_traces),
        Goal::at_least("throughput with open pages", WITH_PAGES, overhead.with_pages),
    ];
    Ok(Report { bench: "operate", store: args.store, machine: Machine::detect(), views, overhead, goals })
}

/// The configuration of a server on this store, with one upstream.
fn config(store_url: &str, base_url: &str) -> Result<Config, String> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let over = Overrides { listen: Some(listen), store_url: Some(store_url.to_owned()), workers: None };
    // The environment configures the user's own server, not this one.
    let mut config = Config::defaults(&|_| None, &over).map_err(|problems| problems.to_string())?;
    config.upstreams = vec![UpstreamConfig::new(call::UPSTREAM, base_url)];
    Ok(config)
}
