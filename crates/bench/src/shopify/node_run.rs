//! The load through nodes on one Redis: first one call to each shop, from whose response its limit
//! is learned, then work for all of them.

use serde::Serialize;
use serde_json::Value;
use tidegate_sim::{ShopifySim, ShopifySimOptions};

use super::Load;
use super::delays::StartDelays;
use super::feeder::{BacklogFeeder, operation};
use super::shops::{self, BusyShopWork, Shop};
use super::window::{self, PointUsage};
use crate::call;
use crate::client::{Client, request};
use crate::nodes::{self, Nodes};

/// How long the first call of a shop may take.
const PATIENCE_MS: u64 = 30_000;

/// The figures of one run.
#[derive(Debug, Serialize)]
pub(super) struct Run {
    /// Usage during the measurement.
    pub used: PointUsage,
    /// Throttled responses up to the first response of each shop.
    throttled_before_learned: u64,
    /// Throttled responses from then on to the end.
    pub throttled_after_learned: u64,
    /// Delays of the shops that are not busy.
    pub start_delays: StartDelays,
    /// The mean delay of the busy shop.
    busy_shop_mean_ms: Option<f64>,
}

impl Run {
    pub(super) const fn mean_delay_ms(&self) -> f64 {
        self.start_delays.mean_ms
    }
}

/// Starts the simulated shops; their plans are applied later.
pub(super) async fn simulator(load: &Load) -> Result<ShopifySim, String> {
    let options = ShopifySimOptions { latency: load.latency, ..ShopifySimOptions::default() };
    ShopifySim::start(options).await.map_err(|error| error.to_string())
}

pub(super) async fn run(load: &Load, store: &str, work: BusyShopWork) -> Result<Run, String> {
    let sim = simulator(load).await?;
    let upstreams: String = load.shops.iter().map(|shop| shop.upstream(sim.addr())).collect();
    let nodes = Nodes::start(load.processes, &nodes::fresh_store_url(store)?, &upstreams).await?;
    let called: Vec<&Shop> =
        load.shops.iter().filter(|shop| shop.waiting(load.backlog, work) > 0.0).collect();
    shops::apply_plans(sim.addr(), &load.shops).await?;
    learn_limits(&nodes, &called).await?;
    let learned = sim.stats().all.throttled;
    let mut feed = BacklogFeeder::new(load, work, &sim, nodes.addrs()).await?;
    eprintln!("{} shops have work", called.len());
    feed.run_for(load.warm_up).await?;
    let start = sim.stats();
    let delays = feed.run_for(load.time).await?;
    let end = sim.stats();
    let run = Run {
        used: window::measure_usage(&called, &start, &end),
        throttled_before_learned: learned,
        throttled_after_learned: end.all.throttled - learned,
        start_delays: delays.summarize(&load.shops)?,
        busy_shop_mean_ms: delays.busy_mean_ms(&load.shops),
    };
    eprintln!("{run:?}");
    Ok(run)
}

/// Makes one call to each shop and waits for the responses.
async fn learn_limits(nodes: &Nodes, shops: &[&Shop]) -> Result<(), String> {
    let addr = *nodes.addrs().first().ok_or("no node is left")?;
    let first: Vec<Value> = shops.iter().map(|shop| operation(shop, 0, "{ shop { name } }")).collect();
    let mut client = Client::connect(addr).await?;
    let (status, body) = client.send(&call::batch(addr, &first)).await?;
    let accepted: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    for (at, shop) in shops.iter().enumerate() {
        let id = accepted["operations"][at]["id"].as_str();
        let id = id.ok_or_else(|| format!("the first call to {} failed with {status}", shop.name))?;
        let path = format!("/v1/operations/{id}?wait_ms={PATIENCE_MS}");
        let (_, body) = client.send(&request(addr, "GET", &path, "")).await?;
        let view: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        if view["state"] != "succeeded" {
            return Err(format!(
                "the first call to {} is {} after {PATIENCE_MS} ms",
                shop.name, view["state"]
            ));
        }
    }
    Ok(())
}
