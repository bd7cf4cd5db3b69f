//! Other users of the same server that misbehave: transactions left open, locks held for ever, a
//! standby in place of the primary. Appends succeed, or fail in bounded time.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::log::{Lsn, Retention, StoredQuery};
use tidegate_store::{Log, SharedState, StoreErrorKind, Upkeep, codec};

use crate::sample::{PARTITION, TTL, accepts, behind, ends, execute, kept, last, run, store};

/// A transaction that was left open after reading every table blocks nothing.
#[test]
fn an_idle_transaction_elsewhere_stops_nothing() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        store.append(owner, accepts(1..9, Time::ZERO, 100)).await.expect("append");
        let mut idle = behind(&server).await;
        execute(
            &mut idle,
            "BEGIN ISOLATION LEVEL REPEATABLE READ;
             SELECT FROM operations; SELECT FROM results; SELECT FROM log; SELECT FROM partitions;
             SELECT FROM snapshots; SELECT FROM records; SELECT FROM buckets",
        )
        .await;
        for round in 0..200_u64 {
            let next = 9 + round * 4;
            store.append(owner, accepts(next..next + 4, Time::ZERO, 100)).await.expect("append");
            store.append(owner, ends(next..next + 4, Time::from_millis(5))).await.expect("append");
        }
        store.snapshot(owner, Lsn(300), vec![codec::encode(&[])]).await.expect("snapshot");
        let old = Retention { ended_before: Time::from_millis(6), most: 10_000 };
        assert_eq!(store.sweep(owner, old).await.expect("sweep"), 800);
        assert_eq!(last(&store).await, Lsn(401));
        assert_eq!(kept(&store, 1..2_000).await, 8);
        let page =
            store.list(PARTITION, StoredQuery { limit: 100, ..StoredQuery::default() }).await.expect("list");
        assert_eq!(page.items.len(), 8);
        store.renew(owner, TTL).await.expect("renew");
        execute(&mut idle, "ROLLBACK").await;
    });
}

/// Waiting for a lock that is never released is bounded; then nothing was written, and that is
/// certain.
#[test]
fn a_lock_held_for_ever_is_given_up() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let mut stuck = behind(&server).await;
        execute(&mut stuck, "BEGIN; LOCK TABLE log IN ACCESS EXCLUSIVE MODE").await;
        let answer = store.append(owner, accepts(1..3, Time::ZERO, 10)).await;
        let error = answer.expect_err("the log is locked");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("nothing was written"), "{error}");
        execute(&mut stuck, "ROLLBACK").await;
        assert_eq!(store.append(owner, accepts(1..3, Time::ZERO, 10)).await.expect("append"), Lsn(1));
    });
}

/// A server in recovery can be read and reports that it accepts no writes.
#[test]
fn a_server_in_recovery_is_said() {
    run(async {
        let mut server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        store.append(owner, accepts(1..3, Time::ZERO, 10)).await.expect("append");
        store.health().await.expect("be well");
        server.restart_in_recovery();
        let error = store.health().await.expect_err("it takes no writes");
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(error.to_string().ends_with("is in recovery and accepts no writes"), "{error}");
        let lease = loop {
            match store.acquire_lease("bulk", Duration::from_secs(1)).await {
                // A connection that had been to the primary.
                Err(error) if error.kind() == StoreErrorKind::Unsure => {}
                other => break other,
            }
        };
        assert_eq!(lease.expect_err("it takes no writes").kind(), StoreErrorKind::Unavailable);
        assert_eq!(last(&store).await, Lsn(1), "it can be read");
    });
}
