//! One owner at a time, even while appends are in flight.

use std::sync::Arc;

use sqlx::Connection;
use tidegate_core::{Fact, Seq, Time};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::log::{Batch, Lsn};
use tidegate_store::{Log, StoreErrorKind, codec};

use crate::sample::{PARTITION, TTL, accepts, behind, execute, kept, last, run, store, waiting_append};

/// OPS-8: a new owner waits for an append in flight and finds it; whatever the old owner sends
/// later is rejected and leaves nothing.
#[test]
fn ops_8_no_append_slips_in_behind_a_new_owner() {
    run(async {
        let server = PostgresServer::start();
        let (old, new) = (Arc::new(store(&server).await), Arc::new(store(&server).await));
        let zombie = old.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let mut sql = behind(&server).await;
        // Stops the append after it has checked its epoch and before it has written its operations.
        let mut stop = behind(&server).await;
        execute(&mut stop, "BEGIN; LOCK TABLE operations IN EXCLUSIVE MODE").await;
        let under_way = {
            let old = Arc::clone(&old);
            tokio::spawn(async move { old.append(zombie, accepts(1..4, Time::ZERO, 10)).await })
        };
        waiting_append(&mut sql).await;
        let taking = {
            let new = Arc::clone(&new);
            // The same name, so that no lease is in the way: as after a restart.
            tokio::spawn(async move { new.acquire_partition(PARTITION, "node", TTL).await })
        };
        let own_waits = "SELECT EXISTS (SELECT FROM pg_stat_activity
            WHERE wait_event_type = 'Lock' AND query LIKE '%own(%' AND pid <> pg_backend_pid())";
        while !sqlx::query_scalar::<_, bool>(own_waits).fetch_one(&mut sql).await.expect("look") {
            assert!(!taking.is_finished(), "it was owned while an append of the old owner was under way");
        }
        execute(&mut stop, "ROLLBACK").await;
        assert_eq!(under_way.await.expect("join").expect("append"), Lsn(1));
        let owner = taking.await.expect("join").expect("own");
        assert!(owner.epoch > zombie.epoch);
        assert_eq!(last(&*new).await, Lsn(1), "the new owner finds what was under way");
        for batch in [accepts(4..7, Time::ZERO, 10), Batch::default()] {
            let late = old.append(zombie, batch).await.map_err(|error| error.kind());
            assert_eq!(late, Err(StoreErrorKind::Fenced));
        }
        assert_eq!((last(&*new).await, kept(&*new, 1..9).await), (Lsn(1), 3));
        assert_eq!(new.append(owner, accepts(4..7, Time::ZERO, 10)).await.expect("append"), Lsn(2));
        stop.close().await.expect("close");
    });
}

/// A lease is renewed while an append, a snapshot or a sweep is in progress: none of them makes an
/// owner lose it.
#[test]
fn a_renewal_waits_for_no_append() {
    run(async {
        let server = PostgresServer::start();
        let store = Arc::new(store(&server).await);
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let mut sql = behind(&server).await;
        let mut stop = behind(&server).await;
        execute(&mut stop, "BEGIN; LOCK TABLE operations IN EXCLUSIVE MODE").await;
        let under_way = {
            let store = Arc::clone(&store);
            tokio::spawn(async move { store.append(owner, accepts(1..2, Time::ZERO, 10)).await })
        };
        waiting_append(&mut sql).await;
        let renewed = store.renew(owner, TTL).await.expect("renew");
        assert!(renewed.until > owner.until && !under_way.is_finished());
        execute(&mut stop, "ROLLBACK").await;
        assert_eq!(under_way.await.expect("join").expect("append"), Lsn(1));
    });
}

/// Concurrent appends are stored in the order of submission, though no caller waits for the one
/// before.
#[test]
fn appends_keep_the_order_of_the_calls() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        let after = |lsn| Batch { follows: Some(Lsn(lsn)), ..Batch::default() };
        let under_way: Vec<_> = (0..50).map(|before| store.append(owner, after(before))).collect();
        // Awaited in the wrong order on purpose.
        for (append, before) in under_way.into_iter().zip(0..).collect::<Vec<_>>().into_iter().rev() {
            assert_eq!(append.await.expect("append"), Lsn(before + 1));
        }
        let (good, bad, on_it) = (after(50), after(50), after(51));
        let under_way = [store.append(owner, good), store.append(owner, bad), store.append(owner, on_it)];
        let [good, bad, on_it] = under_way;
        assert_eq!(good.await.expect("append"), Lsn(51));
        assert_eq!(bad.await.map_err(|error| error.kind()), Err(StoreErrorKind::Unavailable));
        assert_eq!(on_it.await.expect("append"), Lsn(52));
    });
}

/// A snapshot in several steps is complete or does not exist: a new owner in the middle keeps the
/// old one, and the unfinished parts are removed with the next.
#[test]
fn a_large_snapshot_is_whole_or_not_there() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        for _ in 0..4 {
            store.append(owner, Batch::default()).await.expect("append");
        }
        let facts: Vec<_> =
            (0..400_000).map(|seq| Fact::CancelRequested { seq: Seq(seq + (1 << 40)) }).collect();
        let parts = codec::encode_iter(facts.clone().into_iter(), 300_000);
        assert!(parts.iter().map(bytes::Bytes::len).sum::<usize>() > 2 * 1024 * 1024, "several steps");
        let mut sql = behind(&server).await;
        let mut stop = behind(&server).await;
        execute(&mut stop, "BEGIN; SELECT FROM partitions FOR SHARE").await;
        let finishing = "SELECT EXISTS (SELECT FROM pg_stat_activity
            WHERE wait_event_type = 'Lock' AND query LIKE '%finish_snapshot(%' AND pid <> pg_backend_pid())";
        let snapshot = store.snapshot(owner, Lsn(3), parts.clone());
        let looking = async {
            while !sqlx::query_scalar::<_, bool>(finishing).fetch_one(&mut sql).await.expect("look") {}
            // All parts are written, and not visible.
            let mut found = 0;
            store.load(PARTITION, &mut |facts| found += facts.len()).await.expect("load");
            assert_eq!(found, 0);
            execute(&mut stop, "UPDATE partitions SET epoch = epoch + 1; COMMIT").await;
        };
        let (answer, ()) = tokio::join!(snapshot, looking);
        assert_eq!(answer.map_err(|error| error.kind()), Err(StoreErrorKind::Fenced));
        let owner = store.acquire_partition(PARTITION, "node", TTL).await.expect("own");
        store.snapshot(owner, Lsn(3), parts.clone()).await.expect("snapshot");
        let mut found = Vec::new();
        let end = store.load(PARTITION, &mut |facts| found.extend(facts)).await.expect("load");
        assert!(found == facts && end == Lsn(4));
        let kept = "SELECT count(*) FROM snapshots";
        let kept: i64 = sqlx::query_scalar(kept).fetch_one(&mut sql).await.expect("count");
        assert_eq!(kept, parts.len() as i64, "the parts that were never used are gone");
    });
}
