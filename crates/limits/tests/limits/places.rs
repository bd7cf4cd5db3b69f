//! Leases with several places, in simulated time.

use std::sync::Arc;
use std::time::Duration;

use tidegate_contract::FaultyStore;
use tidegate_limits::{LeaseAcquisition, LeaseGuard, NamedLease};
use tokio::time::{Instant, sleep};

use crate::world::{ms, store};

const TTL: Duration = ms(3_000);

fn on(store: &Arc<FaultyStore>, places: u32) -> NamedLease {
    NamedLease::with_places(Arc::clone(store) as _, "bulk-lock:7", TTL, places).unwrap()
}

async fn held(lease: &NamedLease) -> LeaseGuard {
    lease.try_acquire().await.unwrap().held().expect("a place is free")
}

/// LIM-29: as many hold the lease at once as it has places, each place by itself; the next waits
/// until one is free.
#[tokio::test(start_paused = true)]
async fn lim_29_as_many_at_once_as_there_are_places() {
    let store = store();
    let (mine, yours) = (on(&store, 3), on(&store, 3));
    let guards = [held(&mine).await, held(&yours).await, held(&mine).await];
    assert_eq!(guards.each_ref().map(LeaseGuard::name), ["bulk-lock:7", "bulk-lock:7:2", "bulk-lock:7:3"]);
    sleep(10 * TTL).await;
    assert!(guards.iter().all(LeaseGuard::is_held), "each one is renewed");
    let LeaseAcquisition::Busy { until } = yours.try_acquire().await.unwrap() else { panic!("all are held") };
    assert!(until.as_millis() >= 1_000_000_000 + 10 * 3_000, "{until:?}");
    let [_first, second, _third] = guards;
    assert!(second.release().await.unwrap());
    assert_eq!(held(&yours).await.name(), "bulk-lock:7:2");
}

/// LIM-29: with one place it is the plain lease; places may be added while it is held.
#[tokio::test(start_paused = true)]
async fn lim_29_one_place_is_the_plain_lease() {
    let store = store();
    let plain = NamedLease::new(Arc::clone(&store) as _, "bulk-lock:7", TTL).unwrap();
    let guard = held(&plain).await;
    assert!(matches!(on(&store, 1).try_acquire().await.unwrap(), LeaseAcquisition::Busy { .. }));
    assert_eq!(held(&on(&store, 2)).await.name(), "bulk-lock:7:2");
    assert!(guard.is_held());
}

/// LIM-16: whichever place is released, a waiter at the handle gets it at that moment.
#[tokio::test(start_paused = true)]
async fn lim_16_who_waits_is_woken_at_once() {
    let store = store();
    let lease = on(&store, 2);
    let (_first, second) = (held(&lease).await, held(&lease).await);
    let waiting = lease.clone();
    let start = Instant::now();
    let next = tokio::spawn(async move { waiting.acquire_within(ms(60_000)).await.unwrap().held() });
    sleep(ms(1_234)).await;
    second.release().await.unwrap();
    let next = next.await.unwrap().expect("it was released");
    assert_eq!((next.name(), start.elapsed()), ("bulk-lock:7:2", ms(1_234)));
}

#[tokio::test(start_paused = true)]
async fn a_number_of_places_out_of_bounds_is_refused() {
    let store = store();
    for places in [0, 65] {
        let refused = NamedLease::with_places(Arc::clone(&store) as _, "bulk", TTL, places).unwrap_err();
        let said = format!("The lease \"bulk\" has {places} places, and must have 1 to 64.");
        assert_eq!(refused.to_string(), said);
    }
}
