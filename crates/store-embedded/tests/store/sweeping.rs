//! Clean-up: old results are removed, unfinished operations never are, and nothing hides for ever.

use std::time::Duration;

use tidegate_core::Seq;
use tidegate_store::log::{Batch, Retention, StoredQuery};
use tidegate_store::{Log, Upkeep};

use crate::sample::{PARTITION, TestDir, accepts, ends, operation};

async fn kept(store: &dyn Log) -> Vec<u64> {
    let page = store.list(PARTITION, StoredQuery { limit: 100_000, ..StoredQuery::default() }).await.unwrap();
    page.items.iter().rev().map(|stored| stored.operation.seq.0).collect()
}

/// OPS-9: retention removes finished operations only, and never one that runs again.
#[tokio::test]
async fn ops_9_only_what_ended_is_removed() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    let (old, young) = (place.now(), place.now().after(Duration::from_secs(60)));
    store.append(owner, accepts(1..1_001, old)).await.unwrap();
    store.append(owner, ends((1..1_001).filter(|seq| seq % 10 != 0), old)).await.unwrap();
    store.append(owner, ends((1..1_001).filter(|seq| seq % 20 == 0), young)).await.unwrap();
    store.append(owner, Batch { reopened: vec![Seq(7), Seq(11)], ..Batch::default() }).await.unwrap();
    let retention = Retention { ended_before: young, most: 300 };
    assert_eq!(store.sweep(owner, retention).await.unwrap(), 300);
    assert_eq!(store.sweep(owner, Retention { most: 10_000, ..retention }).await.unwrap(), 598);
    assert_eq!(store.sweep(owner, retention).await.unwrap(), 0);
    let mut wanted: Vec<u64> = (1..101).map(|tenth| tenth * 10).chain([7, 11]).collect();
    wanted.sort_unstable();
    assert_eq!(kept(&store).await, wanted);
    assert_eq!(store.stats().await.unwrap().operations, 102);
    drop(store);
    assert_eq!(place.open().unwrap().stats().await.unwrap().operations, 102, "the counter is durable");
}

/// Old results are found behind thousands of recent ones, by scanning a little further each time.
#[tokio::test]
async fn old_results_do_not_hide_behind_young_ones() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    let (old, young) = (place.now(), place.now().after(Duration::from_secs(60)));
    for start in (1..10_001).step_by(2_000) {
        let operations = (start..start + 2_000).map(|seq| {
            let mut operation = operation(seq, old);
            operation.payload.clear();
            operation.into()
        });
        store.append(owner, Batch { operations: operations.collect(), ..Batch::default() }).await.unwrap();
    }
    store.append(owner, ends(1..9_991, young)).await.unwrap();
    store.append(owner, ends(9_991..10_001, old)).await.unwrap();
    let retention = Retention { ended_before: young, most: 1_000 };
    let mut swept = 0;
    for _ in 0..4 {
        swept += store.sweep(owner, retention).await.unwrap();
    }
    assert_eq!(swept, 10);
    store.append(owner, accepts(10_001..10_002, old)).await.unwrap();
    store.append(owner, ends(10_001..10_002, old)).await.unwrap();
    for _ in 0..6 {
        swept += store.sweep(owner, retention).await.unwrap();
    }
    assert_eq!(swept, 11, "and it starts again from the front");
}
