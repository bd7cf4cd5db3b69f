//! Connections that are cut, also in the middle of an append: an unknown outcome is reported as
//! such, and found out later.

use std::sync::Arc;
use std::time::Duration;

use tidegate_store::log::Lsn;
use tidegate_store::{Hints, Log, StoreErrorKind};
use tokio::time::timeout;

use crate::sample::{PARTITION, TTL, TestServer, accepts, kind, replayed};

const KILL: [&str; 4] = ["CLIENT", "KILL", "TYPE", "normal"];

/// OPS-8: the connection of an append is cut before the server processes it: the outcome is unsure,
/// that owner writes nothing more, and the next one finds the log as it was.
#[tokio::test]
async fn ops_8_a_cut_append_is_unsure_until_owned_anew() {
    let place = TestServer::new();
    let (store, owner) = place.enter().await;
    store.append(owner, accepts(1..4, place.now())).await.unwrap();
    let mut eye = place.raw_client().await;
    eye.ask::<String>(&["CLIENT", "PAUSE", "60000", "WRITE"]).await;
    let store = Arc::new(store);
    let (appending, batch) = (Arc::clone(&store), accepts(4..400, place.now()));
    let append = tokio::spawn(async move { appending.append(owner, batch).await });
    while !append.is_finished() {
        eye.ask::<u64>(&KILL).await;
        tokio::task::yield_now().await;
    }
    let error = append.await.unwrap().expect_err("the connection was cut");
    assert_eq!(error.kind(), StoreErrorKind::Unsure, "{error}");
    eye.ask::<String>(&["CLIENT", "UNPAUSE"]).await;
    assert_eq!(kind(store.append(owner, accepts(4..5, place.now())).await), StoreErrorKind::Unsure);
    let owner = store.acquire_partition(PARTITION, "test", TTL).await.unwrap();
    assert_eq!(replayed(&*store).await, (vec![1, 2, 3], Lsn(1)));
    assert_eq!(store.append(owner, accepts(4..5, place.now())).await.unwrap(), Lsn(2));
    assert!(eye.keys("tg:{0}:b:*.*").await.is_empty(), "something is left staged");
}

/// OPS-8: every second append has its connection cut a little later each time. Everything
/// acknowledged is there, whole and once; everything unsure is there or not, whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ops_8_whatever_was_answered_is_there_after_many_cuts() {
    let place = TestServer::new();
    let (store, mut owner) = place.enter().await;
    let mut eye = place.raw_client().await;
    let (mut wanted, mut unsure, mut last, mut next) = (Vec::new(), 0, Lsn(0), 1);
    for round in 0..300_u32 {
        let seqs = next..next + 20;
        let append = store.append(owner, accepts(seqs.clone(), place.now()));
        let cut = async {
            for _ in 0..round / 2 {
                tokio::task::yield_now().await;
            }
            if round % 2 == 0 {
                eye.ask::<u64>(&KILL).await;
            }
        };
        match tokio::join!(append, cut).0 {
            Ok(lsn) => {
                assert_eq!(lsn, Lsn(last.0 + 1));
                (last, next) = (lsn, seqs.end);
                wanted.extend(seqs);
                continue;
            }
            Err(error) => assert_eq!(error.kind(), StoreErrorKind::Unsure, "{error}"),
        }
        unsure += 1;
        owner = store.acquire_partition(PARTITION, "test", TTL).await.unwrap();
        let found = store.load(PARTITION, &mut |_| ()).await.unwrap();
        assert!(found == last || found == Lsn(last.0 + 1), "{found:?} after {last:?}");
        if found > last {
            wanted.extend(seqs.clone());
        }
        (last, next) = (found, seqs.end);
    }
    assert_eq!(replayed(&store).await, (wanted, last));
    assert!(unsure > 0, "no connection was cut in time");
}

/// A listener whose connection was cut receives later hints again.
#[tokio::test]
async fn a_listener_that_was_cut_off_hears_again() {
    let place = TestServer::new();
    let store = place.open().await;
    let mut hints = store.listen("topic").await.unwrap();
    assert_eq!(place.raw_client().await.ask::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]).await, 1);
    let mut heard = None;
    for _ in 0..100 {
        store.notify("topic", "are you there?").await.unwrap();
        heard = timeout(Duration::from_millis(100), hints.recv()).await.ok().flatten();
        if heard.is_some() {
            break;
        }
    }
    assert_eq!(heard.as_deref(), Some("are you there?"));
    drop(hints);
}
