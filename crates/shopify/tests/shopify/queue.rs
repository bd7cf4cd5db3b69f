//! Bulk operations in the queue, with a single worker: the cap and the lease of a shop limit them,
//! and none holds the worker.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate::{Engine, Executors, Options, Submission};
use tidegate_core::fact::LimitShape;
use tidegate_core::{OperationId, State, Verdict};
use tidegate_fixture::redis::RedisServer;
use tidegate_shopify::executor::{BulkUpstreams, KIND};
use tidegate_sim::{ShopifySim, ShopifySimOptions};
use tidegate_store::{SharedState, Store};
use tidegate_upstream::http::{TokenHeader, UpstreamConfig};
use tidegate_upstream::{Call, CallFuture, CallRequirements, FieldRefusal, Outcome, Secret, Upstream};
use tokio::time::Instant;

use crate::bulk::PRODUCTS;
use crate::world::{TOKEN, at, memory, ms, sim, until};

pub(crate) const ORDERS: &str = "{ orders { edges { node { id } } } }";
const SHOPS: [&str; 2] = ["acme", "other"];

/// One shop's base URL leads to a version of the API, as people copy it from Shopify's own pages.
fn executor(sim: &ShopifySim) -> BulkUpstreams {
    let config = |shop: &&str| {
        let below = if *shop == "other" { "/admin/api/2026-04" } else { "" };
        UpstreamConfig::new(*shop, format!("{}{below}", at(sim, shop)))
            .with_token(Secret::new(TOKEN))
            .with_token_header(TokenHeader::parse("x-shopify-access-token"))
    };
    BulkUpstreams::new(&SHOPS.iter().map(config).collect::<Vec<_>>()).unwrap()
}

/// A kind of operations that end at once.
struct QuickUpstream;

impl Upstream for QuickUpstream {
    fn check(&self, _: &[u8], _: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        Ok(CallRequirements::default())
    }

    fn carry<'a>(&'a self, _: Call<'a>) -> CallFuture<'a> {
        Box::pin(std::future::ready(Outcome::unanswered(Verdict::Done)))
    }
}

pub(crate) async fn engine(store: &Arc<dyn Store>, sim: &ShopifySim, options: Options) -> Engine {
    let shared: Arc<dyn SharedState> = Arc::clone(store) as _;
    let bulk = executor(sim).with_leases(&shared, |_| 1).unwrap();
    let executors: Executors = [
        (Arc::from(KIND), Arc::new(bulk) as Arc<dyn Upstream>),
        (Arc::from("quick"), Arc::new(QuickUpstream) as _),
    ]
    .into();
    let start = Instant::now();
    loop {
        let opened = Engine::builder(Arc::clone(store))
            .options(options.clone().with_workers(1))
            .executors(executors.clone())
            .limits(limits())
            .open()
            .await;
        match opened {
            Ok(engine) => return engine,
            // The lease of a dead one has to expire.
            Err(error) if start.elapsed() > ms(20_000) => panic!("{error}"),
            Err(_) => tokio::time::sleep(ms(50)).await,
        }
    }
}

/// Waits until an operation awaits its end at Shopify.
pub(crate) async fn awaiting(engine: &Engine, id: OperationId) {
    let start = Instant::now();
    while engine.why(id).await.unwrap().waiting_for != "completion" {
        assert!(start.elapsed() < ms(20_000), "{:?}", engine.why(id).await);
        tokio::time::sleep(ms(10)).await;
    }
}

/// Runs a node until `is_so` and lets it die: its tasks end with it, and nothing is released.
async fn crash_when(
    redis: &RedisServer,
    sim: &Arc<ShopifySim>,
    is_so: impl AsyncFnOnce(&Engine, OperationId) + Send + 'static,
) -> OperationId {
    let (url, sim) = (redis.url(), Arc::clone(sim));
    let dying = move || {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let id = runtime.block_on(async {
            let store: Arc<dyn Store> = tidegate_store_redis::open(&url).await.unwrap();
            let engine = engine(&store, &sim, short_leases()).await;
            let id = engine.submit(job("acme", "bulk:1", PRODUCTS)).await.unwrap().id;
            is_so(&engine, id).await;
            id
        });
        runtime.shutdown_background();
        id
    };
    tokio::task::spawn_blocking(dying).await.unwrap()
}

