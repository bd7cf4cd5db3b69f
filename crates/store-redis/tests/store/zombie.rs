//! An owner that was superseded by a newer one, or that died, and what it leaves.

use tidegate_store::log::Lsn;
use tidegate_store::{Log, StoreErrorKind};

use crate::sample::{PARTITION, TTL, TestServer, accepts, kind, replayed};

/// OPS-8: the server rejects a late append of an old owner and leaves nothing staged, however often
/// it comes.
#[tokio::test]
async fn ops_8_a_zombies_append_is_refused_and_leaves_nothing() {
    let place = TestServer::new();
    let (old, first) = place.enter().await;
    old.append(first, accepts(1..3, place.now())).await.unwrap();
    place.clock.advance(TTL);
    let new = place.open().await;
    let second = new.acquire_partition(PARTITION, "other", TTL).await.unwrap();
    let mut eye = place.raw_client().await;
    for _ in 0..3 {
        assert_eq!(kind(old.append(first, accepts(3..9, place.now())).await), StoreErrorKind::Fenced);
        assert_eq!(eye.keys("tg:{0}:b:*").await, ["tg:{0}:b:1"]);
    }
    assert_eq!(new.append(second, accepts(3..4, place.now())).await.unwrap(), Lsn(2));
    assert_eq!(replayed(&new).await, (vec![1, 2, 3], Lsn(2)));
}

/// What a dead owner had staged, of a batch or of a snapshot, is cleared by the next one.
#[tokio::test]
async fn the_next_owner_clears_away_what_a_dead_one_staged() {
    let place = TestServer::new();
    let (_, first) = place.enter().await;
    let mut eye = place.raw_client().await;
    for slot in ["1", "8"] {
        let staged = format!("tg:{{0}}:b:{}.{slot}", first.epoch.0);
        eye.ask::<u64>(&["HSET", &staged, "o:1", "half a batch"]).await;
    }
    eye.ask::<u64>(&["HSET", "tg:{0}:head", "staging", "1.2.3"]).await;
    eye.ask::<u64>(&["RPUSH", "tg:{0}:snap:1.2.3", "half a snapshot"]).await;
    place.clock.advance(TTL);
    let (store, owner) = place.enter().await;
    assert!(owner.epoch > first.epoch);
    assert_eq!(eye.keys("tg:{0}:*").await, ["tg:{0}:head"]);
    assert_eq!(replayed(&store).await, (Vec::new(), Lsn(0)));
}

/// OPS-8: a missing append is reported, not skipped.
#[tokio::test]
async fn ops_8_a_hole_in_the_log_is_unreadable() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    for seq in 1..6 {
        store.append(owner, accepts(seq..seq + 1, place.now())).await.unwrap();
    }
    place.raw_client().await.ask::<u64>(&["DEL", "tg:{0}:b:3"]).await;
    let error = store.load(PARTITION, &mut |_| ()).await.expect_err("append 3 is missing");
    assert_eq!(error.kind(), StoreErrorKind::Unreadable);
    assert!(error.to_string().contains("append 3 is missing"), "{error}");
}
