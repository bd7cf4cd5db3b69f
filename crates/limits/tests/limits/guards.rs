//! Leases in simulated time.

use std::sync::Arc;
use std::time::Duration;

use tidegate_contract::{FaultPlan, FaultyStore, InjectedFault, StoreMethod};
use tidegate_core::shared::lease;
use tidegate_limits::{Error, LeaseAcquisition, LeaseGuard, NamedLease};
use tidegate_store::SharedState;
use tokio::time::{Instant, sleep};

use crate::world::{ms, store};

const TTL: Duration = ms(3_000);

fn on(store: &Arc<FaultyStore>) -> NamedLease {
    NamedLease::new(Arc::clone(store) as _, "bulk-lock:7", TTL).unwrap()
}

async fn held(lease: &NamedLease) -> LeaseGuard {
    lease.try_acquire().await.unwrap().held().expect("it is free")
}

/// LIM-15: during a long job the lease renews itself at a third of its time; after a release it is
/// free at once, with a larger fence.
#[tokio::test(start_paused = true)]
async fn lim_15_it_is_renewed_beside_the_work() {
    let store = store();
    let (mine, yours) = (on(&store), on(&store));
    let guard = held(&mine).await;
    let before = store.fault_counts().calls;
    sleep(10 * TTL + ms(10)).await;
    assert_eq!(store.fault_counts().calls - before, 30, "three renewals in each time to live");
    assert!(guard.is_held() && guard.name() == "bulk-lock:7");
    assert!(matches!(yours.try_acquire().await.unwrap(), LeaseAcquisition::Busy { .. }));
    let fence = guard.fence();
    assert!(guard.release().await.unwrap());
    assert!(held(&yours).await.fence() > fence);
}

/// LIM-15, LIM-16: a waiter gets the lease the moment it is released, at the same handle and at any
/// other.
#[tokio::test(start_paused = true)]
async fn lim_15_who_waits_gets_it() {
    let store = store();
    let (mine, yours) = (on(&store), on(&store));
    let guard = held(&mine).await;
    let start = Instant::now();
    let LeaseAcquisition::Busy { until } = mine.acquire_within(ms(700)).await.unwrap() else {
        panic!("it is held")
    };
    assert_eq!((start.elapsed(), until.as_millis()), (ms(700), 1_000_003_000));
    let waits = |lease: &NamedLease| {
        let lease = lease.clone();
        tokio::spawn(async move { (lease.acquire_within(ms(60_000)).await.unwrap().held(), Instant::now()) })
    };
    let here = waits(&mine);
    sleep(ms(5_050)).await;
    guard.release().await.unwrap();
    let (next, at) = here.await.unwrap();
    assert_eq!(at - start, ms(5_750), "the moment it was released");
    let there = waits(&yours);
    sleep(ms(10)).await;
    drop(next);
    let (next, at) = there.await.unwrap();
    assert!(next.is_some());
    assert_eq!(at - start, ms(5_760), "the moment it was released");
}

/// LIM-16: a waiter that gets hints polls seldom; where no one can listen, it polls as often as
/// before.
#[tokio::test(start_paused = true)]
async fn lim_16_who_gets_hints_polls_seldom() {
    let polls = async |store: Arc<FaultyStore>| {
        let lease = || NamedLease::new(Arc::clone(&store) as _, "bulk-lock:7", ms(300_000)).unwrap();
        let _guard = held(&lease()).await;
        let before = store.fault_counts().calls;
        assert!(lease().acquire_within(ms(20_000)).await.unwrap().held().is_none());
        store.fault_counts().calls - before
    };
    // Two at first with the subscription between them, then one every five seconds.
    assert_eq!(polls(store()).await, 7);
    let deaf = store();
    deaf.set_plan(FaultPlan::none().at(StoreMethod::Listen, 1, InjectedFault::Fail));
    assert_eq!(polls(deaf).await, 23);
}

