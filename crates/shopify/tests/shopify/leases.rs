//! The lease of a shop, held by jobs of the queue and by programs with the client library.

use std::sync::Arc;

use serde_json::json;
use tidegate::Options;
use tidegate_core::{State, Time, Verdict};
use tidegate_fixture::redis::RedisServer;
use tidegate_limits::NamedLease;
use tidegate_shopify::executor::BulkUpstreams;
use tidegate_store::{SharedState, Store};
use tokio::time::Instant;

use crate::bulk::PRODUCTS;
use crate::executor::{ID, attempt, awaited, poll, query, shop, started, status};
use crate::queue::{ORDERS, awaiting, ended, engine, job};
use crate::scripted::{ScriptedReply, ScriptedServer, data};
use crate::world::{at, builder, memory, ms, sim};

const LEASE: &str = "bulk-lock:acme";

fn leased(store: &Arc<dyn Store>, url: &str) -> BulkUpstreams {
    let shared: Arc<dyn SharedState> = Arc::clone(store) as _;
    shop(url).with_leases(&shared, |_| 1).unwrap()
}

/// The fence under which the lease is held.
async fn holder(store: &Arc<dyn Store>) -> Option<u64> {
    let status = store.lease_status(LEASE).await.unwrap()?;
    status.held_until.map(|_| status.fence)
}

async fn held_until(store: &Arc<dyn Store>) -> Option<Time> {
    store.lease_status(LEASE).await.unwrap()?.held_until
}

/// LIM-15, LIM-16: a job holds the lease from its start to its end, over its polls, also after one
/// that failed. A lease that was lost is acquired again.
#[tokio::test]
async fn lim_15_a_job_holds_the_lease_until_its_end() {
    let replies = [
        started(),
        status("RUNNING"),
        ScriptedReply::status(502),
        status("RUNNING"),
        status("RUNNING"),
        status("COMPLETED"),
        status("COMPLETED"),
    ];
    let (server, store) = (ScriptedServer::answering(replies.to_vec()).await, memory());
    let shop = leased(&store, &server.url());
    let (_, note) = awaited(&attempt(&shop, &query(), 1).await);
    assert_eq!(holder(&store).await, Some(1));
    let before = held_until(&store).await;
    let (_, note) = awaited(&poll(&shop, &note, false).await);
    assert!(held_until(&store).await > before, "each poll renews it");
    let note = poll(&shop, &note, false).await.job.unwrap();
    assert_eq!(holder(&store).await, Some(1));
    let stolen = tidegate_core::shared::lease::Lease { fence: 1, until: Time::ZERO };
    assert!(store.release_lease(LEASE, stolen).await.unwrap());
    let (_, note) = awaited(&poll(&shop, &note, false).await);
    assert_eq!(holder(&store).await, Some(2), "acquired again");
    let (_, note) = awaited(&poll(&shop, &note, false).await);
    assert_eq!(holder(&store).await, Some(2));
    assert_eq!(poll(&shop, &note, false).await.verdict, Verdict::Done);
    assert_eq!(holder(&store).await, None);
    // A crash lost what the last poll found, and another program has the lease by now.
    store.acquire_lease(LEASE, ms(60_000)).await.unwrap();
    assert_eq!(poll(&shop, &note, false).await.verdict, Verdict::Done);
    assert_eq!(holder(&store).await, Some(3), "it is given back once, by its fence");
}

/// LIM-15: a job keeps its lease over a restart of the server, and gives it back at its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_15_a_restart_keeps_the_lease() {
    let (store, sim) = (memory(), sim(ms(1_500), 7).await);
    let leaving = engine(&store, &sim, Options::default()).await;
    let id = leaving.submit(job("acme", "bulk:1", PRODUCTS)).await.unwrap().id;
    awaiting(&leaving, id).await;
    leaving.drain().await;
    drop(leaving);
    assert_eq!(holder(&store).await, Some(1));
    let engine = engine(&store, &sim, Options::default()).await;
    assert_eq!(ended(&engine, id).await.0, State::Succeeded);
    let status = store.lease_status(LEASE).await.unwrap().unwrap();
    assert_eq!((status.held_until, status.fence), (None, 1), "no one had to acquire it again");
}

/// LIM-16: a start whose outcome is unknown keeps its slot until it expires: it may run.
#[tokio::test]
async fn lim_16_a_start_in_doubt_keeps_the_lease() {
    let (server, store) = (ScriptedServer::start(|_, _| ScriptedReply::Cut).await, memory());
    let outcome = attempt(&leased(&store, &server.url()), &query(), 1).await;
    assert!(matches!(outcome.verdict, Verdict::Unknown(_)), "{outcome:?}");
    assert_eq!(holder(&store).await, Some(1));
}

