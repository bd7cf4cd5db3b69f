//! A commit with an unknown outcome: it is reported as such, and ends writing until the store is
//! reopened.

use tidegate_core::Seq;
use tidegate_store::log::{Batch, Lsn};
use tidegate_store::{Log, SharedState, StoreErrorKind, Upkeep};

use crate::sample::{PARTITION, TTL, TestDir, accepts, kind, replayed};

/// OPS-8: nothing is acknowledged that is not known to be durable, and what really happened is
/// found later.
#[tokio::test]
async fn ops_8_an_unsure_commit_is_the_last_one_until_reopened() {
    let place = TestDir::new();
    let (store, owner) = place.enter().await;
    store.append(owner, accepts(1..4, place.now())).await.unwrap();
    place.faults.make_next_commit_unsure();
    let error = store.append(owner, accepts(4..6, place.now())).await.expect_err("nobody knows");
    assert_eq!(error.kind(), StoreErrorKind::Unsure);
    assert!(error.to_string().contains("nothing more is written until it is reopened"), "{error}");
    assert_eq!(kind(store.append(owner, Batch::default()).await), StoreErrorKind::Unsure);
    assert_eq!(kind(store.renew(owner, TTL).await), StoreErrorKind::Unsure);
    assert_eq!(kind(store.acquire_lease("bulk", TTL).await), StoreErrorKind::Unsure);
    assert_eq!(kind(store.health().await), StoreErrorKind::Unsure);
    assert!(store.read(PARTITION, vec![Seq(1)]).await.unwrap()[0].is_some(), "what was there can be read");
    drop(store);
    let (store, owner) = place.enter().await;
    assert_eq!(replayed(&store).await.unwrap(), (vec![1, 2, 3, 4, 5], Lsn(2)), "this time it had happened");
    assert_eq!(store.append(owner, accepts(6..7, place.now())).await.unwrap(), Lsn(3));
    assert_eq!(store.stats().await.unwrap().operations, 6, "counted with what was found");
}