/// LIM-15: a lease that was handed over is not renewed by itself; who has its token renews it and
/// releases it, through any handle.
#[tokio::test(start_paused = true)]
async fn lim_15_a_token_hands_a_lease_over() {
    let store = store();
    let (mine, yours) = (on(&store), on(&store));
    let token = held(&mine).await.into_token();
    assert!(yours.renew(&token, 10 * TTL).await.unwrap());
    sleep(9 * TTL).await;
    assert!(mine.try_acquire().await.unwrap().held().is_none(), "for as long as was asked");
    assert!(yours.renew(&token, TTL).await.unwrap());
    let waiter = mine.clone();
    let next =
        tokio::spawn(async move { (waiter.acquire_within(TTL).await.unwrap().held(), Instant::now()) });
    sleep(ms(100)).await;
    let released = Instant::now();
    assert!(yours.release(&token).await.unwrap());
    let (next, at) = next.await.unwrap();
    let next = next.unwrap();
    assert_eq!((at, next.fence()), (released, token.fence + 1));
    assert!(!yours.renew(&token, TTL).await.unwrap() && !yours.release(&token).await.unwrap());
    next.release().await.unwrap();
    let token = held(&on(&store)).await.into_token();
    sleep(TTL + ms(1)).await;
    assert!(!yours.renew(&token, TTL).await.unwrap(), "it expired");
}

/// LIM-15: a dead holder's lease expires. Its guard reports the loss before another holder can have
/// it.
#[tokio::test(start_paused = true)]
async fn lim_15_a_holder_that_cannot_renew_is_told_in_time() {
    let store = store();
    let other = store_beside(&store);
    let guard = held(&on(&store)).await;
    sleep(ms(1_500)).await;
    store.set_down(true);
    let start = Instant::now();
    guard.lost().await;
    assert!(!guard.is_held());
    // Last renewed at one second, so lost at four.
    assert!(start.elapsed() <= ms(2_502), "{:?}", start.elapsed());
    store.set_down(false);
    sleep(ms(5)).await;
    assert!(other.try_acquire().await.unwrap().held().is_some());
    assert!(!guard.release().await.unwrap());
}

fn store_beside(store: &Arc<FaultyStore>) -> NamedLease {
    on(store)
}

/// LIM-15: a process that was paused is notified, and can tell even before it is notified.
#[tokio::test(start_paused = true)]
async fn lim_15_a_holder_that_stood_still_knows_it() {
    let store = store();
    let guard = held(&on(&store)).await;
    sleep(ms(100)).await;
    // As when the process is stopped: nothing runs, and then much time has passed.
    tokio::time::advance(2 * TTL).await;
    assert!(!guard.is_held());
    guard.lost().await;
    let next = held(&on(&store)).await;
    assert!(next.fence() > guard.fence());
    drop(guard);
    sleep(ms(100)).await;
    assert!(next.is_held(), "what the old one gives back is not the new one's");
}

/// LIM-15: a lease that was taken away is noticed at the next renewal.
#[tokio::test(start_paused = true)]
async fn lim_15_what_was_taken_away_is_noticed() {
    let store = store();
    let guard = held(&on(&store)).await;
    let stolen = lease::Lease { fence: guard.fence(), until: tidegate_core::Time::ZERO };
    assert!(store.release_lease("bulk-lock:7", stolen).await.unwrap());
    let start = Instant::now();
    guard.lost().await;
    assert!(start.elapsed() <= TTL / 3 + ms(2));
}

/// A dropped guard releases the lease in the background.
#[tokio::test(start_paused = true)]
async fn a_dropped_guard_gives_it_back() {
    let store = store();
    let lease = on(&store);
    drop(held(&lease).await);
    tokio::task::yield_now().await;
    let _guard = held(&lease).await;
}

#[tokio::test(start_paused = true)]
async fn times_out_of_bounds_are_refused_in_words() {
    let store = store();
    let refused = NamedLease::new(Arc::clone(&store) as _, "bulk", ms(99)).unwrap_err();
    let said = "The time to live of the lease \"bulk\" is 99ms, and must be 100ms to 86400s.";
    assert_eq!(refused.to_string(), said);
    assert!(matches!(NamedLease::new(store as _, "", TTL), Err(Error::Invalid(_))));
}
