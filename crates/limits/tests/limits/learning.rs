//! Parameters that are learned from an API, in simulated time.

use std::sync::Arc;

use tidegate_contract::FaultyStore;
use tidegate_limits::{Error, ReportedLevels, SharedBucket};
use tokio::time::{Instant, sleep};

use crate::world::{expect_wait, ms, store};

/// A bucket that starts with 1,000 points and 50 each second.
fn points(store: &Arc<FaultyStore>) -> SharedBucket {
    SharedBucket::learning(Arc::clone(store) as _, "shop-7/points", 1_000, 50).unwrap()
}

fn said(capacity: f64, refill_per_s: f64, remaining: f64) -> ReportedLevels {
    let [capacity, refill_per_s, remaining] = [capacity, refill_per_s, remaining].map(|n| Some(n.into()));
    ReportedLevels { capacity, refill_per_s, remaining }
}

/// LIM-8: the given parameters only bootstrap; after the first response the bucket follows the API,
/// and unused tokens are returned.
#[tokio::test(start_paused = true)]
async fn lim_8_the_bucket_follows_what_the_api_said() {
    let store = store();
    let points = points(&store);
    let grant = points.take(101).await.unwrap();
    grant.settle_as_reported(46, said(2_000.0, 100.0, 1_954.0)).await.unwrap();
    assert_eq!(points.capacity_and_refill(), (2_000.0, 100.0));
    assert_eq!(points.level().await.unwrap(), 954.0);
    drop(points.take(954).await.unwrap());
    assert_eq!(expect_wait(points.try_take(100).await.unwrap()).delay, ms(1_000), "at the learned rate");
    sleep(ms(20_000)).await;
    drop(points.take(2_000).await.unwrap());
}

/// LIM-23: of the API's figure and ours the lower one counts, and responses out of order never
/// raise it.
#[tokio::test(start_paused = true)]
async fn lim_23_the_lower_of_two_balances_counts() {
    let store = store();
    let points = points(&store);
    let (first, second) = (points.take(10).await.unwrap(), points.take(10).await.unwrap());
    second.settle_as_reported(10, said(1_000.0, 50.0, 400.0)).await.unwrap();
    assert_eq!(points.level().await.unwrap(), 400.0, "somebody else uses it too");
    first.settle_as_reported(10, said(1_000.0, 50.0, 990.0)).await.unwrap();
    assert_eq!(points.level().await.unwrap(), 400.0, "an older answer is not believed");
}

/// LIM-24: the next process starts with what one process has learned.
#[tokio::test(start_paused = true)]
async fn lim_24_the_next_process_begins_with_what_was_learned() {
    let store = store();
    let first = points(&store);
    first.take(1).await.unwrap().settle_as_reported(1, said(40.0, 2.0, 39.0)).await.unwrap();
    drop(first.take(39).await.unwrap());
    let next = points(&store);
    assert_eq!(expect_wait(next.try_take(2).await.unwrap()).delay, ms(1_000));
    assert_eq!(next.capacity_and_refill(), (40.0, 2.0));
    assert!(matches!(next.try_take(41).await, Err(Error::TooCostly { .. })));
}

/// LIM-8: those who already wait are served at the learned rate.
#[tokio::test(start_paused = true)]
async fn lim_8_who_waits_is_served_at_what_was_learned() {
    let store = store();
    let points = points(&store);
    drop(points.take(999).await.unwrap());
    let last = points.take(1).await.unwrap();
    let start = Instant::now();
    // The first has to wait two seconds; the second is behind it.
    let waits = |cost: u32| {
        let points = points.clone();
        tokio::spawn(async move { drop(points.take(cost).await.unwrap()) })
    };
    let (first, second) = (waits(100), waits(1_000));
    sleep(ms(1)).await;
    last.settle_as_reported(1, said(2_000.0, 1_000.0, 0.0)).await.unwrap();
    first.await.unwrap();
    second.await.unwrap();
    // 100 at 50 each second, then 1,000 at 1,000 each second.
    assert!(start.elapsed() < ms(3_100), "{:?}", start.elapsed());
}

/// Invalid values are not learned.
#[tokio::test(start_paused = true)]
async fn nonsense_is_not_learned() {
    let store = store();
    let points = points(&store);
    let grant = points.take(10).await.unwrap();
    grant.settle_as_reported(5, said(f64::NAN, 0.0, -3.0)).await.unwrap();
    assert_eq!((points.capacity_and_refill(), points.level().await.unwrap()), ((1_000.0, 50.0), 995.0));
}
