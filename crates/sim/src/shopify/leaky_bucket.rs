//! The REST bucket of one shop: each call is one drop in it, and it leaks evenly. A drop that does
//! not fit is refused.

use tidegate_core::Time;
use tidegate_core::bucket::Readiness;
use tidegate_core::bucket::drip::Drip;
use tidegate_core::operation::MICRO;

/// The bucket.
#[derive(Debug)]
pub struct LeakyBucket(Drip);

/// The fill level of the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketFill {
    /// Drops in it, including partial ones.
    pub used: u64,
    /// Drops it holds.
    pub size: u64,
}

impl LeakyBucket {
    /// Creates an empty bucket.
    #[must_use]
    pub fn new(size: u64, per_s: u64, now: Time) -> Self {
        Self(Drip::full(size.saturating_mul(MICRO), per_s.saturating_mul(MICRO), 0, now))
    }

    /// Adds a drop; false when it does not fit.
    pub fn add(&mut self, now: Time) -> bool {
        if self.0.ready(MICRO, now) != Readiness::Now {
            return false;
        }
        self.0.take(MICRO, now);
        true
    }

    /// Changes size and rate from now on.
    pub fn reshape(&mut self, size: u64, per_s: u64, now: Time) {
        self.0 = self.0.reshaped(size.saturating_mul(MICRO), per_s.saturating_mul(MICRO), 0, now);
    }

    /// Returns the fill level.
    #[must_use]
    pub fn fill(&self, now: Time) -> BucketFill {
        let fresh = self.0.refreshed(now);
        BucketFill { used: (fresh.capacity - fresh.level).div_ceil(MICRO), size: fresh.capacity / MICRO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-6: forty at once, then two per second.
    #[test]
    fn lim_6_the_bucket_leaks_evenly() {
        let at = Time::from_millis;
        let mut leaky = LeakyBucket::new(40, 2, at(0));
        assert_eq!((0..50).filter(|_| leaky.add(at(0))).count(), 40);
        assert_eq!(leaky.fill(at(0)), BucketFill { used: 40, size: 40 });
        assert_eq!(leaky.fill(at(499)), BucketFill { used: 40, size: 40 });
        assert!(!leaky.add(at(499)) && leaky.add(at(500)) && !leaky.add(at(500)));
        assert_eq!(leaky.fill(at(10_500)), BucketFill { used: 20, size: 40 });
        leaky.reshape(10, 1, at(10_500));
        assert_eq!(
            leaky.fill(at(10_500)),
            BucketFill { used: 0, size: 10 },
            "what was free above the new size is lost"
        );
    }
}
