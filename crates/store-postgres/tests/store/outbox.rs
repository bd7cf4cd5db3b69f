//! The outbox: operations submitted in a transaction are there when it commits, in order, and leave
//! once.

mod handing_in;
mod rights;

use std::sync::Arc;

use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tidegate_core::Time;
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::log::{Batch, Lsn};
use tidegate_store::outbox::{OutboxId, PublishedUpstream};
use tidegate_store::{Log, Outbox, StoreErrorKind, Upkeep};
use tidegate_store_postgres::PostgresStore;
use tidegate_store_postgres::outbox::enqueue;

use crate::sample::{PARTITION, TTL, accepts, behind, execute, kept, last, run, store, waiting_append};

/// Enough for every test.
const MOST: usize = 1_000;
/// The only upstream; it is not spread over partitions.
const UPSTREAM: &str = "mail";

/// A store that a node was started on: everything belongs to the one partition that the tests use.
async fn begun(server: &PostgresServer) -> PostgresStore {
    let store = store(server).await;
    // The rule puts `mail` there with this number of partitions.
    store.ensure_partitions(PARTITIONS).await.expect("set the number of partitions");
    publish(&store, false).await;
    store
}

/// With this number, the upstream belongs to the partition of the samples.
const PARTITIONS: u16 = 5;

async fn publish(store: &PostgresStore, is_spread: bool) {
    store.publish(vec![PublishedUpstream { name: UPSTREAM.into(), is_spread }]).await.expect("publish");
}

fn operation(group: &str) -> String {
    format!(
        r#"{{"upstream":"{UPSTREAM}","group":"{group}","request":{{"method":"POST","path":"/x","body":{{"b":1.10, "a":1}}}}}}"#
    )
}

async fn hand_in(sql: &mut PgConnection, group: &str) -> OutboxId {
    enqueue(sql, "tidegate", &operation(group)).await.expect("enqueue")
}

async fn waiting(store: &PostgresStore) -> Vec<OutboxId> {
    let rows = store.waiting_rows(PARTITION, MOST).await.expect("read what waits");
    rows.into_iter().map(|row| row.id).collect()
}

/// A batch that accepts one operation and drains these from the outbox.
fn drains(seq: u64, drained: &[OutboxId]) -> Batch {
    Batch { drained: drained.to_vec(), ..accepts(seq..seq + 1, Time::ZERO, 10) }
}

/// OPS-4: rows are read in the order of submission, inside a transaction and from one to the next;
/// rolled-back rows were never there.
#[test]
fn ops_4_rows_come_in_the_order_of_their_transactions() {
    run(async {
        let server = PostgresServer::start();
        let store = begun(&server).await;
        let (mut one, mut two) = (behind(&server).await, behind(&server).await);
        let mut wanted = Vec::new();
        for round in 0..4 {
            let sql = if round % 2 == 0 { &mut one } else { &mut two };
            let mut gone = sql.begin().await.expect("begin");
            hand_in(&mut gone, "gone").await;
            gone.rollback().await.expect("roll back");
            let mut stays = sql.begin().await.expect("begin");
            for _ in 0..5 {
                wanted.push(hand_in(&mut stays, "g").await);
            }
            assert_eq!(waiting(&store).await.len(), round * 5, "nothing is seen before the commit");
            stays.commit().await.expect("commit");
        }
        assert_eq!(waiting(&store).await, wanted);
        let first = &store.waiting_rows(PARTITION, 1).await.expect("read")[0];
        assert_eq!(first.operation, operation("g"), "byte for byte");
        assert_eq!(store.waiting_rows(PARTITION, 7).await.expect("read").len(), 7);
        assert_eq!(store.waiting_rows(PARTITION + 1, MOST).await.expect("read"), []);
    });
}

