//! A full disk: writes fail with a clear error, nothing is lost, and writing resumes when there is
//! room.

use std::sync::Arc;

use tidegate_core::Seq;
use tidegate_core::shared::lease::AcquireOutcome;
use tidegate_store::log::{Batch, Lsn};
use tidegate_store::{Log, SharedState, StoreErrorKind, Upkeep};
use tokio::task::JoinSet;

use crate::image;
use crate::sample::{PARTITION, TTL, TestDir, accepts, kind, replayed};

/// OPS-8: a full disk rejects an append, loses nothing that was acknowledged, and keeps no half of
/// an append.
#[tokio::test]
async fn ops_8_a_full_disk_refuses_and_loses_nothing() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    store.health().await.expect("there is room");
    place.faults.limit_pages(40);
    let (mut taken, mut seq) = (0, 1);
    let error = loop {
        match store.append(owner, accepts(seq..seq + 8, place.now())).await {
            Ok(lsn) => (taken, seq) = (lsn.0, seq + 8),
            Err(error) => break error,
        }
    };
    assert!(taken > 0, "there was room for some");
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("has no room left: nothing was written"), "{error}");
    assert_eq!(kind(store.health().await), StoreErrorKind::Unavailable);
    let answered = ((1..seq).collect(), Lsn(taken));
    assert_eq!(replayed(&store).await.unwrap(), answered);
    assert_eq!(store.read(PARTITION, vec![Seq(seq)]).await.unwrap(), [None], "half a batch was kept");
    let after = TestDir::of(image::of(place.path()));
    assert_eq!(replayed(&after.open().unwrap()).await.unwrap(), answered, "after a crash");
    place.faults.unlimit_pages();
    store.health().await.expect("there is room again");
    let next = store.append(owner, accepts(seq..seq + 8, place.now())).await.expect("there is room again");
    assert_eq!(next, Lsn(taken + 1), "a refused append has no number");
    assert_eq!(replayed(&store).await.unwrap().0, (1..seq + 8).collect::<Vec<_>>());
    assert_eq!(store.stats().await.unwrap().operations, seq + 7);
}

/// An append that still fits is accepted, though it came together with one that does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_fits_is_taken_and_the_rest_refused() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    let store = Arc::new(store);
    let AcquireOutcome::Held(lease) = store.acquire_lease("bulk", TTL).await.unwrap() else {
        panic!("it is free")
    };
    place.faults.limit_pages(1);
    let mut callers = JoinSet::new();
    for caller in 0..16_u64 {
        let (store, batch) = (Arc::clone(&store), accepts(1 + caller * 500..501 + caller * 500, place.now()));
        callers.spawn(async move { store.append(owner, batch).await });
    }
    let kept = store.renew_lease("bulk", lease, TTL).await.expect("a row that is there needs no room");
    assert!(kept.is_some());
    for answer in callers.join_all().await {
        assert_eq!(kind(answer), StoreErrorKind::Unavailable);
    }
    assert_eq!(replayed(&*store).await.unwrap(), (vec![], Lsn(0)));
    place.faults.unlimit_pages();
    assert_eq!(store.append(owner, Batch::default()).await.unwrap(), Lsn(1));
}
