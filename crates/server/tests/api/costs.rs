//! What calls cost, by shape: from a store that keeps costs, and from one that does not.

use std::path::Path;
use std::time::Duration;

use reqwest::Client;
use serde_json::json;
use tidegate_core::operation::MICRO;
use tidegate_core::{Fence, OperationId, Seq, Time};
use tidegate_server::Server;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tidegate_store::costs::Cost;
use tidegate_store::log::Batch;
use tidegate_store::{Clock, Log, WallClock};
use tidegate_store_embedded::{EmbeddedStore, Options};

use crate::support::{World, config_on, within};

const HOUR: Duration = Duration::from_secs(3_600);

fn cost(at: Time, limit: &str, shape: &str, requested: u64, actual: Option<u64>) -> Cost {
    Cost {
        at,
        operation: OperationId::new(at, 0, Seq(1)),
        claim: Fence(1),
        nth: 0,
        limit: limit.into(),
        shape: shape.into(),
        requested: requested * MICRO,
        actual: actual.map(|actual| actual * MICRO),
        restore_rate: None,
    }
}

/// Fills a file store with costs, as calls would leave them.
async fn fill(dir: &Path, now: Time) {
    let store = EmbeddedStore::open(dir, Options::default()).unwrap();
    let owner = store.acquire_partition(0, "before", Duration::from_secs(1)).await.unwrap();
    let costs = vec![
        cost(now.before(2 * HOUR), "acme/points", "GetOrders#1f0c", 52, Some(7)),
        cost(now.before(2 * HOUR), "acme/points", "GetOrders#1f0c", 52, Some(8)),
        cost(now.before(HOUR / 2), "acme/points", "ListShops#77", 10, None),
        cost(now.before(HOUR / 2), "other/points", "GetOrders#1f0c", 3, Some(3)),
        cost(now.before(50 * HOUR), "acme/points", "Old#1", 900, Some(900)),
    ];
    store.append(owner, Batch { costs, ..Batch::default() }).await.unwrap();
    store.release(owner).await.unwrap();
}

/// LIM-10: costs are shown by shape with their share of the limit, since a time, of one upstream; a
/// restart changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn lim_10_costs_are_shown_by_shape() {
    within(async {
        let dir = tempfile::tempdir().unwrap();
        let now = WallClock.now();
        fill(dir.path(), now).await;
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let url = format!("file:{}", dir.path().display());
        let server = Server::start(config_on(&url, &sim, "")).await.unwrap();
        let world = World { server, sim, client: Client::new() };
        let all = world.get("/v1/costs").await.json;
        assert_eq!((&all["kept"], &all["whole"]), (&json!(true), &json!(true)));
        let mut first = all["costs"][0].clone();
        assert!(first["last_at"].take().as_str().is_some_and(|at| at.ends_with('Z')));
        let wanted = json!({
            "name": "GetOrders", "shape": "GetOrders#1f0c", "upstream": "acme", "limit": "acme/points", "calls": 2,
            "requested": 104, "actual": 15, "mean": 7.5, "share": 0.6, "last_at": null,
        });
        assert_eq!(first, wanted);
        let told = async |query: &str| {
            let costs = world.get(&format!("/v1/costs{query}")).await.json["costs"].take();
            let costs = costs.as_array().unwrap().iter();
            costs.map(|cost| format!("{} {}", cost["limit"], cost["name"]).replace('"', "")).collect::<Vec<_>>()
        };
        let (orders, shops, other) = ("acme/points GetOrders", "acme/points ListShops", "other/points GetOrders");
        assert_eq!(told("").await, [orders, shops, other]);
        assert_eq!(told("?upstream=acme&since_s=3600").await, [shops]);
        assert_eq!(told("?upstream=other").await, [other]);
        assert_eq!(told("?limit=1").await, [orders]);
        assert_eq!(told("?since_s=360000&limit=1").await, ["acme/points Old"]);
        assert_eq!(told("?upstream=nobody").await, Vec::<String>::new());
        for (query, field) in [("since_s=0", "since_s"), ("limit=201", "limit"), ("shape=x", "shape")] {
            world.get(&format!("/v1/costs?{query}")).await.refused(400, "TG0001", Some(field));
        }
    })
    .await;
}

/// LIM-10: a Redis without an archive keeps no costs, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn lim_10_a_store_without_tables_says_so() {
    within(async {
        let redis = tidegate_fixture::redis::RedisServer::start();
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let server = Server::start(config_on(&redis.url(), &sim, "")).await.unwrap();
        let world = World { server, sim, client: Client::new() };
        let all = world.get("/v1/costs").await.json;
        assert_eq!((&all["kept"], &all["costs"]), (&json!(false), &json!([])));
    })
    .await;
}
