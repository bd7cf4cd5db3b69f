//! Call costs are kept with their settlement: once, whatever fails in between; and the state of
//! limits is kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Engine, Executors, Options, SharedArchive};
use tidegate_contract::{FaultPlan, FaultyStore, InjectedFault, StoreMethod};
use tidegate_core::operation::MICRO;
use tidegate_core::{Charge, State, Time, Verdict};
use tidegate_fixture::postgres::PostgresServer as Database;
use tidegate_fixture::redis::RedisServer;
use tidegate_store::costs::{CostQuery, CostReport};
use tidegate_store::{Archive, Store};
use tidegate_store_postgres::PostgresArchive;
use tidegate_store_redis::RedisStore;
use tidegate_upstream::{Call, CallCost, CallFuture, CallRequirements, FieldRefusal, Outcome, Upstream};

use crate::scripted_upstream::{LONG, drip, fault, memory, operation};

/// Charges 10 of `acme/points` and reports a cost of 3; the first attempt of a payload that
/// contains `again` is throttled.
struct Spender;

impl Upstream for Spender {
    fn check(&self, _: &[u8], _: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let charges = vec![Charge::tokens("acme/points", 10)];
        Ok(CallRequirements::new(charges))
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        let again = call.payload.ends_with(b"again") && call.attempt == 1;
        let verdict = if again {
            Verdict::Retry { after: Some(Duration::from_millis(1)), fault: fault("once more") }
        } else {
            Verdict::Done
        };
        let spending = |shape: &str, actual| CallCost {
            limit: "acme/points".into(),
            shape: shape.into(),
            requested: 10 * MICRO,
            actual,
            restore_rate: Some(100 * MICRO),
        };
        let spending = match call.payload {
            b"silent" => Vec::new(),
            b"two" => vec![spending("Two#1", None), spending("Two#2", Some(0))],
            _ => vec![spending("Get#1", Some(3 * MICRO))],
        };
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(5)).await;
            Outcome::unanswered(verdict).with_spending(spending)
        })
    }
}

async fn open(store: &Arc<dyn Store>, archive: Option<Arc<dyn Archive>>) -> Engine {
    open_with(store, archive, Options::default()).await
}

async fn open_with(store: &Arc<dyn Store>, archive: Option<Arc<dyn Archive>>, options: Options) -> Engine {
    let executors = Executors::from([("test".into(), Arc::new(Spender) as Arc<dyn Upstream>)]);
    let limits = vec![("acme/points".into(), drip(1_000, 100))];
    let archiving = archive.map(SharedArchive::new);
    Engine::builder(Arc::clone(store))
        .options(options)
        .executors(executors)
        .limits(limits)
        .archive(archiving)
        .open()
        .await
        .unwrap()
}

async fn done(engine: &Engine, payload: &str) {
    let id = engine.submit(operation("g", payload)).await.unwrap().id;
    assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
}

fn all() -> CostQuery {
    CostQuery { upstream: None, since: Time::ZERO, most: 100 }
}

/// Shape, calls, requested and cost of each line.
fn report_lines(bill: &CostReport) -> Vec<(&str, u64, u64, u64)> {
    let line =
        |line: &tidegate_store::costs::CostLine| (line.calls, line.requested / MICRO, line.actual / MICRO);
    bill.lines
        .iter()
        .map(|one| {
            let (calls, requested, actual) = line(one);
            (&*one.shape, calls, requested, actual)
        })
        .collect()
}

/// LIM-10: every call that reports its cost leaves a row, also a retried one; a call that reports
/// none leaves none.
#[tokio::test(start_paused = true)]
async fn lim_10_what_calls_cost_is_kept_with_their_settlement() {
    let store = memory();
    let engine = open(&store, None).await;
    for payload in ["a", "silent", "again", "two"] {
        done(&engine, payload).await;
    }
    let bill = tidegate::cost_report(&*store, None, all()).await.unwrap().unwrap();
    assert_eq!(report_lines(&bill), [("Two#1", 1, 10, 10), ("Get#1", 3, 30, 9), ("Two#2", 1, 10, 0)]);
}

