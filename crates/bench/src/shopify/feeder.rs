//! Keeps work waiting for every shop, up to the configured amount: the simulator shows what has
//! been called, and as much is submitted again, to one node after the other.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::ShopifySim;
use tokio::time::{Instant, sleep_until};

use super::Load;
use super::delays::DelayRecorder;
use super::shops::{BusyShopWork, Shop};
use crate::call;
use crate::client::Client;

/// Groups per shop: within a group one call waits for the other.
const GROUPS: usize = 16;
/// How often to check whether more is needed.
const LOOK: Duration = Duration::from_millis(5);
/// Operations per request.
const BATCH_MAX: usize = 500;
const ACCEPTED: u16 = 202;
pub(super) const PATH: &str = "/admin/api/2026-04/graphql.json";

/// The backlog of one shop.
#[derive(Debug, Default)]
struct ShopBacklog {
    /// When each was submitted, and its expected cost, in order.
    waiting: VecDeque<(Instant, f64)>,
    points: f64,
    /// Calls with a response other than throttled.
    called: u64,
    handed_in: usize,
}

/// The backlogs of all shops.
pub(super) struct BacklogFeeder<'a> {
    load: &'a Load,
    work: BusyShopWork,
    sim: &'a ShopifySim,
    nodes: Vec<Client>,
    addrs: Vec<SocketAddr>,
    lines: Vec<ShopBacklog>,
    turn: usize,
}

/// Returns a query as an operation.
pub(super) fn operation(shop: &Shop, number: usize, text: &str) -> Value {
    json!({
        "kind": "http",
        "upstream": shop.name,
        "group": format!("{}:{}", shop.name, number % GROUPS),
        "request": { "method": "POST", "path": PATH, "body": { "query": text } },
    })
}

impl<'a> BacklogFeeder<'a> {
    pub(super) async fn new(
        load: &'a Load,
        work: BusyShopWork,
        sim: &'a ShopifySim,
        addrs: Vec<SocketAddr>,
    ) -> Result<Self, String> {
        let mut nodes = Vec::new();
        for addr in &addrs {
            nodes.push(Client::connect(*addr).await?);
        }
        let stats = sim.stats();
        let called = |shop: &Shop| stats.shops.get(&shop.name).map_or(0, |shop| shop.calls - shop.throttled);
        let lines =
            load.shops.iter().map(|shop| ShopBacklog { called: called(shop), ..ShopBacklog::default() });
        Ok(Self { lines: lines.collect(), load, work, sim, nodes, addrs, turn: 0 })
    }

    /// Feeds for a while; returns the delays of what was called meanwhile.
    pub(super) async fn run_for(&mut self, time: Duration) -> Result<DelayRecorder, String> {
        let mut delays = DelayRecorder::new(self.lines.len())?;
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.observe_calls(&mut delays);
            self.submit_more().await?;
            sleep_until((Instant::now() + LOOK).min(end)).await;
        }
        self.observe_calls(&mut delays);
        Ok(delays)
    }

    /// Removes the calls that were made from the backlogs.
    fn observe_calls(&mut self, delays: &mut DelayRecorder) {
        let (stats, now) = (self.sim.stats(), Instant::now());
        for (shop, line) in self.load.shops.iter().zip(&mut self.lines) {
            let Some(counts) = stats.shops.get(&shop.name) else { continue };
            let called = counts.calls - counts.throttled;
            for _ in line.called..called {
                let Some((since, points)) = line.waiting.pop_front() else { break };
                line.points -= points;
                delays.record(shop, now - since);
            }
            line.called = called;
        }
    }

    /// Fills the backlogs up.
    async fn submit_more(&mut self) -> Result<(), String> {
        let (mut batch, now) = (Vec::new(), Instant::now());
        for (shop, line) in self.load.shops.iter().zip(&mut self.lines) {
            let wanted = shop.waiting(self.load.backlog, self.work);
            while line.points < wanted && batch.len() < BATCH_MAX {
                let card = self.load.deck.query(shop.number, line.handed_in);
                batch.push(operation(shop, line.handed_in, &card.text));
                line.waiting.push_back((now, card.expected));
                line.points += card.expected;
                line.handed_in += 1;
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.turn = (self.turn + 1) % self.nodes.len();
        let request = call::batch(self.addrs[self.turn], &batch);
        let (status, body) = self.nodes[self.turn].send(&request).await?;
        let answer: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let refused =
            answer["operations"].as_array().and_then(|all| all.iter().find(|one| !one["error"].is_null()));
        match (status, refused) {
            (ACCEPTED, None) => Ok(()),
            (ACCEPTED, Some(refused)) => Err(format!("an operation was refused: {refused}")),
            _ => Err(format!("a batch was refused with {status}")),
        }
    }
}
