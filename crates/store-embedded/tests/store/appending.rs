//! Concurrent appends, and what readers see of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::{EndState, Seq};
use tidegate_store::log::{Lsn, StoredQuery};
use tidegate_store::{Log, StoreErrorKind, Upkeep};
use tokio::task::JoinSet;

use crate::sample::{PARTITION, TestDir, accepts, ends, kind, replayed};

/// OPS-8: whatever is committed together, each caller gets its own number, and acknowledged appends
/// can be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn ops_8_appends_at_once_are_all_there_and_seen_when_answered() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    let (store, now) = (Arc::new(store), place.now());
    let mut callers = JoinSet::new();
    for caller in 0..32_u64 {
        let store = Arc::clone(&store);
        callers.spawn(async move {
            let mut numbers = Vec::new();
            for round in 0..8 {
                let first = 1 + (caller * 8 + round) * 4;
                numbers.push(store.append(owner, accepts(first..first + 4, now)).await.unwrap());
                let seqs = (first..first + 4).map(Seq).collect();
                let found = store.read(PARTITION, seqs).await.unwrap();
                assert!(found.iter().all(Option::is_some), "answered, and not to be read");
            }
            numbers
        });
    }
    let numbers: BTreeSet<Lsn> = callers.join_all().await.into_iter().flatten().collect();
    assert_eq!(numbers, (1..=256).map(Lsn).collect());
    let (mut seqs, last) = replayed(&*store).await.unwrap();
    seqs.sort_unstable();
    assert_eq!((seqs, last), ((1..1_025).collect(), Lsn(256)));
    assert_eq!(store.stats().await.unwrap().operations, 1_024);
}

/// A rejected append does not fail others, though they were to be committed together.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_refused_append_takes_no_other_with_it() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    let (store, now) = (Arc::new(store), place.now());
    store.append(owner, accepts(1..3, now)).await.unwrap();
    let mut callers = JoinSet::new();
    for caller in 1..40_u64 {
        let store = Arc::clone(&store);
        let (good, seqs) = (caller % 4 != 0, caller * 10..caller * 10 + 5);
        let mut batch = accepts(seqs.clone(), now);
        if !good {
            batch.operations.insert(0, crate::sample::operation(1, now).into());
        }
        callers.spawn(async move { (good, seqs, store.append(owner, batch).await) });
    }
    let mut wanted = vec![1, 2];
    for (good, seqs, answer) in callers.join_all().await {
        if good {
            answer.expect("nothing is wrong with it");
            wanted.extend(seqs);
        } else {
            assert_eq!(kind(answer), StoreErrorKind::Invalid);
        }
    }
    let (mut found, last) = replayed(&*store).await.unwrap();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!((found, last), (wanted, Lsn(31)));
    assert_eq!(store.stats().await.unwrap().operations, 2 + 30 * 5);
}

/// A page ends after a bounded scan, and returns where to resume, even when it found nothing.
#[tokio::test]
async fn a_rare_group_is_found_in_bounded_steps() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    let mut first = accepts(1..2, place.now());
    Arc::make_mut(&mut first.operations[0]).group = "rare".into();
    store.append(owner, first).await.unwrap();
    for start in (2..50_102).step_by(5_010) {
        let mut batch = accepts(start..start + 5_010, place.now());
        batch.operations.iter_mut().for_each(|operation| Arc::make_mut(operation).payload.clear());
        store.append(owner, batch).await.unwrap();
    }
    let query = StoredQuery { group: Some("rare".into()), limit: 10, ..StoredQuery::default() };
    let page = store.list(PARTITION, query.clone()).await.unwrap();
    assert_eq!((page.items.len(), page.next), (0, Some(Seq(102))), "50,000 rows and no more");
    let page = store.list(PARTITION, StoredQuery { before: page.next, ..query }).await.unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
}

/// OPS-25: failures are found by their own index, whatever has succeeded since.
#[tokio::test]
async fn ops_25_failures_are_listed_without_a_look_at_the_rest() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    store.append(owner, accepts(1..100, place.now())).await.unwrap();
    store.append(owner, ends(1..100, place.now())).await.unwrap();
    let query = StoredQuery { ended: Some(EndState::Failed), limit: 10, ..StoredQuery::default() };
    let page = store.list(PARTITION, query.clone()).await.unwrap();
    let seqs: Vec<u64> = page.items.iter().map(|stored| stored.operation.seq.0).collect();
    assert_eq!(seqs, [99, 96, 93, 90, 87, 84, 81, 78, 75, 72]);
    let page = store.list(PARTITION, StoredQuery { before: page.next, ..query }).await.unwrap();
    assert_eq!(page.items[0].operation.seq, Seq(69));
    let sql = rusqlite::Connection::open(place.file("p0.sqlite")).unwrap();
    let plan: String = sql
        .query_row(
            "EXPLAIN QUERY PLAN SELECT seq FROM results WHERE state <> 'succeeded' AND state = 'failed' AND seq <= 9
             ORDER BY seq DESC",
            [],
            |row| row.get("detail"),
        )
        .unwrap();
    assert!(plan.contains("results_unsuccessful"), "{plan}");
}

#[tokio::test]
async fn nothing_is_replayed_of_a_partition_that_nobody_has_used() {
    let place = TestDir::new();
    let store = place.open().unwrap();
    assert_eq!(store.load(9, &mut |_| panic!("there is nothing")).await.unwrap(), Lsn(0));
    assert_eq!(store.read(9, vec![Seq(1)]).await.unwrap(), [None]);
    assert!(!place.file("p9.sqlite").exists(), "looking makes no file");
}
