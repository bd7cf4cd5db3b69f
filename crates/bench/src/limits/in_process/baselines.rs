//! The baselines: `governor`, whose state is one number that is swapped atomically, and a naive
//! bucket. Neither can be settled later.

use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use governor::{Quota, RateLimiter};
use tidegate_core::Time;
use tidegate_store::{Clock, WallClock};

use super::{CAPACITY, COST, Decision, REFILL};

/// One limiter after the other: a refusal by the second would leave the first one's tokens spent.
pub(super) fn governor(buckets: usize) -> Result<Decision, String> {
    let number =
        |figure: u64| u32::try_from(figure).ok().and_then(NonZeroU32::new).ok_or("a figure does not fit");
    let (cost, refill, capacity) = (number(COST)?, number(REFILL)?, number(CAPACITY)?);
    let limiter = || RateLimiter::direct(Quota::per_second(refill).allow_burst(capacity));
    let limiters: Vec<_> = (0..buckets).map(|_| limiter()).collect();
    Ok(Box::new(move || limiters.iter().all(|limiter| matches!(limiter.check_n(cost), Ok(Ok(()))))))
}

/// Tokens as a float, and the time of that value.
struct NaiveBucket {
    tokens: f64,
    at: Time,
}

/// All buckets behind one mutex: all or nothing.
pub(super) fn naive(buckets: usize) -> Decision {
    let all: Vec<_> =
        (0..buckets).map(|_| NaiveBucket { tokens: CAPACITY as f64, at: WallClock.now() }).collect();
    let all = Mutex::new(all);
    Box::new(move || {
        let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
        let now = WallClock.now();
        for naive in all.iter_mut() {
            let refilled = now.since(naive.at).as_secs_f64() * REFILL as f64;
            naive.tokens = (naive.tokens + refilled).min(CAPACITY as f64);
            naive.at = now;
        }
        let is_granted = all.iter().all(|naive| naive.tokens >= COST as f64);
        if is_granted {
            all.iter_mut().for_each(|naive| naive.tokens -= COST as f64);
        }
        is_granted
    })
}
