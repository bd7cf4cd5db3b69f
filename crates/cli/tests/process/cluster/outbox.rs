//! A node that is killed again and again while it drains what applications hand in inside their own
//! transactions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;
use sqlx::{Connection, PgConnection, Row};
use tidegate_sim::rng::SeededRng;
use tidegate_store_postgres::outbox::enqueue;
use tokio::time::{sleep, timeout};

use super::load::operation;
use super::nodes::Nodes;
use super::store::Store;
use crate::ALONE;

const APPLICATIONS: usize = 3;
const KILLS: usize = 5;
/// How long it drains before a kill, in milliseconds.
const DRAINS_MS: std::ops::Range<u64> = 50..700;
/// Between two transactions of an application.
const PACE: Duration = Duration::from_millis(4);
/// How long the last rows may take.
const DRAINED: Duration = Duration::from_secs(30);

/// The keys of what was committed, by group, in order.
type CommittedKeys = BTreeMap<String, Vec<String>>;

/// One application: transactions one after the other, of several operations each, for two groups.
/// Every fourth or so is rolled back. What goes to `limited` has keys of its own.
async fn work(url: String, application: usize, seed: u64, stop: Arc<AtomicBool>) -> CommittedKeys {
    let mut sql = PgConnection::connect(&url).await.unwrap();
    let mut chance = SeededRng::new(seed);
    let mut committed = CommittedKeys::new();
    while !stop.load(Ordering::Relaxed) {
        let mut transaction = sql.begin().await.unwrap();
        let mut handed_in = committed.clone();
        for _ in 0..=chance.next() % 4 {
            let upstream = if chance.happens(0.2) { "limited" } else { "wide" };
            let group = format!("{upstream}-{application}");
            let keys = handed_in.entry(group.clone()).or_default();
            let mut one = operation(upstream, &group, keys.len());
            if upstream == "wide" {
                one["dedupe_key"] = Value::Null;
            }
            let id = enqueue(&mut transaction, "tidegate", &one.to_string()).await.unwrap();
            let key = one["dedupe_key"].as_str().map_or_else(|| format!("outbox-{}", id.0), str::to_owned);
            keys.push(key);
        }
        if chance.happens(0.25) {
            transaction.rollback().await.unwrap();
        } else {
            transaction.commit().await.unwrap();
            committed = handed_in;
        }
        sleep(PACE).await;
    }
    committed
}

/// What was accepted, by group, in the order of acceptance.
async fn accepted(sql: &mut PgConnection) -> CommittedKeys {
    let rows = "SELECT grp, key FROM tidegate.operations ORDER BY partition, seq";
    let mut accepted = CommittedKeys::new();
    for row in sqlx::query(rows).fetch_all(sql).await.unwrap() {
        accepted.entry(row.get(0)).or_default().push(row.get(1));
    }
    accepted
}

async fn wait_until_empty(nodes: &Nodes) {
    let empty = async {
        loop {
            let answer = nodes.doors.at(0).call(hyper::Method::GET, "/v1/outbox", &[], None).await;
            if let Some((200, seen)) = answer {
                let seen: Value = serde_json::from_str(&seen).unwrap();
                assert_eq!(seen["refused"], Value::Array(Vec::new()), "{seen}");
                if seen["waiting"] == 0 {
                    return;
                }
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(DRAINED, empty).await.expect("the outbox is drained in time");
}

/// OPS-8, OPS-4: whatever an application committed is accepted once, in its order in each group,
/// though the node that drains it is killed at any moment; what was rolled back never was. A
/// transaction that stays open over all of it stops nobody and is not passed over.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_the_outbox_is_drained_once_by_nodes_that_die() {
    let _alone = ALONE.lock().await;
    let mut chance = super::chance("the outbox");
    let mut nodes = Nodes::start(1, Store::postgres()).await;
    let url = nodes.store.url();
    let (mut slow, mut sql) =
        (PgConnection::connect(&url).await.unwrap(), PgConnection::connect(&url).await.unwrap());
    let mut open = slow.begin().await.unwrap();
    for n in 0..3 {
        enqueue(&mut open, "tidegate", &operation("wide", "slow", n).to_string()).await.unwrap();
    }
    let stop = Arc::new(AtomicBool::new(false));
    let start = |application| work(url.clone(), application, chance.next(), Arc::clone(&stop));
    let applications: Vec<_> = (0..APPLICATIONS).map(start).map(tokio::spawn).collect();
    for _ in 0..KILLS {
        let drains = DRAINS_MS.start + chance.next() % (DRAINS_MS.end - DRAINS_MS.start);
        sleep(Duration::from_millis(drains)).await;
        nodes.kill(0);
        nodes.start_again(0);
    }
    stop.store(true, Ordering::Relaxed);
    let mut committed = CommittedKeys::new();
    for application in applications {
        committed.extend(application.await.unwrap());
    }
    wait_until_empty(&nodes).await;
    assert_eq!(accepted(&mut sql).await, committed);
    open.commit().await.unwrap();
    committed.insert("slow".into(), (0..3).map(|n| format!("slow:{n}")).collect());
    wait_until_empty(&nodes).await;
    assert_eq!(accepted(&mut sql).await, committed);
    let rows: usize = committed.values().map(Vec::len).sum();
    println!("{rows} rows were accepted once over {KILLS} kills");
    assert!(rows > 100, "{rows} rows are no load");
}
