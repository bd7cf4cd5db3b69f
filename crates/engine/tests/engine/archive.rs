//! Ended operations reach the archive: on a real Redis and a real PostgreSQL, which is unavailable
//! at times, and across the death of an owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate::{Backlog, Engine, ErrorKind, Executors, Options, SharedArchive};
use tidegate_core::{Fault, FaultClass, OperationId, State, Time, Verdict};
use tidegate_fixture::postgres::PostgresServer as Database;
use tidegate_fixture::redis::RedisServer;
use tidegate_store::costs::{Cost, CostQuery, CostReport, LimitSnapshot};
use tidegate_store::log::{Retention, StoredEntry};
use tidegate_store::{Archive, Error, Store, StoreErrorKind, StoreFuture};
use tidegate_store_postgres::PostgresArchive;
use tidegate_store_redis::RedisStore;
use tidegate_upstream::Upstream;

use crate::scripted_upstream::{ScriptedUpstream, all_done, memory, operation};

/// The timeout of everything here.
const BOUND: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// A Redis and a PostgreSQL.
struct ArchiveFixture {
    redis: RedisServer,
    database: Database,
}

impl ArchiveFixture {
    fn new() -> Self {
        Self { redis: RedisServer::start(), database: Database::start() }
    }

    async fn store(&self) -> Arc<dyn Store> {
        Arc::new(RedisStore::open(&self.redis.url()).await.unwrap().with_archive_queue())
    }

    fn archive(&self) -> Arc<dyn Archive> {
        Arc::new(PostgresArchive::at(&self.database.url()).unwrap())
    }

    async fn open(&self, upstream: &Arc<ScriptedUpstream>) -> Engine {
        open(&self.store().await, self.archive(), upstream, "first").await.unwrap()
    }
}

async fn open(
    store: &Arc<dyn Store>,
    archive: Arc<dyn Archive>,
    upstream: &Arc<ScriptedUpstream>,
    node: &str,
) -> tidegate::Result<Engine> {
    let executors = Executors::from([("test".into(), Arc::clone(upstream) as Arc<dyn Upstream>)]);
    let options = Options::default().with_node(node).with_partition_lease(Duration::from_secs(2));
    Engine::builder(Arc::clone(store))
        .options(options)
        .executors(executors)
        .archive(Some(SharedArchive::new(archive)))
        .open()
        .await
}

/// Waits until the condition holds.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waited = async {
        while !is_so().await {
            tokio::time::sleep(LOOK).await;
        }
    };
    assert!(tokio::time::timeout(BOUND, waited).await.is_ok(), "it never happens: {what}");
}

async fn submit_many(engine: &Engine, first: usize, count: usize) -> Vec<OperationId> {
    let all = (first..first + count).map(|n| operation(&format!("g{}", n % 20), &format!("|{n}"))).collect();
    engine.submit_all(all).await.into_iter().map(|receipt| receipt.unwrap().id).collect()
}

async fn all_ended(engine: &Engine, ids: &[OperationId]) {
    for id in ids {
        assert!(engine.wait(*id, BOUND).await.unwrap().state.is_ended());
    }
}

/// Waits until the archive has all of these; returns them.
async fn archived(archive: &dyn Archive, ids: &[OperationId]) -> Vec<StoredEntry> {
    let mut found = Vec::new();
    until("all are archived", async || {
        // At first there may be no table yet.
        let read = archive.read(ids.to_vec()).await.unwrap_or_default();
        found = read.into_iter().flatten().collect();
        found.len() == ids.len()
    })
    .await;
    found
}

fn sometimes_wrong() -> Arc<ScriptedUpstream> {
    ScriptedUpstream::new(|payload, _| {
        let wrong = payload.ends_with('7');
        let verdict = Verdict::Rejected(Fault::new(FaultClass::Validation, "no such thing"));
        (Duration::ZERO, if wrong { verdict } else { Verdict::Done })
    })
}

/// OPS-8: every ended operation arrives in the archive as it is in the store, and the archive queue
/// ends up empty.
#[tokio::test]
async fn ops_8_everything_that_ended_is_archived_as_it_was() {
    let place = ArchiveFixture::new();
    let (store, archive, upstream) = (place.store().await, place.archive(), sometimes_wrong());
    let engine = open(&store, place.archive(), &upstream, "first").await.unwrap();
    engine.pause("later", "anna", "").await.unwrap();
    let called_off = engine.submit(operation("later", "|x")).await.unwrap().id;
    engine.cancel(called_off).await.unwrap();
    let waits = engine.submit(operation("later", "|y")).await.unwrap().id;
    let mut ids = submit_many(&engine, 0, 700).await;
    all_ended(&engine, &ids).await;
    ids.push(called_off);
    let found = archived(&*archive, &ids).await;
    let kept = store.read(0, ids.iter().map(|id| id.seq()).collect()).await.unwrap();
    assert!(found.iter().eq(kept.iter().flatten()), "the archive says something else than the store");
    let failed =
        found.iter().filter(|stored| stored.result.as_ref().is_some_and(|result| result.fault.is_some()));
    assert!(failed.count() >= 70, "those that failed, with their faults");
    assert_eq!(archive.read(vec![waits]).await.unwrap(), [None], "what has not ended is not there");
    until("nothing waits", async || engine.backlog() == Some(Backlog::default())).await;
    assert_eq!(store.archive_queue().unwrap().next_ended(0, 1).await.unwrap(), None);
    engine.drain().await;
}

