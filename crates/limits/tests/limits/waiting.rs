//! The queue of those who wait at one handle.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_contract::InjectedFault;
use tidegate_limits::SharedBucket;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::world::{bucket, every_reserve, expect_wait, ms, store};

/// Waits in the queue as a task, and notes its name when it was served.
fn queue(shop: &SharedBucket, cost: f64, name: usize, served: &Arc<Mutex<Vec<usize>>>) -> JoinHandle<()> {
    let (shop, served) = (shop.clone(), Arc::clone(served));
    tokio::spawn(async move {
        let _grant = shop.take(cost).await.unwrap();
        served.lock().unwrap().push(name);
    })
}

/// Lets every task run until it waits.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// LIM-5: a waiter asks again at the time the store named, and not before.
#[tokio::test(start_paused = true)]
async fn lim_5_waits_as_long_as_told_and_asks_no_more() {
    let store = store();
    let shop = bucket(&store, "shop", 1.0, 0.1);
    let _first = shop.take(1).await.unwrap();
    let (start, before) = (Instant::now(), store.fault_counts().calls);
    let _second = shop.take(1).await.unwrap();
    let waited = start.elapsed();
    assert!((ms(10_000)..ms(10_003)).contains(&waited), "{waited:?}");
    assert_eq!(store.fault_counts().calls - before, 2, "asked at the start and at the end");
}

/// First come, first served; a large cost is not overtaken by small ones; the rate is used up.
#[tokio::test(start_paused = true)]
async fn the_line_is_served_in_order() {
    let store = store();
    let shop = bucket(&store, "shop", 5.0, 10.0);
    let _all = shop.take(5).await.unwrap();
    let (start, before) = (Instant::now(), store.fault_counts().calls);
    let served = Arc::default();
    let mut tasks = Vec::new();
    for name in 0..30 {
        let cost = if name == 3 { 5.0 } else { 1.0 };
        tasks.push(queue(&shop, cost, name, &served));
        settle().await;
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*served.lock().unwrap(), (0..30).collect::<Vec<_>>());
    let waited = start.elapsed();
    assert!((ms(3_400)..ms(3_450)).contains(&waited), "34 tokens at 10 each second took {waited:?}");
    let asked = store.fault_counts().calls - before;
    assert!(asked <= 2 * 30 + 2, "{asked} questions");
}

/// LIM-6: a distant server does not slow the queue down below the rate: one request serves many.
#[tokio::test(start_paused = true)]
async fn a_far_server_does_not_slow_the_line_down() {
    let store = store();
    store.set_plan(every_reserve(InjectedFault::Delay(ms(50))));
    let shop = bucket(&store, "shop", 100.0, 1_000.0);
    let _all = shop.take(100).await.unwrap();
    let start = Instant::now();
    let served = Arc::default();
    let tasks: Vec<_> = (0..500).map(|name| queue(&shop, 1.0, name, &served)).collect();
    for task in tasks {
        task.await.unwrap();
    }
    let waited = start.elapsed();
    assert!(waited >= ms(400), "500 of 100 and 1,000 each second were had in {waited:?}");
    assert!(waited < ms(1_500), "500 at 1,000 each second took {waited:?}");
}

/// A wait that would exceed its patience ends at once; in a queue it ends when patience ends.
/// Nothing is taken.
#[tokio::test(start_paused = true)]
async fn patience_is_bounded() {
    let store = store();
    let shop = bucket(&store, "shop", 2.0, 1.0);
    let _all = shop.take(2).await.unwrap();
    let start = Instant::now();
    let wait = expect_wait(shop.take_within(2, ms(1_999)).await.unwrap());
    assert_eq!((wait.delay, start.elapsed()), (ms(2_000), Duration::ZERO));
    let first = tokio::spawn({
        let shop = shop.clone();
        async move { shop.take_within(2, ms(2_100)).await.unwrap().granted().is_some() }
    });
    settle().await;
    let wait = expect_wait(shop.take_within(1, ms(500)).await.unwrap());
    assert_eq!(start.elapsed(), ms(500));
    assert_eq!(wait.delay, ms(2_500), "two for the first, one for us, half a second is over");
    assert!(first.await.unwrap());
    assert!(start.elapsed() < ms(2_005));
    assert!(shop.level().await.unwrap() < 0.01);
}

/// A dropped waiter leaves the queue: it takes nothing, and the next need not wait for what it
/// wanted.
#[tokio::test(start_paused = true)]
async fn who_leaves_the_line_takes_nothing() {
    let store = store();
    let shop = bucket(&store, "shop", 10.0, 1.0);
    let _all = shop.take(10).await.unwrap();
    let start = Instant::now();
    let served = Arc::default();
    let large = queue(&shop, 10.0, 1, &served);
    settle().await;
    let small = queue(&shop, 1.0, 2, &served);
    settle().await;
    large.abort();
    small.await.unwrap();
    let waited = start.elapsed();
    assert!((ms(1_000)..ms(1_005)).contains(&waited), "{waited:?}");
    assert_eq!(*served.lock().unwrap(), [2]);
    tokio::time::advance(ms(3_000)).await;
    assert!((2.9..3.1).contains(&shop.level().await.unwrap()), "nothing else was taken");
}

/// Tokens granted to a waiter that was dropped meanwhile are returned.
#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_any_more_is_given_back() {
    let store = store();
    let shop = bucket(&store, "shop", 4.0, 1.0);
    let _all = shop.take(4).await.unwrap();
    let served = Arc::default();
    let leaver = queue(&shop, 4.0, 1, &served);
    settle().await;
    store.set_plan(every_reserve(InjectedFault::Delay(ms(500))));
    tokio::time::sleep(ms(4_100)).await;
    leaver.abort();
    tokio::time::sleep(ms(1_000)).await;
    assert_eq!(shop.level().await.unwrap(), 4.0);
    assert!(served.lock().unwrap().is_empty());
}
