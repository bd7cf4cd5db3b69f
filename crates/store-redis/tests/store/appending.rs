//! Appends while the server forgets its scripts, is full, or has several in flight.

use tidegate_core::Seq;
use tidegate_store::log::{Batch, Lsn, Retention, StoredQuery};
use tidegate_store::{Log, SharedState, StoreErrorKind, Upkeep, codec};

use crate::sample::{PARTITION, TTL, TestServer, accepts, ended, kind, replayed};

/// OPS-8: a server that forgets its scripts, between appends and in the middle of one, does no
/// harm.
#[tokio::test]
async fn ops_8_a_server_that_forgets_its_scripts_does_no_harm() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    let mut eye = place.raw_client().await;
    for round in 0..50 {
        let flush = eye.ask::<String>(&["SCRIPT", "FLUSH"]);
        let append = store.append(owner, accepts(round * 3 + 1..round * 3 + 4, place.now()));
        let (_, lsn) = if round % 2 == 0 { tokio::join!(flush, append) } else { (flush.await, append.await) };
        assert_eq!(lsn.expect("an append"), Lsn(round + 1));
    }
    eye.ask::<String>(&["SCRIPT", "FLUSH"]).await;
    assert!(store.renew(owner, TTL).await.is_ok() && store.acquire_lease("bulk", TTL).await.is_ok());
    assert_eq!(replayed(&store).await, ((1..151).collect(), Lsn(50)));
    assert!(eye.keys("tg:{0}:b:*.*").await.is_empty(), "something is left staged");
}

/// OPS-8: a full server rejects an append, keeps nothing of it, and recovers when there is room.
#[tokio::test]
async fn ops_8_a_full_server_refuses_and_loses_nothing() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    let mut eye = place.raw_client().await;
    store.append(owner, accepts(1..4, place.now())).await.unwrap();
    eye.ask::<String>(&["CONFIG", "SET", "maxmemory", "1"]).await;
    assert_eq!(kind(store.append(owner, accepts(4..9, place.now())).await), StoreErrorKind::Unavailable);
    assert_eq!(kind(store.health().await), StoreErrorKind::Unavailable);
    assert_eq!(kind(store.acquire_lease("bulk", TTL).await), StoreErrorKind::Unavailable);
    eye.ask::<String>(&["CONFIG", "SET", "maxmemory", "0"]).await;
    assert_eq!(replayed(&store).await, (vec![1, 2, 3], Lsn(1)));
    assert_eq!(store.read(PARTITION, vec![Seq(4)]).await.unwrap(), [None]);
    assert_eq!(store.append(owner, accepts(4..9, place.now())).await.unwrap(), Lsn(2));
    assert!(eye.keys("tg:{0}:b:*.*").await.is_empty(), "something is left staged");
}

/// Twenty concurrent appends, each following the one before it, all succeed, in order; the first
/// that fails makes the rest fail.
#[tokio::test]
async fn appends_under_way_at_once_stand_in_order() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    let follows = |lsn: u64, seq| Batch { follows: Some(Lsn(lsn)), ..accepts(seq..seq + 1, place.now()) };
    let appends = (0..20).map(|lsn| store.append(owner, follows(lsn, lsn + 1)));
    let done = futures_util::future::join_all(appends).await;
    assert_eq!(
        done.into_iter().map(Result::unwrap).collect::<Vec<_>>(),
        (1..=20).map(Lsn).collect::<Vec<_>>()
    );
    let broken = [follows(20, 21), follows(23, 22), follows(24, 23)];
    let done = futures_util::future::join_all(broken.map(|batch| store.append(owner, batch))).await;
    let kinds: Vec<_> = done.into_iter().map(|done| done.map_err(|error| error.kind())).collect();
    assert_eq!(kinds, [Ok(Lsn(21)), Err(StoreErrorKind::Unavailable), Err(StoreErrorKind::Unavailable)]);
    assert_eq!(replayed(&store).await, ((1..22).collect(), Lsn(21)));
}

/// A seq is used once, also across appends.
#[tokio::test]
async fn a_seq_is_used_once_and_fits() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    store.append(owner, accepts(1..4, place.now())).await.unwrap();
    assert_eq!(kind(store.append(owner, accepts(3..5, place.now())).await), StoreErrorKind::Invalid);
    let large = 1 << 53;
    assert_eq!(
        kind(store.append(owner, accepts(large..large + 1, place.now())).await),
        StoreErrorKind::Invalid
    );
    assert_eq!(store.append(owner, accepts(large - 1..large, place.now())).await.unwrap(), Lsn(2));
    let found = store.read(PARTITION, vec![Seq(large - 1), Seq(large)]).await.unwrap();
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false]);
}

/// Swept data and data replaced by a snapshot are removed from the server, to the last key of the
/// batch.
#[tokio::test]
async fn nothing_stays_behind() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    let mut eye = place.raw_client().await;
    store.append(owner, accepts(1..4, place.now())).await.unwrap();
    let results = (1..4).map(|seq| ended(seq, place.now())).collect();
    store.append(owner, Batch { results, ..Batch::default() }).await.unwrap();
    let again = Batch { reopened: vec![Seq(2)], results: vec![ended(2, place.now())], ..Batch::default() };
    store.append(owner, again).await.unwrap();
    for _ in 0..2 {
        store.snapshot(owner, Lsn(3), vec![codec::encode(&[])]).await.unwrap();
    }
    let all = Retention { ended_before: tidegate_core::Time::MAX, most: 10 };
    assert_eq!(store.sweep(owner, all).await.unwrap(), 3);
    assert!(
        store
            .list(PARTITION, StoredQuery { limit: 9, ..StoredQuery::default() })
            .await
            .unwrap()
            .items
            .is_empty()
    );
    assert_eq!(eye.keys("tg:{0}:b:*").await, [""; 0]);
    assert_eq!(eye.keys("tg:{0}:snap:*").await.len(), 1);
    assert_eq!(eye.keys("tg:{0}:[or]*").await, [""; 0]);
}

/// An owner that appends through two stores makes two appends, however alike they are.
#[tokio::test]
async fn equal_appends_through_two_stores_both_count() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    let beside = place.open().await;
    assert_eq!(store.append(owner, Batch::default()).await.unwrap(), Lsn(1));
    assert_eq!(beside.append(owner, Batch::default()).await.unwrap(), Lsn(2));
}

/// Operations are found whether many of them are in one append or each in one of its own, close
/// together or far apart, in the requested order.
#[tokio::test]
async fn operations_are_found_in_large_appends_and_small_ones() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    for seq in 1..=600 {
        store.append(owner, accepts(seq..seq + 1, place.now())).await.unwrap();
    }
    store.append(owner, accepts(601..1_000, place.now())).await.unwrap();
    let all: Vec<u64> = (1..1_000).collect();
    let sparse: Vec<u64> = (1..1_000).rev().step_by(3).collect();
    let few = vec![999, 1, 0, 600, 601, 600, 1_000, u64::MAX];
    for asked in [all, sparse, few] {
        let asked: Vec<Seq> = asked.into_iter().map(Seq).collect();
        let wanted = store.read(PARTITION, asked.clone()).await.unwrap();
        let wanted: Vec<_> = wanted.into_iter().map(|stored| Some(stored?.operation)).collect();
        assert_eq!(store.load_operations(PARTITION, asked).await.unwrap(), wanted);
    }
}
