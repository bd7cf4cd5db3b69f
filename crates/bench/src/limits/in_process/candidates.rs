//! Our own decisions, from the arithmetic alone to the library over an in-memory store. All are
//! all-or-nothing; each is measured alone and with its settlement.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tidegate_core::bucket::{Bucket as Budget, Readiness};
use tidegate_core::fact::LimitShape;
use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::{Level, ReservationRequest, ReserveOutcome, Settlement, reserve, settle};
use tidegate_limits::{SharedBucket, TokenTakeOutcome, try_take_all};
use tidegate_store::{Clock, SharedState, WallClock};

use super::{ACTUAL, CAPACITY, COST, Decision, REFILL};

/// Of one family, so that any store can take them together.
const NAMES: [&str; 2] = ["within/one", "within/two"];
const SETTLEMENT: Settlement = Settlement { reserved: COST * MICRO, actual: ACTUAL * MICRO };

/// Returns all contenders with their names.
pub(super) fn contenders(
    store: &Arc<dyn SharedState>,
    buckets: usize,
) -> Result<Vec<(&'static str, Decision)>, String> {
    Ok(vec![
        ("core::shared reserve", arithmetic(buckets, false)),
        ("core::shared reserve, settle", arithmetic(buckets, true)),
        ("core::bucket ready, take, settle, land", queue(buckets)?),
        ("memory store reserve", port(store, buckets, false)),
        ("memory store reserve, settle", port(store, buckets, true)),
        ("tidegate-limits take", library(store, buckets, false)?),
        ("tidegate-limits take, settle", library(store, buckets, true)?),
    ])
}

fn wanted(buckets: usize) -> Vec<ReservationRequest> {
    let (cost, capacity, refill_per_s) = (COST * MICRO, CAPACITY * MICRO, REFILL * MICRO);
    let want = |name: &&str| ReservationRequest { name: (*name).to_owned(), cost, capacity, refill_per_s };
    NAMES.iter().take(buckets).map(want).collect()
}

/// The pure functions, with their state behind a mutex.
fn arithmetic(buckets: usize, settles: bool) -> Decision {
    let wanted = wanted(buckets);
    let states = Mutex::new(vec![None::<Level>; buckets]);
    Box::new(move || {
        let answer = {
            let mut states = lock(&states);
            let (levels, answer) = reserve(&states, &wanted, WallClock.now());
            for (state, level) in states.iter_mut().zip(levels) {
                *state = Some(level);
            }
            answer
        };
        if settles {
            let mut states = lock(&states);
            let now = WallClock.now();
            for state in states.iter_mut() {
                *state = state.map(|level| settle(level, SETTLEMENT, now));
            }
        }
        matches!(answer, ReserveOutcome::Granted { .. })
    })
}

/// The buckets of the queue, which also track what is in flight. An owner holds them alone; here a
/// mutex does.
fn queue(buckets: usize) -> Result<Decision, String> {
    let shape = LimitShape::Drip { capacity: CAPACITY * MICRO, refill_per_s: REFILL * MICRO, margin: 0 };
    let one = || Budget::new(shape, WallClock.now()).ok_or("a drip is a bucket");
    let all = Mutex::new((0..buckets).map(|_| one()).collect::<Result<Vec<_>, _>>()?);
    Ok(Box::new(move || {
        let mut marks = [0; NAMES.len()];
        {
            let mut all = lock(&all);
            let now = WallClock.now();
            if !all.iter().all(|budget| budget.ready(COST * MICRO, now) == Readiness::Now) {
                return false;
            }
            for (budget, mark) in all.iter_mut().zip(&mut marks) {
                *mark = budget.take(COST * MICRO);
                budget.mark_sent(*mark, now);
            }
        }
        let mut all = lock(&all);
        let now = WallClock.now();
        for (budget, mark) in all.iter_mut().zip(marks) {
            budget.mark_finished(mark, now);
            budget.settle(mark, COST * MICRO, ACTUAL * MICRO, now);
        }
        true
    }))
}

/// The store's operations.
fn port(store: &Arc<dyn SharedState>, buckets: usize, settles: bool) -> Decision {
    let (store, wanted) = (Arc::clone(store), wanted(buckets));
    Box::new(move || {
        let answer = at_once(store.reserve(wanted.clone()));
        let is_granted = matches!(answer, Some(Ok(ReserveOutcome::Granted { .. })));
        let settled = |name| matches!(at_once(store.settle_bucket(name, SETTLEMENT)), Some(Ok(Some(_))));
        is_granted && (!settles || NAMES.iter().take(buckets).all(|name| settled(name)))
    })
}

/// The library, as a program uses it.
fn library(store: &Arc<dyn SharedState>, buckets: usize, settles: bool) -> Result<Decision, String> {
    let bucket = |name: &&str| SharedBucket::new(Arc::clone(store), *name, CAPACITY, REFILL);
    let all: Result<Vec<_>, _> = NAMES.iter().take(buckets).map(bucket).collect();
    let all = all.map_err(|error| error.to_string())?;
    Ok(Box::new(move || {
        let grants = match all.as_slice() {
            [only] => match at_once(only.try_take(COST)) {
                Some(Ok(TokenTakeOutcome::Granted(grant))) => vec![grant],
                _ => return false,
            },
            all => {
                let wanted: Vec<_> = all.iter().map(|bucket| (bucket, COST.into())).collect();
                match at_once(try_take_all(&wanted)) {
                    Some(Ok(TokenTakeOutcome::Granted(grants))) => grants,
                    _ => return false,
                }
            }
        };
        !settles || grants.into_iter().all(|grant| matches!(at_once(grant.settle(ACTUAL)), Some(Ok(()))))
    }))
}

/// Returns the result of a future that is ready at once.
fn at_once<T>(answer: impl Future<Output = T>) -> Option<T> {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    }
}

fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}