fn short_leases() -> Options {
    Options::default().with_lease(ms(1_000)).with_partition_lease(ms(1_000))
}

/// Returns the limits of both shops, as their dialect creates them.
fn limits() -> Vec<(Arc<str>, LimitShape)> {
    let drip = LimitShape::Drip { capacity: 1_000_000_000, refill_per_s: 50_000_000, margin: 0 };
    let of = |shop: &&str| {
        [
            (Arc::from(*shop), LimitShape::Gate),
            (Arc::from(format!("{shop}/points")), drip),
            (Arc::from(format!("{shop}/bulk")), LimitShape::Cap { at_once: 1 }),
        ]
    };
    SHOPS.iter().flat_map(of).collect()
}

/// Returns a job in an older version, of which Shopify runs one at a time and refuses others.
pub(crate) fn job(shop: &str, group: &str, query: &str) -> Submission {
    let request = json!({ "query": query, "api_version": "2025-10" });
    Submission::new(KIND, group, json!({ "upstream": shop, "request": request }).to_string())
}

pub(crate) async fn ended(engine: &Engine, id: OperationId) -> (State, Value) {
    let view = engine.wait(id, ms(60_000)).await.unwrap();
    (view.state, serde_json::from_slice(&view.result.unwrap_or_default()).unwrap_or_default())
}

fn started(sim: &ShopifySim, shop: &str) -> u64 {
    sim.stats().shops.get(shop).map_or(0, |shop| shop.bulk_started)
}

/// LIM-21, LIM-3, LIM-16, LIM-13: of two bulk jobs of one shop in the queue the second waits and
/// then runs, without an attempt spent and without Shopify having to refuse it; one of another shop
/// runs meanwhile. The only worker is free for a quick operation all the time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_21_lim_16_bulk_jobs_of_the_queue_on_redis() {
    let (server, sim) = (RedisServer::start(), sim(ms(2_500), 7).await);
    let store: Arc<dyn Store> = tidegate_store_redis::open(&server.url()).await.unwrap();
    let engine = engine(&store, &sim, Options::default()).await;
    let first = engine.submit(job("acme", "bulk:1", PRODUCTS)).await.unwrap().id;
    let second = engine.submit(job("acme", "bulk:2", ORDERS)).await.unwrap().id;
    let other = engine.submit(job("other", "bulk:3", PRODUCTS)).await.unwrap().id;
    let running = |shop: &str| sim.stats().shops.get(shop).map_or(0, |shop| shop.bulk_running);
    until("those of two shops run at once", || running("acme") == 1 && running("other") == 1).await;
    for id in [first, other] {
        awaiting(&engine, id).await;
    }
    let quick = engine.submit(Submission::new("quick", "quick:1", "{}")).await.unwrap().id;
    assert_eq!(ended(&engine, quick).await.0, State::Succeeded);
    assert!(running("acme") == 1 && running("other") == 1, "it passed them");
    assert_eq!(engine.get(second).await.unwrap().attempt, 0, "it waits, and no worker has it");
    for id in [first, second, other] {
        let (state, result) = ended(&engine, id).await;
        assert_eq!(
            (state, &result["status"], &result["object_count"]),
            (State::Succeeded, &"COMPLETED".into(), &7.into())
        );
        assert!(result["url"].as_str().unwrap().ends_with(".jsonl"), "{result}");
        assert_eq!(engine.get(id).await.unwrap().attempt, 1);
    }
    let stats = sim.stats();
    assert_eq!((stats.shops["acme"].bulk_started, stats.all.overstepped), (2, 0));
    let points =
        engine.limits().await.unwrap().into_iter().find(|limit| &*limit.name == "acme/points").unwrap();
    let LimitShape::Drip { capacity, .. } = points.shape else { panic!("{points:?}") };
    assert_eq!(capacity, 2_000_000_000, "the budget is learned from its responses");
    engine.drain().await;
}

