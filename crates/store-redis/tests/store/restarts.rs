//! A server that goes away and comes back: with its data, without it, or with only some of it.

use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::ReservationRequest;
use tidegate_fixture::redis::RedisServer;
use tidegate_store::log::Lsn;
use tidegate_store::{Log, SharedState, StoreErrorKind, Upkeep};
use tidegate_store_redis::RedisStore;

use crate::sample::{PARTITION, TTL, TestServer, accepts, kind, replayed};

/// Retries until the server is back. Only a connection that was lost without notice takes a second
/// attempt.
async fn is_back(store: &RedisStore) -> bool {
    for _ in 0..3 {
        if store.health().await.is_ok() {
            return true;
        }
    }
    false
}

/// OPS-8: appends survive `kill -9` of a server that always syncs, and the owner recovers by
/// itself. LIM-30: while the store is unavailable nothing is granted, and calls fail.
#[tokio::test]
async fn ops_8_lim_30_a_server_that_comes_back_with_its_data_is_used_again() {
    let mut place = TestServer::of(RedisServer::start_with(&["--appendfsync", "always"]));
    let (store, owner) = place.enter().await;
    store.append(owner, accepts(1..4, place.now())).await.unwrap();
    let want = ReservationRequest { name: "x".into(), cost: MICRO, capacity: 5 * MICRO, refill_per_s: 0 };
    store.reserve(vec![want.clone()]).await.unwrap();
    place.server.kill();
    // The first call may use the lost connection; after that, connecting fails.
    let _ = store.health().await;
    assert_eq!(kind(store.health().await), StoreErrorKind::Unavailable);
    assert_eq!(kind(store.append(owner, accepts(4..5, place.now())).await), StoreErrorKind::Unavailable);
    assert_eq!(kind(store.reserve(vec![want.clone()]).await), StoreErrorKind::Unavailable);
    assert_eq!(kind(RedisStore::open(&place.server.url()).await), StoreErrorKind::Unavailable);
    place.server.restart();
    assert!(is_back(&store).await);
    assert_eq!(store.append(owner, accepts(4..5, place.now())).await.unwrap(), Lsn(2));
    assert_eq!(replayed(&store).await, (vec![1, 2, 3, 4], Lsn(2)));
    assert_eq!(store.observe_bucket("x").await.unwrap().unwrap().tokens, 4 * MICRO);
}

/// OPS-8: an owner whose server came back empty is fenced, and never starts from nothing under the
/// same epoch.
#[tokio::test]
async fn ops_8_a_server_that_lost_everything_fences_its_owner() {
    let mut place = TestServer::new();
    let (store, owner) = place.enter().await;
    store.append(owner, accepts(1..4, place.now())).await.unwrap();
    place.server.restart_empty();
    assert!(is_back(&store).await);
    let error = store.append(owner, accepts(4..5, place.now())).await.expect_err("it has lost its data");
    assert_eq!(error.kind(), StoreErrorKind::Fenced);
    assert!(error.to_string().contains("lost its data"), "{error}");
    assert_eq!(kind(store.renew(owner, TTL).await), StoreErrorKind::Fenced);
    assert!(place.raw_client().await.keys("tg:{0}:*").await.is_empty(), "a refused append began a log");
    place.clock.advance(TTL);
    let next = store.acquire_partition(PARTITION, "test", TTL).await.unwrap();
    assert!(next.epoch > owner.epoch, "an epoch was given out twice");
    assert_eq!(kind(store.append(owner, accepts(4..5, place.now())).await), StoreErrorKind::Fenced);
    assert_eq!(store.append(next, accepts(1..2, place.now())).await.unwrap(), Lsn(1));
}

/// OPS-8: after a failover to a replica without the last append, the owner is fenced too.
#[tokio::test]
async fn ops_8_a_server_that_lost_the_last_append_fences_its_owner() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    for seq in 1..4 {
        store.append(owner, accepts(seq..seq + 1, place.now())).await.unwrap();
    }
    let mut eye = place.raw_client().await;
    eye.ask::<u64>(&["DEL", "tg:{0}:b:3"]).await;
    eye.ask::<u64>(&["HSET", "tg:{0}:head", "last", "2", "seq", "2"]).await;
    let error = store.append(owner, accepts(4..5, place.now())).await.expect_err("append 3 is gone");
    assert_eq!(error.kind(), StoreErrorKind::Fenced);
    assert!(error.to_string().contains("it had 3 and now ends at 2"), "{error}");
    assert_eq!(kind(store.renew(owner, TTL).await), StoreErrorKind::Fenced);
    let owner = store.acquire_partition(PARTITION, "test", TTL).await.unwrap();
    assert_eq!(replayed(&store).await, (vec![1, 2], Lsn(2)));
    assert_eq!(store.append(owner, accepts(3..4, place.now())).await.unwrap(), Lsn(3));
}