/// OPS-9: the archive has the last end of a rerun operation.
#[tokio::test]
async fn ops_9_what_runs_again_is_archived_by_its_last_end() {
    let place = ArchiveFixture::new();
    let calls = AtomicUsize::new(0);
    let upstream = ScriptedUpstream::new(move |_, _| {
        let first = calls.fetch_add(1, Ordering::SeqCst) == 0;
        let verdict = Verdict::Rejected(Fault::new(FaultClass::Validation, "not yet"));
        (Duration::ZERO, if first { verdict } else { Verdict::Done })
    });
    let (engine, archive) = (place.open(&upstream).await, place.archive());
    let id = engine.submit(operation("g", "|1")).await.unwrap().id;
    let state = |stored: &StoredEntry| stored.result.as_ref().map(|result| State::from(result.state));
    assert_eq!(state(&archived(&*archive, &[id]).await[0]), Some(State::Failed));
    engine.rerun(id).await.unwrap();
    assert_eq!(engine.wait(id, BOUND).await.unwrap().state, State::Succeeded);
    until("its last end is there", async || {
        state(&archived(&*archive, &[id]).await[0]) == Some(State::Succeeded)
    })
    .await;
    engine.drain().await;
}

/// OPS-8: an archive that is unavailable, at the start and under load, holds nothing up; the
/// backlog is counted, and when the archive is back nothing is missing.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_an_archive_that_is_away_misses_nothing() {
    let mut place = ArchiveFixture::new();
    place.database.stop();
    let engine = place.open(&sometimes_wrong()).await;
    let before = submit_many(&engine, 0, 300).await;
    all_ended(&engine, &before).await;
    until("it is seen what waits", async || engine.backlog().is_some_and(|backlog| backlog.waiting > 0))
        .await;
    assert!(engine.backlog().unwrap().oldest.is_some());
    engine.health().await.expect("nothing waits for the archive");
    let gone = OperationId::new(Time::from_millis(1), 0, before[0].seq());
    assert_eq!(
        engine.get(gone).await.unwrap_err().kind,
        ErrorKind::StoreUnavailable,
        "nobody knows whether it is there"
    );
    place.database.restart();
    let archive = place.archive();
    archived(&*archive, &before).await;
    let during = submit_many(&engine, 300, 300).await;
    place.database.kill();
    all_ended(&engine, &during).await;
    place.database.restart();
    let all = [before, during].concat();
    archived(&*archive, &all).await;
    until("nothing waits", async || engine.backlog() == Some(Backlog::default())).await;
    assert_eq!(engine.get(gone).await.unwrap_err().kind, ErrorKind::NoOperation);
    engine.drain().await;
}

/// Saves what it is given, and then never responds, or reports an unknown outcome.
struct SilentArchive {
    inner: Arc<dyn Archive>,
    keeps: AtomicUsize,
    answers: bool,
}

impl Archive for SilentArchive {
    fn migrate(&self) -> StoreFuture<'_, ()> {
        self.inner.migrate()
    }

    fn save(&self, partition: u16, ended: Vec<StoredEntry>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.inner.save(partition, ended).await?;
            self.keeps.fetch_add(1, Ordering::SeqCst);
            if !self.answers {
                std::future::pending::<()>().await;
            }
            Err(Error::new(StoreErrorKind::Unsure, "the answer was lost"))
        })
    }

    fn read(&self, ids: Vec<OperationId>) -> StoreFuture<'_, Vec<Option<StoredEntry>>> {
        self.inner.read(ids)
    }

    fn save_costs(&self, costs: Vec<Cost>) -> StoreFuture<'_, ()> {
        self.inner.save_costs(costs)
    }

    fn save_limit_snapshots(&self, partition: u16, standings: Vec<LimitSnapshot>) -> StoreFuture<'_, ()> {
        self.inner.save_limit_snapshots(partition, standings)
    }

    fn remove_limit_snapshots(
        &self,
        partition: u16,
        names: Vec<Arc<str>>,
        before: Time,
    ) -> StoreFuture<'_, ()> {
        self.inner.remove_limit_snapshots(partition, names, before)
    }

    fn cost_report(&self, question: CostQuery) -> StoreFuture<'_, CostReport> {
        self.inner.cost_report(question)
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}