/// LIM-10: an append that fails, or whose reply is lost after it was written, neither loses nor
/// doubles the cost of a call.
#[tokio::test(start_paused = true)]
async fn lim_10_failing_appends_neither_lose_nor_double_costs() {
    let faulty = Arc::new(FaultyStore::new(memory(), FaultPlan::none()));
    let store: Arc<dyn Store> = Arc::clone(&faulty) as _;
    let engine = open(&store, None).await;
    for injury in
        [InjectedFault::Fail, InjectedFault::LoseReply, InjectedFault::Fail, InjectedFault::LoseReply]
    {
        let id = engine.submit(operation("g", "a")).await.unwrap().id;
        faulty.set_plan(FaultPlan::none().at(StoreMethod::Append, 1, injury));
        assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
    }
    faulty.set_plan(FaultPlan::none());
    done(&engine, "a").await;
    let injected = faulty.fault_counts();
    assert!(injected.failed > 0 && injected.lost > 0, "{injected:?}");
    let bill = tidegate::cost_report(&*store, None, all()).await.unwrap().unwrap();
    assert_eq!(report_lines(&bill), [("Get#1", 5, 50, 15)]);
}

/// LIM-10: the state of limits is saved within seconds, and only when it changed.
#[tokio::test(start_paused = true)]
async fn lim_10_limits_are_kept_as_they_stand() {
    let store = memory();
    let engine = open(&store, None).await;
    let costs = store.costs().unwrap();
    tokio::time::sleep(Duration::from_secs(7)).await;
    let first = costs.limit_snapshots(0).await.unwrap();
    let figures = |found: &[tidegate_store::costs::LimitSnapshot]| {
        let one = found.iter().find(|one| &*one.name == "acme/points").unwrap().clone();
        (one.kind, one.capacity, one.refill_per_s, one.source)
    };
    let wanted = ("drip".into(), Some(1_000 * MICRO), Some(100 * MICRO), "config".into());
    assert_eq!(figures(&first), wanted);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(costs.limit_snapshots(0).await.unwrap(), first, "nothing happened, so nothing was written");
    engine.set_limit("acme/points", drip(500, 7)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(7)).await;
    let wanted = ("drip".into(), Some(500 * MICRO), Some(7 * MICRO), "operator".into());
    assert_eq!(figures(&costs.limit_snapshots(0).await.unwrap()), wanted);
}

/// LIM-10: costs are kept as long as ended operations.
#[tokio::test(start_paused = true)]
async fn lim_10_costs_go_with_retention() {
    let store = memory();
    let day = Options::default().with_retention(Duration::from_secs(24 * 3_600));
    let engine = open_with(&store, None, day).await;
    done(&engine, "a").await;
    tokio::time::sleep(Duration::from_secs(20 * 3_600)).await;
    done(&engine, "a").await;
    tokio::time::sleep(Duration::from_secs(8 * 3_600)).await;
    let bill = tidegate::cost_report(&*store, None, all()).await.unwrap().unwrap();
    assert_eq!(report_lines(&bill), [("Get#1", 1, 10, 3)]);
}

/// LIM-10: with Redis, costs and limits are in the archive, each cost once, also when nothing ended
/// with it.
#[tokio::test(flavor = "multi_thread")]
async fn lim_10_an_archive_beside_redis_has_costs_and_limits() {
    let (redis, database) = (RedisServer::start(), Database::start());
    let store: Arc<dyn Store> = Arc::new(RedisStore::open(&redis.url()).await.unwrap().with_archive_queue());
    let archive = || -> Arc<dyn Archive> { Arc::new(PostgresArchive::at(&database.url()).unwrap()) };
    let engine = open(&store, Some(archive())).await;
    for payload in ["a", "again", "silent", "two"] {
        done(&engine, payload).await;
    }
    let archiving = SharedArchive::new(archive());
    let wanted = [("Two#1", 1, 10, 10), ("Get#1", 3, 30, 9), ("Two#2", 1, 10, 0)];
    let copied = async {
        loop {
            // At first there may be no table yet.
            if let Ok(Some(bill)) = tidegate::cost_report(&*store, Some(&archiving), all()).await
                && report_lines(&bill) == wanted
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), copied).await.unwrap();
    let mut sql = <sqlx::PgConnection as sqlx::Connection>::connect(&database.url()).await.unwrap();
    let stands = "SELECT capacity FROM tidegate_archive.rate_limit_buckets WHERE name = 'acme/points' AND source = 'config'";
    let kept = async {
        loop {
            if let Some(capacity) =
                sqlx::query_scalar::<_, f64>(stands).fetch_optional(&mut sql).await.unwrap()
            {
                return capacity;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let capacity = tokio::time::timeout(Duration::from_secs(60), kept).await.unwrap();
    assert!((capacity - 1_000.0).abs() < 0.1, "{capacity}");
    let rates = "SELECT count(*) FROM tidegate_archive.api_cost_tracking WHERE restore_rate = 100";
    let learned = sqlx::query_scalar::<_, i64>(rates).fetch_one(&mut sql).await.unwrap();
    assert_eq!(learned, 5, "each call's cost is there with the rate that its response reported");
}
