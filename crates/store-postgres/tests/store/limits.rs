//! Shared records by the server's own clock, used by several stores at once as if by several
//! processes.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome, Settlement};
use tidegate_core::shared::lease::AcquireOutcome;
use tidegate_fixture::postgres::PostgresServer;
use tidegate_store::{SharedState, StoreErrorKind};
use tidegate_store_postgres::PostgresStore;

use crate::sample::{TTL, run, store};

fn want(name: &str, cost: u64, capacity: u64, refill_per_s: u64) -> ReservationRequest {
    let name = name.to_owned();
    ReservationRequest {
        name,
        cost: cost * MICRO,
        capacity: capacity * MICRO,
        refill_per_s: refill_per_s * MICRO,
    }
}

async fn several(server: &PostgresServer) -> Vec<Arc<PostgresStore>> {
    let mut stores = Vec::new();
    for _ in 0..4 {
        stores.push(Arc::new(store(server).await));
    }
    stores
}

/// LIM-7: callers that name the same buckets in opposite orders never deadlock, with new buckets
/// and old ones alike.
#[test]
fn lim_7_opposite_orders_do_not_lock_each_other_out() {
    const ROUNDS: u64 = 60;
    run(async {
        let server = PostgresServer::start();
        let stores = several(&server).await;
        let callers = (0..8).map(|caller: usize| {
            let store = Arc::clone(&stores[caller % stores.len()]);
            tokio::spawn(async move {
                let mut granted = 0;
                for round in 0..ROUNDS {
                    // Two that every caller uses, and two that are new in each round.
                    let names = ["a".into(), format!("b{round}"), "c".into(), format!("d{round}")];
                    let mut wants: Vec<_> = names.iter().map(|name| want(name, 1, 1_000_000, 0)).collect();
                    if caller.is_multiple_of(2) {
                        wants.reverse();
                    }
                    let answer = store.reserve(wants).await.expect("reserve");
                    granted += u64::from(matches!(answer, ReserveOutcome::Granted { .. }));
                }
                granted
            })
        });
        let mut granted = 0;
        for caller in callers.collect::<Vec<_>>() {
            granted += caller.await.expect("join");
        }
        assert_eq!(granted, 8 * ROUNDS);
        let level = stores[0].observe_bucket("a").await.expect("observe").expect("a bucket");
        assert_eq!(level.tokens, (1_000_000 - granted) * MICRO);
    });
}

/// LIM-5, LIM-6, LIM-19: by the server's clock, over several stores at once: grants stay within
/// capacity and refill, and a wait names its time; after that time the take is granted.
#[test]
fn lim_6_granted_within_capacity_and_refill_by_the_servers_clock() {
    const CAPACITY: u64 = 20;
    const RATE: u64 = 50;
    run(async {
        let server = PostgresServer::start();
        let stores = several(&server).await;
        let start = tokio::time::Instant::now();
        let callers = (0..8).map(|caller: usize| {
            let store = Arc::clone(&stores[caller % stores.len()]);
            tokio::spawn(async move {
                let mut granted = 0;
                for _ in 0..40 {
                    let answer =
                        store.reserve(vec![want("requests", 1, CAPACITY, RATE)]).await.expect("reserve");
                    granted += u64::from(matches!(answer, ReserveOutcome::Granted { .. }));
                }
                granted
            })
        });
        let mut granted = 0;
        for caller in callers.collect::<Vec<_>>() {
            granted += caller.await.expect("join");
        }
        let most = CAPACITY as f64 + RATE as f64 * start.elapsed().as_secs_f64();
        assert!(granted >= CAPACITY && granted as f64 <= most, "{granted} granted, at most {most}");
        let all = || stores[0].reserve(vec![want("requests", CAPACITY, CAPACITY, RATE)]);
        let ReserveOutcome::Wait { delay, .. } = all().await.expect("reserve") else {
            panic!("it cannot be full")
        };
        assert!(delay <= Duration::from_secs(1), "{delay:?}");
        tokio::time::sleep(delay).await;
        assert!(
            matches!(all().await.expect("reserve"), ReserveOutcome::Granted { .. }),
            "the delay was exact"
        );
        let back = Settlement { reserved: 5 * MICRO, actual: 2 * MICRO };
        let level = stores[1].settle_bucket("requests", back).await.expect("settle").expect("a bucket");
        assert!(level.tokens >= 3 * MICRO);
    });
}

/// LIM-15: a lease has one holder by the server's clock, its fence grows, and a holder's time
/// expires by itself.
#[test]
fn lim_15_a_lease_runs_out_by_the_servers_clock() {
    run(async {
        let server = PostgresServer::start();
        let stores = several(&server).await;
        let AcquireOutcome::Held(long) = stores[0].acquire_lease("bulk-lock:8", TTL).await.expect("acquire")
        else {
            panic!("it was free")
        };
        let busy = stores[1].acquire_lease("bulk-lock:8", TTL).await.expect("acquire");
        assert_eq!(busy, AcquireOutcome::Busy { until: long.until });
        let ttl = Duration::from_millis(100);
        let AcquireOutcome::Held(first) = stores[0].acquire_lease("bulk-lock:7", ttl).await.expect("acquire")
        else {
            panic!("it was free")
        };
        let second = loop {
            match stores[1].acquire_lease("bulk-lock:7", ttl).await.expect("acquire") {
                AcquireOutcome::Busy { until } => assert_eq!(until, first.until),
                AcquireOutcome::Held(lease) => break lease,
            }
        };
        assert!(second.fence > first.fence && second.until >= first.until.after(ttl));
        assert_eq!(stores[0].renew_lease("bulk-lock:7", first, ttl).await.expect("renew"), None);
        assert!(!stores[0].release_lease("bulk-lock:7", first).await.expect("release"));
    });
}

/// A bucket that is named twice, or has a name that PostgreSQL cannot store, is rejected with a
/// message.
#[test]
fn odd_names_are_refused() {
    run(async {
        let server = PostgresServer::start();
        let store = store(&server).await;
        let twice = store.reserve(vec![want("a", 1, 5, 1), want("a", 1, 5, 1)]).await;
        assert_eq!(twice.expect_err("named twice").kind(), StoreErrorKind::Invalid);
        let zero = store.reserve(vec![want("a\0b", 1, 5, 1)]).await;
        assert_eq!(zero.expect_err("a zero byte").kind(), StoreErrorKind::Invalid);
        assert_eq!(
            store.reserve(Vec::new()).await.expect("reserve"),
            ReserveOutcome::Granted { remaining: vec![] }
        );
    });
}
