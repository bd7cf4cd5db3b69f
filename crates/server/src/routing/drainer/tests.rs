//! A drainer on a real PostgreSQL that loses replies, and the submission it makes of a row.

use sqlx::Connection;
use tidegate::Executors;
use tidegate_contract::{FaultPlan, FaultRates, FaultyStore, InjectedFault, StoreMethod};
use tidegate_fixture::postgres::PostgresServer as Database;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tidegate_store::log::StoredQuery;
use tidegate_store::outbox::PublishedUpstream;
use tidegate_store::{Store, Upkeep};
use tidegate_store_postgres::{PostgresStore, outbox};
use tidegate_upstream::http::UpstreamConfig;
use tidegate_upstream::{HttpUpstreams, Upstream};

use super::*;

fn row(more: &str, waited: Duration) -> OutboxRow {
    let operation = format!(r#"{{"upstream":"e","group":"g","request":{{}}{more}}}"#);
    OutboxRow { id: OutboxId(7), waited, operation: operation.into() }
}

/// OPS-7: a row without a key gets a unique one.
#[test]
fn ops_7_every_row_has_a_key() {
    let read = |more| parse_row(&row(more, Duration::ZERO), &RemoteKinds::default()).unwrap().dedupe_key;
    assert_eq!(read("").as_deref(), Some("outbox-7"));
    assert_eq!(read(r#","dedupe_key":null"#).as_deref(), Some("outbox-7"));
    assert_eq!(read(r#","dedupe_key":"mine""#).as_deref(), Some("mine"));
}

#[test]
fn times_count_from_when_it_was_handed_in() {
    let after = |ms| {
        let row = row(r#","deadline_ms":500,"delay_ms":300"#, Duration::from_millis(ms));
        parse_row(&row, &RemoteKinds::default())
    };
    let times = |ms| after(ms).map(|read| (read.deadline.unwrap(), read.delay.unwrap())).unwrap();
    let ms = Duration::from_millis;
    assert_eq!(times(0), (ms(500), ms(300)));
    assert_eq!(times(200), (ms(300), ms(100)));
    assert_eq!(times(400), (ms(100), ms(0)));
    assert_eq!(after(500).unwrap_err().code, ErrorCode::TooLate);
}

/// An engine that owns the only partition of a store with injected faults.
struct DrainerSetup {
    faulty: Arc<FaultyStore>,
    engine: Engine,
    sql: sqlx::PgConnection,
    _sim: HttpSim,
    // Last, so that it is dropped last.
    _database: Database,
}

impl DrainerSetup {
    async fn new() -> Self {
        let database = Database::start();
        let store = PostgresStore::connect(&database.url()).await.unwrap();
        store.migrate().await.unwrap();
        store.ensure_partitions(1).await.unwrap();
        // `gone` is known to the store, but not to this node.
        let published =
            ["echo", "gone"].map(|name| PublishedUpstream { name: name.into(), is_spread: false });
        store.outbox().unwrap().publish(published.into()).await.unwrap();
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let upstream = UpstreamConfig::new("echo", format!("http://{}", sim.addr()));
        let upstreams = HttpUpstreams::new(vec![upstream]).unwrap();
        let limits = upstreams.limits();
        let mut executors = Executors::new();
        executors.insert(Arc::from("http"), Arc::new(upstreams) as Arc<dyn Upstream>);
        let faulty = Arc::new(FaultyStore::new(Arc::new(store), FaultPlan::none()));
        let store: Arc<dyn Store> = Arc::clone(&faulty) as _;
        let engine = Engine::builder(store).executors(executors).limits(limits).open().await.unwrap();
        let sql = sqlx::PgConnection::connect(&database.url()).await.unwrap();
        Self { faulty, engine, sql, _sim: sim, _database: database }
    }

    fn drainer(&self) -> Drainer {
        Drainer { engine: self.engine.clone(), wake: Arc::default(), kinds: RemoteKinds::default() }
    }

    /// Submits a row for a group and an upstream.
    async fn hand_in(&mut self, upstream: &str, group: &str, n: usize) -> u64 {
        let body = format!(
            r#"{{"upstream":"{upstream}","group":"{group}","on_unknown":"repeat",
                "request":{{"method":"POST","path":"/{group}","body":{{"id":{n}}}}}}}"#
        );
        outbox::enqueue(&mut self.sql, "tidegate", &body).await.unwrap().0
    }

    async fn waiting(&self) -> usize {
        self.engine.outbox_rows(1_000).await.unwrap().len()
    }

    /// The keys of the accepted operations, in order.
    async fn accepted(&self) -> Vec<String> {
        use tidegate_store::Log;
        let page =
            self.faulty.list(0, StoredQuery { limit: 10_000, ..StoredQuery::default() }).await.unwrap();
        page.items.iter().rev().map(|one| one.operation.key.as_deref().unwrap().to_owned()).collect()
    }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(60), work).await.expect("it takes too long")
}

/// OPS-8: the reply to the append that accepts a row is lost after the commit: the row is gone, and
/// the operation exists once. If the append did not happen, the row is still there and is accepted
/// later.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_a_lost_reply_accepts_once() {
    within(async {
        let mut world = DrainerSetup::new().await;
        let drainer = world.drainer();
        // Nothing else is appended meanwhile: the group is paused.
        world.engine.pause("g", "test", "test").await.unwrap();
        for (round, injury) in [InjectedFault::LoseReply, InjectedFault::Fail].into_iter().enumerate() {
            let id = world.hand_in("echo", "g", round).await;
            world.faulty.set_plan(FaultPlan::none().at(StoreMethod::Append, 1, injury));
            let error = drainer.drain_page().await.unwrap_err();
            assert_eq!(error.code, ErrorCode::StoreUnavailable, "{error}");
            let left = usize::from(injury == InjectedFault::Fail);
            assert_eq!((world.waiting().await, world.accepted().await.len()), (left, round + 1 - left));
            let done = loop {
                match drainer.drain_page().await {
                    Ok(done) => break done,
                    // The engine reads its log again.
                    Err(error) => assert_eq!(error.code, ErrorCode::StoreUnavailable, "{error}"),
                }
            };
            assert_eq!((done, world.waiting().await), (left, 0));
            assert_eq!(world.accepted().await.last(), Some(&format!("outbox-{id}")));
            assert_eq!(world.accepted().await.len(), round + 1);
            while world.engine.health().await.is_err() {
                sleep(Duration::from_millis(10)).await;
            }
        }
        world.engine.drain().await;
    })
    .await;
}

/// OPS-8, OPS-4: with every fourth append failing or losing its reply, each row is accepted once,
/// in order.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_bad_days_change_neither_number_nor_order() {
    const ROWS: usize = 120;
    within(async {
        let mut world = DrainerSetup::new().await;
        let odds = FaultRates { fail: 100, lose_reply: 150, ..FaultRates::default() };
        world.faulty.set_plan(FaultPlan::seeded(11, odds).only(&[StoreMethod::Append]));
        let drainer = world.drainer();
        let wake = Arc::clone(&drainer.wake);
        let working = tokio::spawn(drainer.run());
        let mut wanted = Vec::new();
        for n in 0..ROWS {
            wanted.push(format!("outbox-{}", world.hand_in("echo", &format!("g{}", n % 3), n).await));
            wake.notify_one();
        }
        while world.waiting().await > 0 {
            sleep(Duration::from_millis(10)).await;
        }
        world.faulty.set_plan(FaultPlan::none());
        assert_eq!(world.accepted().await, wanted);
        println!("{:?}", world.faulty.fault_counts());
        world.engine.drain().await;
        working.await.expect("it ends with its engine");
    })
    .await;
}

/// OPS-7: a row with a known key is deduplicated; with another request it is moved aside. The
/// following rows continue in both cases.
#[tokio::test(flavor = "multi_thread")]
async fn ops_7_a_key_is_one_operation_in_the_outbox_too() {
    within(async {
        let mut world = DrainerSetup::new().await;
        let keyed = |path: &str| {
            format!(
                r#"{{"upstream":"echo","group":"g","dedupe_key":"k","request":{{"method":"GET","path":"{path}"}}}}"#
            )
        };
        let drainer = world.drainer();
        let otherwise =
            r#"{"request": {"path": "\u002fa", "method": "GET"}, "dedupe_key": "k", "group": "g", "upstream": "echo"}"#;
        for (row, after) in [(keyed("/a"), 0), (keyed("/a"), 0), (otherwise.into(), 0), (keyed("/b"), 1)] {
            outbox::enqueue(&mut world.sql, "tidegate", &row).await.unwrap();
            world.hand_in("echo", "g", 0).await;
            assert_eq!(drainer.drain_page().await.unwrap(), 2);
            let seen = world.faulty.outbox().unwrap().status(None, 10).await.unwrap();
            assert_eq!((seen.waiting, seen.refused.len()), (0, after), "{row}");
        }
        let seen = world.faulty.outbox().unwrap().status(None, 10).await.unwrap();
        assert_eq!(seen.refused[0].code, ErrorCode::KeyConflict.to_string());
        let accepted = world.accepted().await;
        assert_eq!((accepted.len(), &*accepted[0]), (5, "k"), "{accepted:?}");
        world.engine.drain().await;
    })
    .await;
}

/// A node that does not know a new upstream yet leaves its rows to a node that does; other rows
/// continue.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_node_may_know_waits_for_it() {
    within(async {
        let mut world = DrainerSetup::new().await;
        world.hand_in("gone", "g", 0).await;
        let id = world.hand_in("echo", "h", 0).await;
        let drainer = world.drainer();
        assert_eq!(drainer.drain_page().await.unwrap(), 1);
        assert_eq!((world.waiting().await, world.accepted().await), (1, vec![format!("outbox-{id}")]));
        sqlx::query("UPDATE tidegate.outbox SET at = at - 301 * 1000000")
            .execute(&mut world.sql)
            .await
            .unwrap();
        assert_eq!(drainer.drain_page().await.unwrap(), 1);
        let seen = world.faulty.outbox().unwrap().status(None, 10).await.unwrap();
        assert_eq!((seen.waiting, &*seen.refused[0].code), (0, &*ErrorCode::UnknownUpstream.to_string()));
        world.engine.drain().await;
    })
    .await;
}
