//! Retention: results that ended before the cutoff are removed, however many there are and wherever
//! they are.

use std::time::Duration;

use sqlx::postgres::PgConnection;
use tidegate_core::{Fault, FaultClass, Seq, Time};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::log::{Batch, Lsn, Ownership, Retention};
use tidegate_store::{Log, Upkeep};
use tidegate_store_postgres::PostgresStore;

use crate::sample::{PARTITION, TTL, accepts, behind, ends, execute, kept, last, run, store};

const HOUR: Duration = Duration::from_secs(3_600);
/// The first seq of the second range.
const SECOND: u64 = 1_000_000;

/// A day ago in the first range, now in the second.
const fn days() -> (Time, Time) {
    (Time::from_millis(1_780_000_000_000), Time::from_millis(1_780_086_400_000))
}

/// 2,000 that ended a day ago, and 100 in the next range that ended just now.
async fn two_ranges(store: &PostgresStore) -> Ownership {
    let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
    let (old, young) = days();
    for (seqs, at) in [(1..2_001, old), (SECOND..SECOND + 100, young)] {
        store.append(owner, accepts(seqs.clone(), at, 1)).await.expect("append");
        store.append(owner, ends(seqs, at)).await.expect("append");
    }
    owner
}

async fn has_first_range(sql: &mut PgConnection) -> bool {
    let ask = "SELECT to_regclass('operations_3_0') IS NOT NULL OR to_regclass('results_3_0') IS NOT NULL";
    sqlx::query_scalar(ask).fetch_one(sql).await.expect("ask")
}

/// OPS-9: a range of which nothing is kept is dropped as a whole, and counted; the newest range
/// stays.
#[test]
fn ops_9_a_range_goes_as_a_whole() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = two_ranges(&store).await;
        let mut sql = behind(&server).await;
        let old = Retention { ended_before: days().1, most: 500 };
        assert_eq!(store.sweep(owner, old).await.expect("sweep"), 2_000);
        assert!(!has_first_range(&mut sql).await, "its tables are there");
        assert_eq!(store.stats().await.expect("stats").operations, 100);
        let all = Retention { ended_before: days().1.after(HOUR), most: 1_000 };
        assert_eq!(store.sweep(owner, all).await.expect("sweep"), 100, "the newest goes row by row");
        assert_eq!(last(&store).await, Lsn(4));
        // A result of a removed operation, and a seq of a dropped range, can be stored again.
        store.append(owner, ends(7..8, days().0)).await.expect("append");
        store.append(owner, accepts(SECOND + 100..SECOND + 101, days().1, 1)).await.expect("append");
        store.append(owner, accepts(5 * SECOND..5 * SECOND + 1, days().1, 1)).await.expect("append");
        assert_eq!(
            kept(&store, SECOND..SECOND + 200).await + kept(&store, 5 * SECOND..5 * SECOND + 1).await,
            2
        );
    });
}

/// OPS-9: an unfinished operation keeps its range, and stays whatever its age; what ended there is
/// removed row by row in the end.
#[test]
fn ops_9_what_has_not_ended_keeps_its_range() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = two_ranges(&store).await;
        let again = Batch { reopened: vec![Seq(1_000)], ..Batch::default() };
        store.append(owner, again).await.expect("append");
        let mut sql = behind(&server).await;
        let (ended, most) = (days().0, 10_000);
        let soon = Retention { ended_before: ended.after(HOUR / 2), most };
        assert_eq!(store.sweep(owner, soon).await.expect("sweep"), 0, "a while longer");
        let late = Retention { ended_before: ended.after(2 * HOUR), most };
        assert_eq!(store.sweep(owner, late).await.expect("sweep"), 1_999);
        assert!(has_first_range(&mut sql).await);
        assert_eq!((kept(&store, 1..2_001).await, kept(&store, 1_000..1_001).await), (1, 1));
        store.append(owner, ends(1_000..1_001, ended)).await.expect("append");
        assert_eq!(store.sweep(owner, soon).await.expect("sweep"), 1);
        assert!(!has_first_range(&mut sql).await, "the last of it has gone");
    });
}

/// A session that uses the tables prevents a range from being dropped; appends continue, and the
/// range is dropped the next time.
#[test]
fn a_range_that_is_in_use_goes_later() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = two_ranges(&store).await;
        let (mut sql, mut idle) = (behind(&server).await, behind(&server).await);
        execute(&mut idle, "BEGIN; SELECT FROM operations; SELECT FROM results").await;
        let old = Retention { ended_before: days().0.after(HOUR / 2), most: 500 };
        assert_eq!(store.sweep(owner, old).await.expect("sweep"), 0);
        assert!(has_first_range(&mut sql).await);
        let next = SECOND + 100;
        store.append(owner, accepts(next..next + 1, days().1, 1)).await.expect("append");
        // The tables of a new range are created concurrently with readers.
        store.append(owner, accepts(3 * SECOND..3 * SECOND + 1, days().1, 1)).await.expect("append");
        execute(&mut idle, "ROLLBACK").await;
        assert_eq!(store.sweep(owner, old).await.expect("sweep"), 2_000);
    });
}

/// The next range's tables exist before the first append that needs them.
#[test]
fn room_is_made_ahead() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let mut sql = behind(&server).await;
        store.append(owner, accepts(SECOND - 5..SECOND - 4, days().0, 1)).await.expect("append");
        let ask = "SELECT to_regclass('results_3_1') IS NOT NULL";
        while !sqlx::query_scalar::<_, bool>(ask).fetch_one(&mut sql).await.expect("ask") {
            tokio::task::yield_now().await;
        }
        store
            .append(owner, accepts(SECOND - 1..SECOND + 5, days().0, 1))
            .await
            .expect("append over the border");
        assert_eq!(kept(&store, SECOND - 5..SECOND + 5).await, 7);
    });
}

/// OPS-9: more than one step can scan, with young results in front of old ones.
#[test]
fn ops_9_old_results_behind_young_ones_go_too() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let (old, young) = (Time::from_millis(10), Time::from_millis(1_000));
        for first in (1..12_001).step_by(1_000) {
            store.append(owner, accepts(first..first + 1_000, old, 1)).await.expect("append");
            let at = if first < 9_000 { young } else { old };
            store.append(owner, ends(first..first + 1_000, at)).await.expect("append");
        }
        let retention = Retention { ended_before: young, most: 500 };
        let (mut gone, mut calls) = (0, 0);
        while gone < 3_000 {
            let swept = store.sweep(owner, retention).await.expect("sweep");
            assert!(swept <= 500, "{swept} at once");
            gone += swept;
            calls += 1;
            assert!(calls < 40, "{gone} of 3000 gone after {calls} calls");
        }
        assert_eq!((kept(&store, 1..9_001).await, kept(&store, 9_001..12_001).await), (9_000, 0));
    });
}

/// A fault that repeats what an upstream sent cannot prevent a result from being stored.
#[test]
fn a_fault_with_a_zero_byte_is_kept() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let mut batch = accepts(1..2, Time::ZERO, 1);
        batch.results = ends(1..2, Time::ZERO).results;
        batch.results[0].fault = Some(Fault::new(FaultClass::Transient, "it said a\0b"));
        store.append(owner, batch).await.expect("append");
        let found = store.read(PARTITION, vec![Seq(1)]).await.expect("read").remove(0).expect("there");
        let fault = found.result.expect("ended").fault.expect("a fault");
        assert_eq!(fault.message, "it said a\u{fffd}b");
    });
}