/// OPS-8: an owner that dies after it saved something and before it acknowledged it leaves it in
/// the queue; the node that takes over continues from there, and the rows are the same as without
/// the failure.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_an_owner_that_dies_in_between_is_followed() {
    let place = ArchiveFixture::new();
    let cut = Arc::new(SilentArchive { inner: place.archive(), keeps: AtomicUsize::new(0), answers: false });
    let life = tokio::runtime::Runtime::new().unwrap();
    let (store, archive, upstream) = (place.store().await, Arc::clone(&cut), sometimes_wrong());
    let first = life.spawn(async move {
        let engine = open(&store, archive, &upstream, "first").await.unwrap();
        let ids = submit_many(&engine, 0, 200).await;
        all_ended(&engine, &ids).await;
        (engine, ids)
    });
    let (engine, mut ids) = first.await.unwrap();
    until("something was kept", async || cut.keeps.load(Ordering::SeqCst) > 0).await;
    // All its tasks end where they are.
    life.shutdown_background();
    drop(engine);
    let store = place.store().await;
    assert_eq!(
        store.archive_queue().unwrap().next_ended(0, 1).await.unwrap().map(|noted| noted.waiting),
        Some(200)
    );
    let mut taken_over = None;
    until("the lease of the dead is over", async || {
        taken_over = open(&store, place.archive(), &sometimes_wrong(), "second").await.ok();
        taken_over.is_some()
    })
    .await;
    let engine = taken_over.unwrap();
    ids.extend(submit_many(&engine, 200, 50).await);
    all_ended(&engine, &ids).await;
    let found = archived(&*place.archive(), &ids).await;
    let kept = store.read(0, ids.iter().map(|id| id.seq()).collect()).await.unwrap();
    assert!(found.iter().eq(kept.iter().flatten()), "the archive says something else than the store");
    until("nothing waits", async || engine.backlog() == Some(Backlog::default())).await;
    engine.drain().await;
}

/// OPS-8: when the archive's reply is lost, what it saved stays in the queue and is saved again:
/// once in effect.
#[tokio::test]
async fn ops_8_a_lost_answer_of_the_archive_costs_nothing() {
    let place = ArchiveFixture::new();
    let cut = Arc::new(SilentArchive { inner: place.archive(), keeps: AtomicUsize::new(0), answers: true });
    let store = place.store().await;
    let engine = open(&store, Arc::clone(&cut) as _, &all_done(0), "first").await.unwrap();
    let ids = submit_many(&engine, 0, 10).await;
    all_ended(&engine, &ids).await;
    until("it was kept twice", async || cut.keeps.load(Ordering::SeqCst) >= 2).await;
    assert_eq!(engine.backlog().unwrap().waiting, 10);
    engine.drain().await;
    let engine = open(&store, place.archive(), &all_done(0), "first").await.unwrap();
    archived(&*place.archive(), &ids).await;
    until("nothing waits", async || engine.backlog() == Some(Backlog::default())).await;
    engine.drain().await;
}

/// OPS-9: retention removes nothing from the store that is not archived; what it removed can still
/// be read by id, and accepts no commands.
#[tokio::test(flavor = "multi_thread")]
async fn ops_9_after_the_sweep_the_archive_answers() {
    let mut place = ArchiveFixture::new();
    place.database.stop();
    let (store, upstream) = (place.store().await, sometimes_wrong());
    let engine = open(&store, place.archive(), &upstream, "node").await.unwrap();
    let ids = submit_many(&engine, 0, 30).await;
    all_ended(&engine, &ids).await;
    let mut views = Vec::new();
    for id in &ids {
        views.push(engine.get(*id).await.unwrap());
    }
    engine.drain().await;
    let everything = Retention { ended_before: Time::MAX, most: 1_000 };
    let swept = async || {
        let owner = store.acquire_partition(0, "node", Duration::from_secs(2)).await.unwrap();
        let swept = store.sweep(owner, everything).await.unwrap();
        store.release(owner).await.unwrap();
        swept
    };
    assert_eq!(swept().await, 0, "it is not archived yet");
    place.database.restart();
    let engine = open(&store, place.archive(), &upstream, "node").await.unwrap();
    archived(&*place.archive(), &ids).await;
    until("nothing waits", async || engine.backlog() == Some(Backlog::default())).await;
    engine.drain().await;
    assert_eq!(swept().await, 30);
    let engine = open(&store, place.archive(), &upstream, "node").await.unwrap();
    for (id, view) in ids.iter().zip(views) {
        assert_eq!(engine.get(*id).await.unwrap(), view, "as it was before");
    }
    let failed = ids[7];
    assert_eq!(engine.why(failed).await.unwrap().waiting_for, "nothing");
    for refused in [engine.rerun(failed).await, engine.cancel(failed).await] {
        assert_eq!(refused.unwrap_err().kind, ErrorKind::NotNow);
    }
    assert!(engine.rerun(failed).await.unwrap_err().message.contains("only in the archive"));
    let listed = engine.list(tidegate::Filter::default().with_limit(50)).await.unwrap();
    assert!(listed.operations.is_empty(), "lists show what is in the store");
    engine.drain().await;
}

/// A store without an archive queue cannot be archived, and the engine reports that.
#[tokio::test]
async fn a_store_without_a_trail_is_refused() {
    let nowhere = Arc::new(PostgresArchive::at("postgres://127.0.0.1:1/x").unwrap());
    let refused = open(&memory(), nowhere, &all_done(0), "node").await.unwrap_err();
    assert_eq!(
        (refused.kind, refused.message.as_str()),
        (ErrorKind::BadConfig, "memory: has no archive queue")
    );
}
