//! An unavailable store grants nothing, and the error says so.

use std::sync::Arc;
use std::time::Duration;

use tidegate_contract::{FaultPlan, InjectedFault};
use tidegate_fixture::redis::RedisServer;
use tidegate_limits::{Error, NamedLease, SharedBucket};

use crate::world::{bucket, every_reserve, ms, store};

/// LIM-30: nothing is granted, every waiter gets an error, and granting resumes when the store is
/// back.
#[tokio::test(start_paused = true)]
async fn lim_30_out_of_reach_grants_nothing_and_tells_everybody() {
    let store = store();
    let shop = bucket(&store, "shop", 5.0, 1.0);
    let _all = shop.take(5).await.unwrap();
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let shop = shop.clone();
            tokio::spawn(async move { shop.take(5).await })
        })
        .collect();
    tokio::time::sleep(ms(1_000)).await;
    store.set_down(true);
    for task in waiting {
        let error = task.await.unwrap().unwrap_err();
        assert!(matches!(&error, Error::Store(_)) && !error.is_unsure(), "{error}");
    }
    assert!(shop.try_take(1).await.is_err() && shop.take_within(1, ms(10)).await.is_err());
    let lease = NamedLease::new(Arc::clone(&store) as _, "bulk", ms(1_000)).unwrap();
    assert!(lease.try_acquire().await.is_err() && lease.acquire_within(ms(10)).await.is_err());
    store.set_down(false);
    assert!(shop.try_take(5).await.unwrap().granted().is_some(), "what waited in vain took nothing");
    assert!(lease.try_acquire().await.unwrap().held().is_some());
}

/// LIM-30: a lost reply may have taken tokens, is not a grant, and is reported as unsure.
#[tokio::test(start_paused = true)]
async fn lim_30_a_lost_answer_is_no_grant() {
    let store = store();
    let shop = bucket(&store, "shop", 5.0, 1.0);
    store.set_plan(every_reserve(InjectedFault::LoseReply));
    assert!(shop.take(2).await.unwrap_err().is_unsure());
    store.set_plan(FaultPlan::none());
    assert_eq!(shop.level().await.unwrap(), 3.0);
}

/// LIM-30: a Redis that was killed grants nothing; when it is back with its data, what was taken is
/// still taken.
#[tokio::test]
async fn lim_30_a_dead_redis_grants_nothing() {
    let mut server = RedisServer::start_with(&["--appendfsync", "always"]);
    let store = tidegate_store_redis::open(&server.url()).await.unwrap();
    let shop = SharedBucket::new(store, "shop", 5, 0.001).unwrap();
    assert_eq!(shop.take(4).await.unwrap().remaining(), 1.0);
    server.kill();
    let error = shop.take_within(1, Duration::from_secs(1)).await.unwrap_err();
    let said = error.to_string();
    assert!(said.starts_with("The store failed: ") && said.contains("127.0.0.1"), "{said}");
    assert!(shop.take(1).await.is_err());
    server.restart();
    assert!(shop.try_take(2).await.unwrap().granted().is_none());
    assert!(shop.try_take(1).await.unwrap().granted().is_some());
}
