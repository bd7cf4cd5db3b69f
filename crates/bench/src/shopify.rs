//! Fifty shops of four plans with work waiting all the time: how much of what is restored is used,
//! how many responses are throttled, and whether every shop gets its turn. Through nodes on one
//! Redis, then through a client for Node. The simulator does the counting.

mod delays;
mod feeder;
mod goals;
mod node_run;
mod peer;
mod queries;
mod shops;
mod window;

use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Serialize;
use tidegate_fixture::redis::RedisServer;

use crate::goal::{Goal, to_thousandths};
use crate::machine::Machine;
use node_run::Run;
use peer::PeerReport;
use queries::QuerySet;
use shops::{BusyShopWork, Shop};

/// Arguments of `bench shopify`.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// The store: `redis://…`. Each run uses a prefix of its own in it and leaves it there. Without
    /// it a `redis-server` is started for the run.
    #[arg(long)]
    pub store: Option<String>,
    /// Nodes, and processes of the peer.
    #[arg(long, default_value_t = 4)]
    pub nodes: usize,
    /// Shops: of ten, four with 100 points per second, three with 200, two with 1,000 and one with
    /// 2,000. The first of the largest is the busy one.
    #[arg(long, default_value_t = 50)]
    pub shops: usize,
    /// Seconds to measure, each time.
    #[arg(long, default_value_t = 25)]
    pub seconds: u64,
    /// Seconds of warm-up, until as much is called as is submitted.
    #[arg(long, default_value_t = 8)]
    pub warm_up: u64,
    /// Seconds of work that wait for each shop; ten times as many for the busy one.
    #[arg(long, default_value_t = 5)]
    pub backlog: u64,
    /// Latency of each response of a shop.
    #[arg(long, default_value_t = 50)]
    pub latency_ms: u64,
    /// Leave out shopify-api-node.
    #[arg(long)]
    pub no_peer: bool,
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    bench: &'static str,
    store: String,
    machine: Machine,
    nodes: usize,
    shops: usize,
    seconds: u64,
    warm_up_s: u64,
    backlog_s: u64,
    latency_ms: u64,
    without_the_busy_shop: Run,
    with_the_busy_shop: Run,
    /// The mean start delay in the other shops, compared with that without the busy one.
    busy_shop_adds: f64,
    peer: Option<PeerReport>,
    goals: Vec<Goal>,
}

/// The load, the same for us and for the peer.
#[derive(Debug)]
struct Load {
    shops: Vec<Shop>,
    deck: QuerySet,
    processes: usize,
    backlog: Duration,
    warm_up: Duration,
    time: Duration,
    latency: Duration,
}

pub(crate) async fn run(args: Args) -> Result<Report, String> {
    if args.nodes == 0 || args.seconds == 0 || args.backlog == 0 || args.shops < shops::LEAST {
        let least = shops::LEAST;
        return Err(format!("--nodes, --seconds and --backlog must be at least 1, --shops at least {least}"));
    }
    let installed = if args.no_peer { None } else { Some(peer::install()?) };
    let (store, _redis) = store(args.store.clone()).await?;
    let load = Load {
        shops: shops::make_shops(args.shops),
        deck: QuerySet::draw(),
        processes: args.nodes,
        backlog: Duration::from_secs(args.backlog),
        warm_up: Duration::from_secs(args.warm_up),
        time: Duration::from_secs(args.seconds),
        latency: Duration::from_millis(args.latency_ms),
    };
    let without = node_run::run(&load, &store, BusyShopWork::NoneForTheBusy).await?;
    let with = node_run::run(&load, &store, BusyShopWork::MoreForTheBusy).await?;
    let peer = match installed {
        Some(installed) => Some(peer::run(installed, &load).await?),
        None => None,
    };
    let busy_shop_adds = with.mean_delay_ms() / without.mean_delay_ms();
    Ok(Report {
        bench: "shopify",
        store: tidegate_server::backend::redact_url(&store),
        machine: Machine::detect(),
        nodes: args.nodes,
        shops: args.shops,
        seconds: args.seconds,
        warm_up_s: args.warm_up,
        backlog_s: args.backlog,
        latency_ms: args.latency_ms,
        goals: goals::evaluate(&with, busy_shop_adds),
        without_the_busy_shop: without,
        with_the_busy_shop: with,
        busy_shop_adds: to_thousandths(busy_shop_adds),
        peer,
    })
}

/// Returns the given store, or one of its own that ends with the run.
async fn store(named: Option<String>) -> Result<(String, Option<RedisServer>), String> {
    if let Some(store) = named {
        return Ok((store, None));
    }
    let found =
        Command::new("redis-server").arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return Err("redis-server cannot be run: install it, or name a Redis with --store redis://…".into());
    }
    let server = tokio::task::spawn_blocking(RedisServer::start).await.map_err(|error| error.to_string())?;
    Ok((server.url(), Some(server)))
}

#[cfg(test)]
mod tests;
