//! The points of one shop: the requested cost must be available, and the unused part returns with
//! the response. Exact, by the simulator's clock.

use std::collections::VecDeque;

use tidegate_core::Time;
use tidegate_core::bucket::Readiness;
use tidegate_core::bucket::drip::Drip;
use tidegate_core::operation::MICRO;

/// The bucket, and its accounts.
#[derive(Debug)]
pub struct PointBucket {
    drip: Drip,
    /// The unused parts and when they return, earliest first: all responses take equally long.
    unused: VecDeque<(Time, u64)>,
    granted: u64,
    first: Option<Time>,
    /// Micro-points restored from the first call up to `counted`, had there been room.
    restorable: u128,
    counted: Time,
}

/// The state of the bucket, in whole points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointStatus {
    /// The capacity.
    pub maximum: u64,
    /// What is available.
    pub available: u64,
    /// What is restored per second.
    pub restore_per_s: u64,
}

/// The requested and the actual cost of a call.
#[derive(Clone, Copy, Debug)]
pub struct PointUse {
    /// What must be available.
    pub requested: u64,
    /// What is used.
    pub actual: u64,
    /// When the rest returns.
    pub until: Time,
}

impl PointBucket {
    /// Creates a full bucket.
    #[must_use]
    pub fn new(maximum: u64, restore_per_s: u64, now: Time) -> Self {
        Self {
            drip: Drip::full(micro(maximum), micro(restore_per_s), 0, now),
            unused: VecDeque::new(),
            granted: 0,
            first: None,
            restorable: 0,
            counted: now,
        }
    }

    /// Takes the requested cost, and returns the unused part in time; false, and nothing taken,
    /// when there is too little.
    pub fn take(&mut self, wanted: PointUse, now: Time) -> bool {
        self.refresh(now);
        self.first.get_or_insert(now);
        if self.drip.ready(micro(wanted.requested), now) != Readiness::Now {
            return false;
        }
        self.drip.take(micro(wanted.requested), now);
        self.granted += wanted.actual;
        let unused = wanted.requested.saturating_sub(wanted.actual);
        self.unused.push_back((wanted.until, unused));
        self.refresh(now);
        true
    }

    /// Changes the figures from now on; what is above a smaller maximum is lost.
    pub fn reshape(&mut self, maximum: u64, restore_per_s: u64, now: Time) {
        self.refresh(now);
        self.drip = self.drip.reshaped(micro(maximum), micro(restore_per_s), 0, now);
    }

    /// Returns its state.
    pub fn status(&mut self, now: Time) -> PointStatus {
        self.refresh(now);
        PointStatus {
            maximum: self.drip.capacity / MICRO,
            available: self.drip.level / MICRO,
            restore_per_s: self.drip.refill_per_s / MICRO,
        }
    }

    /// Returns all points used.
    #[must_use]
    pub const fn granted(&self) -> u64 {
        self.granted
    }

    /// Returns when the first call came.
    #[must_use]
    pub const fn first(&self) -> Option<Time> {
        self.first
    }

    /// Returns what was restored since the first call, or would have been with room for it, without
    /// the initial balance.
    pub fn restorable(&mut self, now: Time) -> u64 {
        self.refresh(now);
        u64::try_from(self.restorable / u128::from(MICRO)).unwrap_or(u64::MAX)
    }

    fn refresh(&mut self, now: Time) {
        if self.first.is_some() && now > self.counted {
            let elapsed = u128::from(now.as_micros() - self.counted.as_micros());
            self.restorable += elapsed * u128::from(self.drip.refill_per_s) / 1_000_000;
        }
        self.counted = self.counted.max(now);
        while let Some((at, unused)) = self.unused.front().copied()
            && at <= now
        {
            self.drip.give_back(micro(unused), at);
            self.unused.pop_front();
        }
        self.drip = self.drip.refreshed(now);
    }
}

const fn micro(points: u64) -> u64 {
    points.saturating_mul(MICRO)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn at_once(requested: u64, actual: u64, now: Time) -> PointUse {
        PointUse { requested, actual, until: now }
    }

    /// LIM-1: the requested cost must fit, though less is used; the rest is available again with
    /// the response.
    #[test]
    fn lim_1_the_requested_cost_must_fit_and_the_rest_comes_back() {
        let mut points = PointBucket::new(1_000, 50, at(0));
        assert!(points.take(PointUse { requested: 900, actual: 100, until: at(500) }, at(0)));
        assert_eq!(points.status(at(0)).available, 100);
        assert!(!points.take(at_once(101, 1, at(0)), at(0)), "a refusal takes nothing");
        assert_eq!(points.status(at(0)).available, 100);
        assert_eq!(points.status(at(499)).available, 124);
        assert_eq!(points.status(at(500)).available, 925);
        assert_eq!(
            points.status(at(2_000)),
            PointStatus { maximum: 1_000, available: 1_000, restore_per_s: 50 }
        );
        assert_eq!((points.granted(), points.restorable(at(2_000))), (100, 100));
    }

    /// LIM-9: more than the capacity never fits.
    #[test]
    fn lim_9_more_than_the_maximum_never_fits() {
        let mut points = PointBucket::new(40, 2, at(0));
        assert!(
            !points.take(at_once(41, 1, at(0)), at(0)) && !points.take(at_once(41, 1, at(0)), at(9_000_000))
        );
    }

    #[test]
    fn figures_change_while_calls_run() {
        let mut points = PointBucket::new(2_000, 100, at(0));
        assert!(points.take(at_once(100, 100, at(0)), at(0)));
        points.reshape(1_000, 50, at(0));
        assert_eq!(points.status(at(0)), PointStatus { maximum: 1_000, available: 1_000, restore_per_s: 50 });
        assert!(points.take(at_once(1_000, 1_000, at(0)), at(0)));
        points.reshape(2_000, 100, at(1_000));
        assert_eq!(points.status(at(2_000)).available, 150);
        assert_eq!(points.restorable(at(2_000)), 150);
    }

    proptest! {
        /// LIM-6: whatever is requested when, no more is used than the capacity and what was
        /// restored.
        #[test]
        fn lim_6_no_more_is_granted_than_capacity_and_refill(
            maximum in 1_u64..3_000,
            restore in 0_u64..500,
            latency in 0_u64..2_000,
            calls in proptest::collection::vec((0_u64..700, 0_u64..1_200, 0_u64..100), 1..60),
        ) {
            let mut points = PointBucket::new(maximum, restore, at(0));
            let (mut now, mut used) = (at(0), 0);
            for (pause, requested, percent) in calls {
                now = now.after(Duration::from_millis(pause));
                let until = now.after(Duration::from_millis(latency));
                let actual = requested * percent / 100;
                if points.take(PointUse { requested, actual, until }, now) {
                    used += actual;
                }
                let status = points.status(now);
                prop_assert!(status.available <= maximum);
                prop_assert!(used <= maximum + restore * now.as_millis() / 1_000 + 1);
            }
            prop_assert_eq!(points.granted(), used);
            let later = now.after(Duration::from_millis(latency));
            if let Some(seconds) = maximum.checked_div(restore) {
                let full = later.after(Duration::from_secs(seconds + 1));
                prop_assert_eq!(points.status(full).available, maximum);
            }
        }
    }
}
