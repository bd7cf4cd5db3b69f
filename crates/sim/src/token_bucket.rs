//! A token bucket as an upstream keeps it: exact, by its own clock, one token per call. It
//! tolerates no excess.

use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::bucket::Readiness;
use tidegate_core::bucket::drip::Drip;
use tidegate_core::operation::MICRO;

/// An enforced limit.
#[derive(Clone, Copy, Debug)]
pub struct TokenBucket(Drip);

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketDecision {
    /// How long to wait, when it is refused.
    pub wait: Option<Duration>,
    /// The capacity, in whole tokens.
    pub limit: u64,
    /// What is left, in whole tokens.
    pub remaining: u64,
    /// How long until it is full again.
    pub full_after: Duration,
}

impl TokenBucket {
    /// Creates a full bucket, in tokens.
    #[must_use]
    pub fn new(capacity: u64, refill_per_s: f64) -> Self {
        let refill = (refill_per_s * MICRO as f64).round() as u64;
        Self(Drip::full(capacity.saturating_mul(MICRO), refill, 0, Time::ZERO))
    }

    /// Takes one token, or returns when there is one.
    pub fn take(&mut self, now: Time) -> BucketDecision {
        let wait = match self.0.ready(MICRO, now) {
            Readiness::Now => {
                self.0.take(MICRO, now);
                None
            }
            _ => Some(self.0.wait(MICRO, now)),
        };
        let fresh = self.0.refreshed(now);
        BucketDecision {
            wait,
            limit: fresh.capacity / MICRO,
            remaining: fresh.level / MICRO,
            full_after: fresh.wait(fresh.capacity, now),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-6: the grants never exceed capacity plus refill, and the reported wait is exact.
    #[test]
    fn lim_6_the_bucket_is_exact() {
        let mut rate = TokenBucket::new(3, 2.0);
        let at = Time::from_millis;
        assert_eq!((0..5).filter(|_| rate.take(at(0)).wait.is_none()).count(), 3);
        assert_eq!(rate.take(at(0)).wait, Some(Duration::from_millis(500)));
        assert_eq!(rate.take(at(499)).wait, Some(Duration::from_millis(1)));
        let ruling = rate.take(at(500));
        assert_eq!((ruling.wait, ruling.remaining, ruling.limit), (None, 0, 3));
        assert_eq!(ruling.full_after, Duration::from_millis(1_500));
        let granted = (500..10_500).filter(|ms| rate.take(at(*ms)).wait.is_none()).count();
        assert_eq!(granted, 19, "10 s at 2 a second; the last one comes at 10,500 ms");
    }
}
