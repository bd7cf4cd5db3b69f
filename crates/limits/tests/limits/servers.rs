//! Tests on real servers, by their clocks: concurrent tasks over several connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidegate_fixture::postgres::PostgresServer;
use tidegate_fixture::redis::RedisServer;
use tidegate_limits::{NamedLease, SharedBucket, take_all};
use tidegate_store::Store;
use tokio::sync::Barrier;
use tokio::time::Instant;

const TASKS: usize = 8;
const STORES: usize = 4;
const CAPACITY: u32 = 10;
const RATE: u32 = 100;
/// What each task takes, one after the other.
const COSTS: [u32; 9] = [1, 2, 3, 1, 2, 3, 1, 2, 3];
const PATIENCE: Duration = Duration::from_secs(60);

async fn on_redis(server: &RedisServer) -> Vec<Arc<dyn Store>> {
    let mut stores = Vec::new();
    for _ in 0..STORES {
        stores.push(tidegate_store_redis::open(&server.url()).await.unwrap());
    }
    stores
}

async fn on_postgres(server: &PostgresServer) -> Vec<Arc<dyn Store>> {
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    for _ in 0..STORES {
        stores.push(Arc::new(tidegate_store_postgres::PostgresStore::connect(&server.url()).await.unwrap()));
    }
    stores[0].migrate().await.unwrap();
    stores
}

/// Takes from `narrow`, and also from `wide` in every other task; returns how long all of it took.
async fn contend(stores: &[Arc<dyn Store>]) -> Duration {
    let start = Instant::now();
    let tasks = (0..TASKS).map(|task| {
        let store = Arc::clone(&stores[task % stores.len()]);
        let narrow = SharedBucket::new(Arc::clone(&store) as _, "shop/narrow", CAPACITY, RATE).unwrap();
        let wide = SharedBucket::new(store, "shop/wide", 1_000, RATE).unwrap();
        tokio::spawn(async move {
            for cost in COSTS {
                if task % 2 == 0 {
                    drop(take_all(&[(&narrow, cost.into()), (&wide, cost.into())]).await.unwrap());
                } else {
                    let grant = narrow.take(cost).await.unwrap();
                    assert!((0.0..=f64::from(CAPACITY - cost)).contains(&grant.remaining()), "{grant:?}");
                }
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    start.elapsed()
}

/// The sum of what was taken is at most capacity plus refill, so it cannot have been faster. One
/// token is allowed for the difference between two clocks.
fn took_its_time(elapsed: Duration) {
    let taken = COSTS.iter().sum::<u32>() * TASKS as u32;
    let refilled = taken - CAPACITY - 1;
    let least = Duration::from_secs(refilled.into()) / RATE;
    assert!(elapsed >= least, "{taken} taken in {elapsed:?}");
}

/// LIM-6, LIM-19: concurrent consumers of one bucket on a real Redis get capacity and refill, and
/// no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_19_lim_6_no_more_than_capacity_and_refill_on_redis() {
    let server = RedisServer::start();
    let stores = on_redis(&server).await;
    took_its_time(contend(&stores).await);
    let wide = stores[0].observe_bucket("shop/wide").await.unwrap().unwrap();
    assert!(wide.tokens <= 1_000_000_000);
}

/// LIM-6, LIM-19: the same on a real PostgreSQL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_19_lim_6_no_more_than_capacity_and_refill_on_postgres() {
    let server = PostgresServer::start();
    took_its_time(contend(&on_postgres(&server).await).await);
}

/// A bulk job: holds its shop's lease during `work`.
async fn job(store: &Arc<dyn Store>, shop: &str, work: impl Future<Output = ()>) -> u64 {
    let name = format!("bulk-lock:{shop}");
    let lease = NamedLease::new(Arc::clone(store) as _, name, Duration::from_secs(30)).unwrap();
    let guard = lease.acquire_within(PATIENCE).await.unwrap().held().expect("it becomes free");
    work.await;
    assert!(guard.is_held());
    let fence = guard.fence();
    assert!(guard.release().await.unwrap());
    fence
}

/// LIM-21: jobs of two shops run at once, those of one shop one after the other, each with a larger
/// fence.
async fn jobs(stores: &[Arc<dyn Store>]) {
    // Both must be running for either to continue.
    let both = Barrier::new(2);
    let meet = || async {
        both.wait().await;
    };
    tokio::join!(job(&stores[0], "1", meet()), job(&stores[1], "2", meet()));
    let (inside, done) = (AtomicU32::new(0), AtomicU32::new(0));
    let alone = |looks: usize| {
        let (inside, done, store) = (&inside, &done, Arc::clone(&stores[2]));
        async move {
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two jobs of one shop at once");
            for _ in 0..looks {
                store.observe_bucket("none").await.unwrap();
            }
            assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1, "two jobs of one shop at once");
            done.fetch_add(1, Ordering::SeqCst);
        }
    };
    let (a, b, c) = tokio::join!(
        job(&stores[0], "7", alone(50)),
        job(&stores[1], "7", alone(50)),
        job(&stores[0], "7", alone(50))
    );
    let mut fences = [a, b, c];
    fences.sort_unstable();
    assert_eq!((fences, done.load(Ordering::SeqCst)), ([1, 2, 3], 3));
}

/// LIM-16: a waiter in another process is woken by a hint: its next poll would be seconds away.
async fn wake(stores: &[Arc<dyn Store>]) {
    let lease = |nth: usize| {
        NamedLease::new(Arc::clone(&stores[nth]) as _, "bulk-lock:9", Duration::from_secs(60)).unwrap()
    };
    let guard = lease(0).try_acquire().await.unwrap().held().unwrap();
    let waiter = lease(1);
    let waiting =
        tokio::spawn(async move { (waiter.acquire_within(PATIENCE).await.unwrap().held(), Instant::now()) });
    // Long enough for it to wait, and far from its next poll.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let released = Instant::now();
    guard.release().await.unwrap();
    let (next, at) = waiting.await.unwrap();
    assert!(next.is_some() && at - released < Duration::from_secs(2), "{:?}", at - released);
}

/// LIM-21, LIM-15: on a real Redis.
#[tokio::test]
async fn lim_21_lim_15_bulk_jobs_on_redis() {
    let server = RedisServer::start();
    let stores = on_redis(&server).await;
    jobs(&stores).await;
    wake(&stores).await;
}

/// LIM-21, LIM-15: on a real PostgreSQL.
#[tokio::test]
async fn lim_21_lim_15_bulk_jobs_on_postgres() {
    let server = PostgresServer::start();
    let stores = on_postgres(&server).await;
    jobs(&stores).await;
    wake(&stores).await;
}
