//! An unavailable store grants nothing, and the error says so.

use std::sync::Arc;
use std::time::Duration;

use tidegate_contract::{FaultPlan, InjectedFault};
use tidegate_fixture::redis::RedisServer;
use tidegate_limits::{Error, FixedShare, NamedLease, SharedBucket, try_take_all};
use tokio::time::Instant;

use crate::world::{bucket, every_reserve, expect_wait, ms, store};

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

/// LIM-30: with a fixed share each process goes on at its share of the rate while the store is
/// away, beginning with nothing; together they keep within the limit, and when the store is back it
/// grants that much less.
#[tokio::test(start_paused = true)]
async fn lim_30_on_a_fixed_share_the_limit_is_kept() {
    const PROCESSES: usize = 4;
    let store = store();
    let share = || FixedShare::new(1.0 / PROCESSES as f64).unwrap();
    let processes: Vec<_> =
        (0..PROCESSES).map(|_| bucket(&store, "shop", 20.0, 10.0).with_fixed_share(&share())).collect();
    // The store has granted all of it.
    drop(processes[0].take(20).await.unwrap());
    store.set_down(true);
    let start = Instant::now();
    let tasks = processes.iter().cloned().map(|process| {
        tokio::spawn(async move {
            let mut granted = 0;
            while start.elapsed() < Duration::from_secs(60) {
                drop(process.take(1).await.unwrap());
                granted += 1;
            }
            granted
        })
    });
    let mut granted = 0;
    for task in tasks.collect::<Vec<_>>() {
        granted += task.await.unwrap();
    }
    let permitted = 10.0 * start.elapsed().as_secs_f64();
    assert!(f64::from(granted) <= permitted, "{granted} of {permitted}");
    assert!(f64::from(granted) >= 0.98 * permitted - 4.0, "{granted} of {permitted}");
    store.set_down(false);
    // Each pays when it asks again: of the twenty that came back meanwhile nothing is left.
    for process in &processes {
        assert!(expect_wait(process.try_take(1).await.unwrap()).delay > Duration::ZERO);
    }
    tokio::time::sleep(ms(2_100)).await;
    assert!(processes[0].try_take(20).await.unwrap().granted().is_some(), "and from then on as before");
}

/// LIM-30: more than a share can hold is refused while the store is away, several buckets are taken
/// from it together or not at all, and a process has one share for buckets that it takes together.
#[tokio::test(start_paused = true)]
async fn lim_30_a_share_is_never_exceeded() {
    let store = store();
    let share = FixedShare::new(0.5).unwrap();
    let [wide, narrow] = [("shop/wide", 10.0), ("shop/narrow", 1.0)]
        .map(|(name, rate)| bucket(&store, name, 10.0, rate).with_fixed_share(&share));
    store.set_down(true);
    assert!(wide.try_take(6).await.is_err(), "half of ten is five");
    let both = [(&wide, 2.into()), (&narrow, 1.into())];
    assert_eq!(expect_wait(try_take_all(&both).await.unwrap()).delay, Duration::from_secs(2));
    tokio::time::sleep(ms(2_000)).await;
    assert!(try_take_all(&both).await.unwrap().granted().is_some());
    let left = expect_wait(try_take_all(&both).await.unwrap()).remaining;
    assert_eq!(left, [3.0, 0.0], "the refusal took from neither");
    let other = bucket(&store, "shop/other", 10.0, 1.0);
    assert!(try_take_all(&[(&wide, 1.into()), (&other, 1.into())]).await.is_err());
    for wrong in [0.0, -0.5, 1.5, f64::NAN] {
        assert!(FixedShare::new(wrong).is_err(), "{wrong}");
    }
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
