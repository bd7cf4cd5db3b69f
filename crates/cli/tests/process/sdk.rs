//! Clients of Shopify from npm and PyPI, as they come, behind the paced proxy: they know nothing of
//! limits, and are told of none. The shop compresses what it answers for those who ask for it:
//! those from npm do, the one from PyPI does not.

use std::process::Command;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tidegate_sim::{ShopifySim, ShopifySimOptions};
use tokio::time::Instant;

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure};
use crate::languages::{node, python, run};

/// Calls that are made at once.
const CALLS: usize = 32;
/// The most points that the shop has: far less than the calls want together.
const MAXIMUM: u64 = 1_000;
/// Pages of a list, when they are read fifty at a time.
const PAGES: usize = 3;
/// The most runs of a client, of which one throttles nothing.
const RUNS_MAX: usize = 3;

/// A shop and a server before it.
struct ShopSetup {
    sim: ShopifySim,
    server: RunningServer,
    _dir: tempfile::TempDir,
}

impl ShopSetup {
    /// With limits that 32 calls at once run into, each of them soon over.
    async fn new() -> Self {
        let sim = ShopifySim::start(ShopifySimOptions::default()).await.unwrap();
        let shop = format!("http://{}", sim.addr());
        let figures =
            json!({ "maximum": MAXIMUM, "restore_per_s": 1_500, "rest_bucket": 400, "rest_per_s": 20 });
        let set = Caller::of(&shop).call(Method::POST, "/_sim/shops/acme", &[], Some(&figures)).await;
        assert_eq!(set.unwrap().0, 200);
        let dir = tempfile::tempdir().unwrap();
        let upstream = format!(
            "[[upstream]]\nname = \"acme\"\ndialect = \"shopify\"\nbase_url = \"{shop}/shops/acme\"\ntoken_env = \"ACME_TOKEN\"\n"
        );
        configure(dir.path(), 64, &upstream);
        let server = tokio::task::block_in_place(|| {
            RunningServer::start(dir.path(), "warn", Some(("ACME_TOKEN", "a token of the shop")))
        });
        Self { sim, server, _dir: dir }
    }

    /// Runs a client to its end, and gives what it says of each of its calls.
    async fn run(&self, mut client: Command) -> Vec<Value> {
        client.arg(format!("{}/proxy/acme", self.server.address)).arg(CALLS.to_string());
        let since = Instant::now();
        let said = tokio::task::spawn_blocking(move || run(&mut client)).await.unwrap();
        let took = since.elapsed();
        println!("{CALLS} at once in {took:?}: {:?}", self.sim.stats());
        assert!(took < Duration::from_secs(60), "{took:?}");
        let said = said.as_array().unwrap().clone();
        assert_eq!(said.len(), CALLS);
        let failed: Vec<&Value> = said.iter().filter(|call| !call["error"].is_null()).collect();
        assert!(failed.is_empty(), "{failed:?}");
        assert!(said.iter().all(|call| call["products"].as_u64() > Some(0)), "{said:?}");
        said
    }

    /// Each call was made once and behind the proxy, and no client was told to wait. Returns how
    /// many calls the shop throttled.
    async fn check(&self, calls: usize) -> u64 {
        let stats = self.sim.stats().all;
        assert_eq!(stats.throttled, stats.overstepped, "{stats:?}");
        assert_eq!(stats.calls, calls as u64 + stats.throttled, "{stats:?}");
        let listed = Caller::of(&self.server.address).get("/v1/operations?state=succeeded&limit=200").await;
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert_eq!(listed["operations"].as_array().map(Vec::len), Some(calls), "none went past it");
        stats.throttled
    }

    /// The client asked for compressed answers, and the proxy read each of them.
    fn check_compressed(&self) {
        let stats = self.sim.stats();
        assert_eq!(stats.compressed, stats.all.calls, "{stats:?}");
    }
}

/// Runs a client against shops until one of them throttles nothing. Pacing covers calls that are
/// half a second on their way; a machine that stands still for longer can have one throttled, which
/// the proxy repeats. Budgets that are believed too large throttle in every run.
async fn none_throttled(client: fn() -> Command, calls: usize, look: impl Fn(&ShopSetup, &[Value])) {
    for _ in 0..RUNS_MAX {
        let stage = ShopSetup::new().await;
        let said = stage.run(client()).await;
        look(&stage, &said);
        match stage.check(calls).await {
            0 => return,
            throttled => println!("the shop throttled {throttled}"),
        }
    }
    panic!("every run of {RUNS_MAX} was throttled");
}

/// Every list was read to its end.
fn check_lists(said: &[Value]) {
    let all: Vec<u64> = (1..=tidegate_sim::shopify::page::LIST_LEN).collect();
    assert!(said.iter().all(|call| call["ids"] == json!(all)), "{said:?}");
}

/// LIM-28, LIM-17: Shopify's own client, with 32 calls at once that want several times what the
/// shop's budget holds: no throttled answer reaches it, and each call is made once.
#[tokio::test(flavor = "multi_thread")]
async fn lim_28_shopifys_own_client_is_paced() {
    let _alone = ALONE.lock().await;
    none_throttled(
        || node("sdk/client.mjs"),
        CALLS,
        |stage, said| {
            stage.check_compressed();
            let cost: f64 = said.iter().filter_map(|call| call["cost"].as_f64()).sum();
            // A budget that was never short would prove nothing.
            assert!(cost > 2.0 * MAXIMUM as f64, "{cost}");
        },
    )
    .await;
}

/// LIM-28, LIM-17: `shopify-api-node`, 32 at once, paging to the end: every call is paced and none
/// is throttled.
#[tokio::test(flavor = "multi_thread")]
async fn lim_28_shopify_api_node_is_paced_to_the_last_page() {
    let _alone = ALONE.lock().await;
    none_throttled(
        || node("sdk/node.mjs"),
        CALLS * (1 + PAGES),
        |stage, said| {
            stage.check_compressed();
            check_lists(said);
        },
    )
    .await;
}

/// LIM-28, LIM-17: `ShopifyAPI` from PyPI, which follows links as they come, 32 at once, paging to
/// the end: every call is paced, none is throttled, and none goes past the proxy.
#[tokio::test(flavor = "multi_thread")]
async fn lim_28_shopify_api_of_python_stays_behind_the_proxy() {
    let _alone = ALONE.lock().await;
    none_throttled(
        || python("sdk/client.py"),
        CALLS * (1 + PAGES),
        |stage, said| {
            check_lists(said);
            let here = format!("{}/proxy/acme/", stage.server.address);
            let links: Vec<&str> = said
                .iter()
                .flat_map(|call| call["links"].as_array().unwrap())
                .filter_map(Value::as_str)
                .collect();
            assert_eq!(links.len(), CALLS * (PAGES - 1));
            assert!(links.iter().all(|link| link.starts_with(&here)), "{links:?}");
        },
    )
    .await;
}