/// LIM-16: a job whose lease is held by others waits on the bulk limit, and nothing is sent. One
/// that may have been started before is looked for all the same, and adopted.
#[tokio::test]
async fn lim_16_a_held_lease_makes_a_job_wait() {
    let found = data(
        &json!({ "bulkOperations": { "nodes": [{ "id": ID, "status": "RUNNING", "query": PRODUCTS }] } }),
        12,
        2,
        1_900,
    );
    let (server, store) = (ScriptedServer::answering(vec![found, status("COMPLETED")]).await, memory());
    store.acquire_lease(LEASE, ms(60_000)).await.unwrap();
    let shop = leased(&store, &server.url());
    let waits = attempt(&shop, &query(), 1).await;
    let Verdict::Throttled { after: Some(after), scope: Some(scope), fault } = &waits.verdict else {
        panic!("{waits:?}")
    };
    assert_eq!((&**scope, *after, server.calls()), ("acme/bulk", ms(5_000), 0));
    assert!(fault.message.contains(LEASE), "{}", fault.message);
    let (_, note) = awaited(&attempt(&shop, &query(), 2).await);
    assert_eq!(poll(&shop, &note, false).await.verdict, Verdict::Done);
    assert_eq!(holder(&store).await, Some(1), "what others hold is theirs");
}

/// LIM-15: a start that failed holds nothing.
#[tokio::test]
async fn lim_15_a_failed_start_gives_the_lease_back() {
    let (server, store) = (ScriptedServer::answering(vec![ScriptedReply::status(503)]).await, memory());
    let outcome = attempt(&leased(&store, &server.url()), &query(), 1).await;
    assert!(matches!(outcome.verdict, Verdict::Retry { .. }), "{outcome:?}");
    assert_eq!(holder(&store).await, None);
}

/// LIM-16: on one Redis, a job that waits for a program's lease starts when the program releases
/// it, and not when it would ask again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_16_a_release_wakes_a_waiting_job() {
    let (server, sim) = (RedisServer::start(), sim(ms(300), 7).await);
    let open = async || -> Arc<dyn Store> { tidegate_store_redis::open(&server.url()).await.unwrap() };
    let (store, beside) = (open().await, open().await);
    let engine = engine(&store, &sim, Options::default()).await;
    let shared: Arc<dyn SharedState> = beside as _;
    let program = NamedLease::new(shared, LEASE, ms(60_000)).unwrap();
    for round in 1..=3 {
        let guard = program.acquire_within(ms(10_000)).await.unwrap().held().unwrap();
        let id = engine.submit(job("acme", "bulk:1", PRODUCTS)).await.unwrap().id;
        let asks_again = loop {
            let view = engine.get(id).await.unwrap();
            if view.state == State::Waiting && view.fault.is_some() {
                assert_eq!(view.attempt, 0);
                break engine.why(id).await.unwrap().until.unwrap();
            }
            tokio::time::sleep(ms(5)).await;
        };
        guard.release().await.unwrap();
        awaiting(&engine, id).await;
        let started = store.read_attempts(0, vec![id.seq()]).await.unwrap()[0][0].at;
        assert!(started.after(ms(1_000)) < asks_again, "round {round}: {started:?}, {asks_again:?}");
        assert_eq!(ended(&engine, id).await.0, State::Succeeded);
    }
    engine.drain().await;
}

/// LIM-16, LIM-3: on one Redis, jobs of the queue and programs with the client library exclude each
/// other, and Shopify never has to refuse one. The job waits without an attempt; the program is
/// woken by the job's end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_16_jobs_and_programs_exclude_each_other() {
    let (server, sim) = (RedisServer::start(), sim(ms(900), 7).await);
    let open = async || -> Arc<dyn Store> { tidegate_store_redis::open(&server.url()).await.unwrap() };
    let (store, beside) = (open().await, open().await);
    let engine = engine(&store, &sim, Options::default()).await;
    let old = builder(&beside, &at(&sim, "acme")).version("2025-10".parse().unwrap());
    let program = old.patience(ms(30_000)).build().unwrap();
    let running = program.bulk().query(ORDERS).await.unwrap();
    let id = engine.submit(job("acme", "bulk:1", PRODUCTS)).await.unwrap().id;
    let said = loop {
        let view = engine.get(id).await.unwrap();
        if let Some(fault) = view.fault.filter(|_| view.state == State::Waiting) {
            assert_eq!(view.attempt, 0);
            break fault.message;
        }
        tokio::time::sleep(ms(10)).await;
    };
    assert!(said.contains(LEASE), "{said}");
    running.wait().await.unwrap();
    awaiting(&engine, id).await;
    let waiting = tokio::spawn(async move { (program.bulk().query(ORDERS).await, Instant::now()) });
    assert_eq!(ended(&engine, id).await.0, State::Succeeded);
    let free = Instant::now();
    let (running, begun) = waiting.await.unwrap();
    // Without the hint it would ask again after five seconds.
    assert!(begun.saturating_duration_since(free) < ms(2_000), "{:?}", begun - free);
    running.unwrap().wait().await.unwrap();
    assert_eq!(engine.get(id).await.unwrap().attempt, 1);
    let shop = &sim.stats().shops["acme"];
    assert_eq!((shop.bulk_started, shop.overstepped), (3, 0));
    engine.drain().await;
}