/// OPS-8: a transaction that commits after later ones were drained is not skipped.
#[test]
fn ops_8_a_row_that_becomes_visible_late_is_found() {
    run(async {
        let server = PostgresServer::start();
        let store = begun(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let (mut slow, mut quick) = (behind(&server).await, behind(&server).await);
        let mut open = slow.begin().await.expect("begin");
        let early = hand_in(&mut open, "slow").await;
        for seq in 1..=3 {
            let later = hand_in(&mut quick, "quick").await;
            assert!(later > early);
            assert_eq!(waiting(&store).await, [later], "the open transaction stops nobody");
            store.append(owner, drains(seq, &[later])).await.expect("append");
        }
        open.commit().await.expect("commit");
        assert_eq!(waiting(&store).await, [early]);
        store.append(owner, drains(4, &[early])).await.expect("append");
        assert_eq!((waiting(&store).await, kept(&store, 1..9).await), (vec![], 4));
    });
}

/// OPS-8: an append drains its rows as a whole or not at all, and only the owner's does.
#[test]
fn ops_8_rows_leave_with_the_append_or_not_at_all() {
    run(async {
        let server = PostgresServer::start();
        let store = begun(&server).await;
        let old = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own again");
        let mut sql = behind(&server).await;
        let (one, two) = (hand_in(&mut sql, "g").await, hand_in(&mut sql, "g").await);
        let kind = |answer: tidegate_store::Result<Lsn>| answer.map_err(|error| error.kind());
        assert_eq!(kind(store.append(old, drains(1, &[one])).await), Err(StoreErrorKind::Fenced));
        let after = Batch { follows: Some(Lsn(9)), ..drains(1, &[one]) };
        assert_eq!(kind(store.append(owner, after).await), Err(StoreErrorKind::Unavailable));
        let missing = [one, OutboxId(two.0 + 1)];
        assert_eq!(kind(store.append(owner, drains(1, &missing)).await), Err(StoreErrorKind::Unavailable));
        assert_eq!((waiting(&store).await, kept(&store, 1..9).await), (vec![one, two], 0));
        let only = Batch { drained: vec![one], ..Batch::default() };
        assert_eq!(kind(store.append(owner, only).await), Ok(Lsn(1)), "nothing new, and the row goes");
        assert_eq!(kind(store.append(owner, drains(1, &[one, two])).await), Err(StoreErrorKind::Unavailable));
        assert_eq!(kind(store.append(owner, drains(1, &[two])).await), Ok(Lsn(2)));
        assert_eq!((waiting(&store).await, kept(&store, 1..9).await), (vec![], 1));
    });
}

/// OPS-8: after an append whose connection was cut, the row is in the outbox exactly when the
/// operation is not in the log.
#[test]
fn ops_8_a_cut_leaves_a_row_in_one_place() {
    run(async {
        let server = PostgresServer::start();
        let store = Arc::new(begun(&server).await);
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let (mut sql, mut stop) = (behind(&server).await, behind(&server).await);
        let row = hand_in(&mut sql, "g").await;
        execute(&mut stop, "BEGIN; LOCK TABLE operations IN EXCLUSIVE MODE").await;
        let cut = {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.append(owner, drains(1, &[row])).await })
        };
        let connection = waiting_append(&mut sql).await;
        sqlx::query("SELECT pg_terminate_backend($1)").bind(connection).execute(&mut sql).await.expect("cut");
        assert_eq!(cut.await.expect("join").map_err(|error| error.kind()), Err(StoreErrorKind::Unsure));
        execute(&mut stop, "ROLLBACK").await;
        assert_eq!((last(&*store).await, waiting(&store).await), (Lsn(0), vec![row]));
        store.append(owner, drains(1, &[row])).await.expect("append again");
        assert_eq!((last(&*store).await, waiting(&store).await), (Lsn(1), vec![]));
        let twice = store.append(owner, drains(2, &[row])).await.map_err(|error| error.kind());
        assert_eq!(
            (twice, kept(&*store, 1..9).await),
            (Err(StoreErrorKind::Unavailable), 1),
            "it is accepted once"
        );
    });
}

/// A row that cannot be accepted is moved to the refused rows once, by the owner only, with the
/// reason.
#[test]
fn a_row_is_moved_aside_by_its_owner() {
    run(async {
        let server = PostgresServer::start();
        let store = begun(&server).await;
        let old = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own again");
        let mut sql = behind(&server).await;
        let rows = [hand_in(&mut sql, "a").await, hand_in(&mut sql, "b").await, hand_in(&mut sql, "c").await];
        let fenced = store.refuse(old, rows[1], "TG0002", "It is wrong.").await.expect_err("it is fenced");
        assert_eq!((fenced.kind(), waiting(&store).await.len()), (StoreErrorKind::Fenced, 3));
        for _ in 0..2 {
            store.refuse(owner, rows[1], "TG0002", "It is \0 wrong.").await.expect("move aside");
        }
        store.refuse(owner, rows[2], "TG0009", "It is known.").await.expect("move aside");
        let seen = store.status(None, 10).await.expect("look");
        assert_eq!((seen.waiting, seen.oldest.is_some()), (1, true));
        let said: Vec<_> = seen.refused.iter().map(|row| (row.id, &*row.code, &*row.problem)).collect();
        assert_eq!(said, [(rows[2], "TG0009", "It is known."), (rows[1], "TG0002", "It is \u{fffd} wrong.")]);
        let page = store.status(Some(rows[2]), 10).await.expect("look further");
        assert_eq!(page.refused.iter().map(|row| row.id).collect::<Vec<_>>(), [rows[1]]);
        assert_eq!(waiting(&store).await, [rows[0]]);
    });
}

/// Waiting rows are moved to their new partition when an upstream is spread, and back.
#[test]
fn what_waits_follows_a_changed_rule() {
    run(async {
        let server = PostgresServer::start();
        let store = begun(&server).await;
        let mut sql = behind(&server).await;
        let mut wanted = Vec::new();
        for n in 0..40 {
            wanted.push(hand_in(&mut sql, &format!("g{n}")).await);
        }
        publish(&store, true).await;
        let mut spread = Vec::new();
        for partition in 0..PARTITIONS {
            let here = store.waiting_rows(partition, MOST).await.expect("read");
            assert!(here.len() < wanted.len(), "all are in {partition}");
            spread.extend(here.into_iter().map(|row| row.id));
        }
        spread.sort();
        assert_eq!(spread, wanted);
        publish(&store, false).await;
        assert_eq!(waiting(&store).await, wanted);
    });
}

/// A page ends early when its rows are large.
#[test]
fn a_page_is_bounded_by_its_bytes() {
    run(async {
        let server = PostgresServer::start();
        let store = begun(&server).await;
        let mut sql = behind(&server).await;
        let large = format!(
            r#"{{"upstream":"{UPSTREAM}","group":"g","request":{{"method":"PUT","path":"/x","body":"{}"}}}}"#,
            "x".repeat(1024 * 1024)
        );
        for _ in 0..6 {
            enqueue(&mut sql, "tidegate", &large).await.expect("enqueue");
        }
        let page = store.waiting_rows(PARTITION, MOST).await.expect("read");
        assert_eq!(page.len(), 4);
    });
}
