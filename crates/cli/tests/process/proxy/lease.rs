//! Owners of a key that die or freeze in the middle of a request.

use std::time::Duration;

use tidegate_fixture::redis::RedisServer;
use tokio::time::{Instant, sleep, timeout};

use super::child::Proxy;
use super::post;
use super::service::Service;
use crate::ALONE;
use crate::caller::Caller;

/// Far less than an hour, and enough for a machine that stalls.
const PATIENCE: Duration = Duration::from_secs(30);

/// Repeats until the key is not in work any more; how often it was.
async fn until_free(caller: &Caller, key: &str) -> (String, bool, usize) {
    let mut busy = 0;
    let free = async {
        loop {
            match post(caller, key).await.expect("the proxy is there") {
                (201, text, replayed) => return (text, replayed),
                (409, text, _) => assert!(text.contains("IDEMPOTENCY_KEY_PROCESSING"), "{text}"),
                (status, text, _) => panic!("{status} {text}"),
            }
            busy += 1;
            sleep(Duration::from_millis(20)).await;
        }
    };
    let (text, replayed) = timeout(PATIENCE, free).await.expect("the key is free soon");
    (text, replayed, busy)
}

/// IDM-7: killed in the middle of a request, a proxy leaves its key blocked for the lease and not
/// for the hour; then the repeat is handled, and its answer is the one that counts.
#[tokio::test(flavor = "multi_thread")]
async fn idm_7_killed_in_the_middle_of_a_request() {
    let _alone = ALONE.lock().await;
    const LEASE: Duration = Duration::from_secs(3);
    let service = Service::start(1).await;
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        tokio::task::block_in_place(|| Proxy::start(dir.path(), &service, "file:data", "lease = \"3s\"\n"))
    };
    let mut proxy = start();
    let caller = Caller::of(&proxy.address);
    let first = tokio::spawn(async move { post(&caller, "k").await });
    service.wait_until_begun(1).await;
    let killed = Instant::now();
    proxy.kill();
    assert_eq!(first.await.unwrap(), None, "its client saw nothing");
    let proxy = start();
    let caller = Caller::of(&proxy.address);
    let (text, replayed, busy) = until_free(&caller, "k").await;
    let after = killed.elapsed();
    assert_eq!((text.as_str(), replayed, service.runs()), ("run 2", false, 2));
    // It was renewed last no longer before than a third of the lease.
    assert!(after >= LEASE * 2 / 3 - Duration::from_millis(100), "free after {after:?}");
    println!("free {after:?} after the kill, {busy} repeats refused");
    assert_eq!(post(&caller, "k").await.unwrap(), (201, "run 2".into(), true));
}

/// IDM-7, IDM-8: an owner that stands still past its lease and wakes does not overwrite the answer
/// of the one that took over, and its own client gets that answer.
#[tokio::test(flavor = "multi_thread")]
async fn idm_7_an_owner_that_wakes_overwrites_nothing() {
    let _alone = ALONE.lock().await;
    let redis = tokio::task::block_in_place(RedisServer::start);
    let service = Service::start(1).await;
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [sleeper, other] = dirs.each_ref().map(|dir| {
        tokio::task::block_in_place(|| Proxy::start(dir.path(), &service, &redis.url(), "lease = \"3s\"\n"))
    });
    let (at_sleeper, at_other) = (Caller::of(&sleeper.address), Caller::of(&other.address));
    let caller = at_sleeper.clone();
    let first = tokio::spawn(async move { post(&caller, "k").await });
    service.wait_until_begun(1).await;
    assert_eq!(post(&at_other, "k").await.unwrap().0, 409, "one key, two proxies, one owner");
    sleeper.signal("STOP");
    let (text, replayed, _) = until_free(&at_other, "k").await;
    assert_eq!((text.as_str(), replayed), ("run 2", false), "taken over and done");
    service.release(1);
    sleeper.signal("CONT");
    let (status, text, replayed) = first.await.unwrap().expect("the sleeper answers its client");
    assert_eq!((status, text.as_str(), replayed), (201, "run 2", true));
    for caller in [&at_sleeper, &at_other] {
        assert_eq!(post(caller, "k").await.unwrap(), (201, "run 2".into(), true));
    }
    assert_eq!(service.runs(), 2);
}
