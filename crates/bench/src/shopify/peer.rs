//! The same load through shopify-api-node: as many processes as there are nodes, which share
//! nothing, each with a client for every shop. Its own limiter has its default settings.

mod process;

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::Load;
use super::node_run::simulator;
use super::shops::{self, BusyShopWork, Shop};
use super::window::{self, PointUsage};
use crate::nodes::TOKEN;
use crate::peer::{InstalledPackage, install_with_npm};
use process::Processes;

const NAME: &str = "shopify-api-node";

/// The figures of the peer.
#[derive(Debug, Serialize)]
pub(super) struct PeerReport {
    name: &'static str,
    version: Option<String>,
    runs_on: String,
    processes: usize,
    cases: Vec<Case>,
}

/// One way to use it.
#[derive(Debug, Serialize)]
struct Case {
    /// Which of its two limiters is on; it supports one or the other.
    limiter: &'static str,
    /// Whether each process has one call in flight per shop, or all that wait.
    one_at_a_time: bool,
    used: PointUsage,
    throttled_before_learned: u64,
    throttled_after_learned: u64,
    throttled_per_s: f64,
}

/// Its limiters, and whether calls are made one at a time.
const CASES: [(&str, bool); 3] = [("autoLimit", false), ("maxRetries", false), ("maxRetries", true)];

pub(super) fn install() -> Result<InstalledPackage, String> {
    install_with_npm("shopify", NAME)
}

pub(super) async fn run(installed: InstalledPackage, load: &Load) -> Result<PeerReport, String> {
    let mut cases = Vec::new();
    for (limiter, one_at_a_time) in CASES {
        let case = measure(&installed, load, limiter, one_at_a_time).await?;
        eprintln!("{case:?}");
        cases.push(case);
    }
    Ok(PeerReport {
        name: NAME,
        version: installed.version,
        runs_on: format!("node {}", installed.node_version),
        processes: load.processes,
        cases,
    })
}

async fn measure(
    installed: &InstalledPackage,
    load: &Load,
    limiter: &'static str,
    one_at_a_time: bool,
) -> Result<Case, String> {
    let sim = simulator(load).await?;
    let told = |number: usize| process_input(load, sim.addr().port(), (limiter, one_at_a_time), number);
    shops::apply_plans(sim.addr(), &load.shops).await?;
    let mut processes = Processes::start(&installed.main, (0..load.processes).map(told).collect()).await?;
    let learned = sim.stats().all.throttled;
    processes.go()?;
    tokio::time::sleep(load.warm_up).await;
    let start = sim.stats();
    tokio::time::sleep(load.time).await;
    let end = sim.stats();
    processes.check_running()?;
    let throttled = end.all.throttled - learned;
    let shops: Vec<&Shop> = load.shops.iter().collect();
    let seconds = (load.warm_up + load.time).max(Duration::from_secs(1)).as_secs_f64();
    Ok(Case {
        limiter,
        one_at_a_time,
        used: window::measure_usage(&shops, &start, &end),
        throttled_before_learned: learned,
        throttled_after_learned: throttled,
        throttled_per_s: (throttled as f64 / seconds).round(),
    })
}

/// Returns the input of a process: its share of what waits for each shop.
fn process_input(load: &Load, port: u16, (limiter, one_at_a_time): (&str, bool), number: usize) -> Value {
    let shop = |shop: &Shop| {
        let waiting = shop.waiting(load.backlog, BusyShopWork::MoreForTheBusy) / load.processes as f64;
        json!({ "name": shop.name, "waiting": waiting, "first": load.deck.first(shop.number) })
    };
    json!({
        "port": port,
        "token": TOKEN,
        "limiter": limiter,
        "one_at_a_time": one_at_a_time,
        "number": number,
        "processes": load.processes,
        "shops": load.shops.iter().map(shop).collect::<Vec<_>>(),
        "cards": load.deck,
    })
}