/// LIM-29: a node dies in the middle of a bulk job: the next owner goes on polling it, in the same
/// attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_29_after_a_crash_the_running_one_is_polled_on() {
    let (server, sim) = (RedisServer::start(), Arc::new(sim(ms(4_000), 7).await));
    let id = crash_when(&server, &sim, async |engine, id| awaiting(engine, id).await).await;
    let store: Arc<dyn Store> = tidegate_store_redis::open(&server.url()).await.unwrap();
    let engine = engine(&store, &sim, short_leases()).await;
    let (state, result) = ended(&engine, id).await;
    assert_eq!((state, &result["status"]), (State::Succeeded, &"COMPLETED".into()));
    assert_eq!(engine.get(id).await.unwrap().attempt, 1);
    assert_eq!((started(&sim, "acme"), sim.stats().all.overstepped), (1, 0));
}

/// LIM-29: a node dies before it knows whether its bulk job was started: the next owner looks first
/// and adopts it, never two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_29_after_a_crash_a_start_is_looked_for() {
    let options = ShopifySimOptions { bulk_takes: ms(6_000), latency: ms(500), ..Default::default() };
    let (server, sim) = (RedisServer::start(), Arc::new(ShopifySim::start(options).await.unwrap()));
    let seen = Arc::clone(&sim);
    let crash = async move |_: &Engine, _| until("it has started", || started(&seen, "acme") == 1).await;
    let id = crash_when(&server, &sim, crash).await;
    let store: Arc<dyn Store> = tidegate_store_redis::open(&server.url()).await.unwrap();
    let engine = engine(&store, &sim, short_leases()).await;
    let (state, result) = ended(&engine, id).await;
    assert_eq!((state, &result["status"]), (State::Succeeded, &"COMPLETED".into()));
    assert_eq!(engine.get(id).await.unwrap().attempt, 2, "the second attempt looked first");
    assert_eq!((started(&sim, "acme"), sim.stats().all.overstepped), (1, 0));
}

/// LIM-29: a drain does not wait for what runs at Shopify, and the next owner polls it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_29_after_a_drain_the_next_owner_polls_it() {
    let (store, sim) = (memory(), sim(ms(2_500), 7).await);
    let leaving = engine(&store, &sim, Options::default()).await;
    let id = leaving.submit(job("acme", "bulk:1", PRODUCTS)).await.unwrap().id;
    awaiting(&leaving, id).await;
    leaving.drain().await;
    drop(leaving);
    assert_eq!(sim.stats().shops["acme"].bulk_running, 1, "the drain was quick");
    let engine = engine(&store, &sim, Options::default()).await;
    assert_eq!(ended(&engine, id).await.0, State::Succeeded);
    assert_eq!(engine.get(id).await.unwrap().attempt, 1);
    assert_eq!((started(&sim, "acme"), sim.stats().all.overstepped), (1, 0));
}

/// OPS-9: a cancel stops the bulk operation at Shopify, and the job ends when it has stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_9_a_cancel_stops_it_at_shopify() {
    let (store, sim) = (memory(), sim(ms(5_000), 7).await);
    let engine = engine(&store, &sim, Options::default()).await;
    let id = engine.submit(job("acme", "bulk:1", PRODUCTS)).await.unwrap().id;
    awaiting(&engine, id).await;
    engine.cancel(id).await.unwrap();
    let (state, result) = ended(&engine, id).await;
    assert_eq!((state, &result["status"]), (State::Canceled, &"CANCELED".into()));
    assert_eq!(sim.stats().shops["acme"].bulk_running, 0);
}

/// LIM-16: another owner's operation in the shop makes the job wait, with no attempt spent and no
/// busy loop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_16_busy_at_shopify_spends_no_attempt() {
    let (store, sim) = (memory(), sim(ms(60_000), 7).await);
    let theirs = crate::world::builder(&memory(), &at(&sim, "acme"))
        .version("2025-10".parse().unwrap())
        .build()
        .unwrap();
    let _running = theirs.bulk().query(ORDERS).await.unwrap();
    let engine = engine(&store, &sim, Options::default()).await;
    let id = engine.submit(job("acme", "bulk:1", PRODUCTS)).await.unwrap().id;
    until("it was turned away", || sim.stats().all.overstepped > 0).await;
    tokio::time::sleep(ms(700)).await;
    let view = engine.get(id).await.unwrap();
    assert!(!view.state.is_ended() && view.attempt == 0, "{view:?}");
    let said = view.fault.unwrap().message;
    assert!(
        said.starts_with("The shop already runs the maximum number of bulk operations: gid://"),
        "{said}"
    );
    assert_eq!(sim.stats().all.overstepped, 1, "it was asked once");
}
