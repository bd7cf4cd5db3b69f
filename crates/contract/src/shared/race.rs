//! Concurrent callers, each in a task of its own, over as many stores as the backend lets be open.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome};
use tidegate_core::shared::lease::AcquireOutcome;
use tidegate_core::shared::record::{HolderToken, OnLapse, RecordClaim, RecordClaimOutcome};
use tidegate_core::shared::window::OpenWindowOutcome;
use tidegate_store::{Clock, Store};
use tokio::sync::Barrier;

use crate::harness::{Backend, ExpectValue};

/// The number of concurrent callers.
const CALLERS: usize = 32;
/// The number of stores they are spread over.
const STORES: usize = 4;

/// Runs `work` in `CALLERS` tasks that start together; returns the results.
async fn together<T, W, F>(backend: &dyn Backend, store: &Arc<dyn Store>, work: W) -> Vec<T>
where
    T: Send + 'static,
    W: Fn(usize, Arc<dyn Store>) -> F,
    F: Future<Output = T> + Send + 'static,
{
    let mut stores = vec![Arc::clone(store)];
    while stores.len() < STORES {
        stores.push(backend.open_second(store).await.expect_value("open another store beside the first"));
    }
    let start = Arc::new(Barrier::new(CALLERS));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let start = Arc::clone(&start);
            let work = work(caller, Arc::clone(&stores[caller % STORES]));
            tokio::spawn(async move {
                start.wait().await;
                work.await
            })
        })
        .collect();
    let mut answers = Vec::with_capacity(CALLERS);
    for caller in callers {
        answers.push(caller.await.expect_value("join a caller"));
    }
    answers
}

/// IDM-8: of any number of concurrent claims exactly one gets the key, also when it takes over.
pub async fn one_caller_claims_a_record(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    let claim = RecordClaim {
        fingerprint: [9; 32],
        token: HolderToken([0; 16]),
        lease: Duration::from_secs(30),
        ttl: Duration::from_secs(3_600),
        on_lapse: OnLapse::TakeOver,
    };
    for round in 0..20 {
        let answers = together(backend, &store, |caller, store| async move {
            let token = HolderToken([round, caller as u8, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7]);
            store.claim_record("contested", RecordClaim { token, ..claim }).await.expect_value("claim")
        })
        .await;
        let mine = |answer: &&RecordClaimOutcome<Bytes>| matches!(answer, RecordClaimOutcome::Granted { .. });
        let others =
            |answer: &&RecordClaimOutcome<Bytes>| matches!(answer, RecordClaimOutcome::Processing { .. });
        let counts = (answers.iter().filter(mine).count(), answers.iter().filter(others).count());
        assert_eq!(counts, (1, CALLERS - 1), "round {round}: who got the key, and who was told to wait");
        backend.clock().advance(claim.lease);
    }
}

/// HYD-10, HYD-19: of any number of concurrent callers exactly one sends the request.
pub async fn one_caller_opens_a_window(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    let ttl = Duration::from_secs(5);
    for round in 0..20 {
        let answers = together(backend, &store, |_, store| async move {
            store.open_window("contested", 1, ttl).await.expect_value("open a window")
        })
        .await;
        let asked = answers.iter().filter(|answer| matches!(answer, OpenWindowOutcome::Ask(_))).count();
        assert_eq!(asked, 1, "round {round}: how many asked");
        backend.clock().advance(ttl);
    }
}

/// LIM-15: there are never two holders at once, and every holder has a larger fence than the one
/// before it.
pub async fn one_holder_of_a_lease(backend: &dyn Backend) {
    let store = backend.open().await.expect_value("open the store");
    let (inside, last) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
    let held = together(backend, &store, |_, store| {
        let (inside, last) = (Arc::clone(&inside), Arc::clone(&last));
        async move {
            let mut held = 0;
            for _ in 0..20 {
                let answer = store.acquire_lease("contested", Duration::from_secs(60)).await;
                if let AcquireOutcome::Held(lease) = answer.expect_value("acquire") {
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders at once");
                    assert!(last.swap(lease.fence, Ordering::SeqCst) < lease.fence, "the fence did not grow");
                    tokio::task::yield_now().await;
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1, "two holders at once");
                    assert!(store.release_lease("contested", lease).await.expect_value("release"));
                    held += 1;
                }
                tokio::task::yield_now().await;
            }
            held
        }
    })
    .await;
    let held: u64 = held.into_iter().sum();
    assert!(held > 0 && last.load(Ordering::SeqCst) == held, "one fence for each of {held} holders");
}

fn want(name: &str, tokens: u64, capacity: u64, refill_per_s: u64) -> ReservationRequest {
    ReservationRequest {
        name: name.to_owned(),
        cost: tokens * MICRO,
        capacity: capacity * MICRO,
        refill_per_s: refill_per_s * MICRO,
    }
}

/// LIM-6, LIM-19: grants never exceed capacity plus refill, and no token is lost: the final level
/// is what the grants leave.
pub async fn a_bucket_never_grants_too_much(backend: &dyn Backend) {
    const CAPACITY: u64 = 50;
    const RATE: u64 = 10;
    let clock = backend.clock();
    let start = clock.now();
    let store = backend.open().await.expect_value("open the store");
    let spent = together(backend, &store, |caller, store| {
        let clock = Arc::clone(&clock);
        async move {
            let mut spent = 0;
            for turn in 0..30 {
                let cost = 1 + (caller as u64 + turn) % 3;
                let answer = store.reserve(vec![want("contested", cost, CAPACITY, RATE)]).await;
                if let ReserveOutcome::Granted { remaining } = answer.expect_value("reserve") {
                    assert!(remaining[0] <= (CAPACITY - cost) * MICRO, "more left than there can be");
                    spent += cost;
                }
                if caller == 0 {
                    clock.advance(Duration::from_millis(100));
                }
                tokio::task::yield_now().await;
            }
            spent
        }
    })
    .await;
    let spent: u64 = spent.into_iter().sum();
    let refilled = RATE * clock.now().since(start).as_micros() as u64 / 1_000_000;
    assert!(spent <= CAPACITY + refilled, "{spent} granted of {CAPACITY} and {refilled} refilled");
    let level =
        store.observe_bucket("contested").await.expect_value("observe").expect_value("find the bucket");
    assert_eq!(level.tokens, (CAPACITY + refilled - spent) * MICRO, "what is left does not fit the grants");
}

/// LIM-7: two buckets are taken together or not at all, in whichever order callers name them.
pub async fn two_buckets_are_taken_together(backend: &dyn Backend) {
    const WIDE: u64 = 200;
    const NARROW: u64 = 60;
    let store = backend.open().await.expect_value("open the store");
    let granted = together(backend, &store, |caller, store| async move {
        let mut granted = 0;
        for turn in 0..10 {
            let mut wants = vec![want("wide", 1, WIDE, 0), want("narrow", 1, NARROW, 0)];
            if (caller + turn) % 2 == 0 {
                wants.reverse();
            }
            let answer = store.reserve(wants).await.expect_value("reserve of both");
            granted += u64::from(matches!(answer, ReserveOutcome::Granted { .. }));
            tokio::task::yield_now().await;
        }
        granted
    })
    .await;
    assert_eq!(granted.into_iter().sum::<u64>(), NARROW, "as many as the narrow one holds");
    for (name, capacity) in [("wide", WIDE), ("narrow", NARROW)] {
        let level = store.observe_bucket(name).await.expect_value("observe").expect_value("find the bucket");
        assert_eq!(level.tokens, (capacity - NARROW) * MICRO, "left in the {name} bucket");
    }
}
