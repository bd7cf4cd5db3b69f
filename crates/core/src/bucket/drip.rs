//! A budget that refills evenly. Exact integer arithmetic: the remainder of a refill is carried,
//! never dropped, so many small refills equal one large one. A clock that steps back refills
//! nothing.

use std::time::Duration;

use crate::bucket::Readiness;
use crate::time::Time;

const SECOND: u128 = SECOND_NARROW as u128;
const SECOND_NARROW: u64 = 1_000_000;

/// The state of a drip bucket, in micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drip {
    /// The capacity.
    pub capacity: u64,
    /// The refill per second.
    pub refill_per_s: u64,
    /// The reserve that is never granted, to cover the difference between our clock and the
    /// upstream's.
    pub margin: u64,
    /// What was left at `at`.
    pub level: u64,
    /// The time at which `level` was computed.
    pub at: Time,
    /// Millionths of a micro-token left over from the last refill.
    pub carry: u64,
}

impl Drip {
    /// Creates a full bucket.
    #[must_use]
    pub const fn full(capacity: u64, refill_per_s: u64, margin: u64, at: Time) -> Self {
        Self { capacity, refill_per_s, margin, level: capacity, at, carry: 0 }
    }

    /// The state at `now`. A time before `at` refills nothing.
    #[must_use]
    pub fn refreshed(self, now: Time) -> Self {
        if now <= self.at {
            return self;
        }
        let (refilled, carry) = self.refilled(now.as_micros() - self.at.as_micros());
        match self.level.checked_add(refilled) {
            Some(level) if level < self.capacity => Self { level, carry, at: now, ..self },
            _ => Self { level: self.capacity, carry: 0, at: now, ..self },
        }
    }

    /// The refill in this many microseconds, and the millionths left over; saturates at the largest
    /// number, which fills any bucket.
    fn refilled(&self, elapsed: u64) -> (u64, u64) {
        // The product nearly always fits a machine word, which divides many times faster than a
        // wide integer.
        let narrow = elapsed.checked_mul(self.refill_per_s).and_then(|parts| parts.checked_add(self.carry));
        if let Some(parts) = narrow {
            return (parts / SECOND_NARROW, parts % SECOND_NARROW);
        }
        let parts = u128::from(elapsed) * u128::from(self.refill_per_s) + u128::from(self.carry);
        (u64::try_from(parts / SECOND).unwrap_or(u64::MAX), (parts % SECOND) as u64)
    }

    /// Changes the figures from `now` on; what exceeds a smaller capacity is lost.
    #[must_use]
    pub fn reshaped(self, capacity: u64, refill_per_s: u64, margin: u64, now: Time) -> Self {
        let fresh = self.refreshed(now);
        let carry = if fresh.level >= capacity { 0 } else { fresh.carry };
        Self { capacity, refill_per_s, margin, level: fresh.level.min(capacity), carry, ..fresh }
    }

    /// When `cost` can be taken, if no one else takes any.
    #[must_use]
    pub fn ready(&self, cost: u64, now: Time) -> Readiness {
        if cost > self.capacity {
            return Readiness::Never;
        }
        let needed = cost.saturating_add(self.margin).min(self.capacity);
        let at = self.reaches(needed, now);
        if at <= now { Readiness::Now } else { Readiness::At(at) }
    }

    /// The first moment from `now` on at which this much is available; never, when it exceeds the
    /// capacity.
    #[must_use]
    pub fn reaches(&self, needed: u64, now: Time) -> Time {
        if needed > self.capacity { Time::MAX } else { self.all_granted_at(needed, now) }
    }

    /// The first moment from `now` on at which this much is available or has been taken since, if
    /// everything is taken as soon as it is available: over time more than the capacity is granted,
    /// too.
    #[must_use]
    pub fn all_granted_at(&self, total: u64, now: Time) -> Time {
        let fresh = self.refreshed(now);
        let missing = total.saturating_sub(fresh.level);
        match self.refill_per_s {
            _ if missing == 0 => fresh.at.max(now),
            0 => Time::MAX,
            refill => {
                let parts = (u128::from(missing) * SECOND).saturating_sub(u128::from(fresh.carry));
                let wait = u64::try_from(parts.div_ceil(u128::from(refill))).unwrap_or(u64::MAX);
                fresh.at.after(Duration::from_micros(wait))
            }
        }
    }

    /// How long until `cost` can be taken; zero when it can be taken now.
    #[must_use]
    pub fn wait(&self, cost: u64, now: Time) -> Duration {
        match self.ready(cost, now) {
            Readiness::Now => Duration::ZERO,
            Readiness::At(at) => at.since(now),
            Readiness::AfterAnswer | Readiness::Never => Duration::MAX,
        }
    }

    /// Takes `cost`.
    pub fn take(&mut self, cost: u64, now: Time) {
        *self = self.refreshed(now);
        self.level = self.level.saturating_sub(cost);
    }

    /// Puts back what was not used.
    pub fn give_back(&mut self, amount: u64, now: Time) {
        *self = self.refreshed(now);
        self.level = self.level.saturating_add(amount).min(self.capacity);
        if self.level == self.capacity {
            self.carry = 0;
        }
    }

    /// Takes what was used beyond the reservation, as far as it is available.
    pub fn take_beyond(&mut self, amount: u64, now: Time) {
        self.take(amount, now);
    }

    /// Adopts the upstream's figure when it is lower.
    pub fn lower_to(&mut self, level: u64, now: Time) {
        *self = self.refreshed(now);
        self.level = self.level.min(level);
    }

    /// Raises the level to at least this much, up to the capacity.
    pub fn raise_to(&mut self, level: u64, now: Time) {
        *self = self.refreshed(now);
        if level > self.level {
            self.level = level.min(self.capacity);
            self.carry = 0;
        }
    }

    /// Stops refilling until `until`; then `left` is available.
    pub fn freeze(&mut self, until: Time, left: u64, now: Time) {
        *self = self.refreshed(now);
        self.level = self.level.min(left);
        self.carry = 0;
        self.at = self.at.max(until);
    }

    /// Ends a freeze at once.
    pub fn thaw(&mut self, now: Time) {
        self.at = self.at.min(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drip() -> impl Strategy<Value = Drip> {
        (1_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1_000_000).prop_map(
            |(capacity, refill_per_s, level, at, carry)| {
                let level = level % (capacity + 1);
                let carry = if level == capacity { 0 } else { carry };
                Drip { capacity, refill_per_s, margin: 0, level, at: Time::from_micros(at), carry }
            },
        )
    }

    proptest! {
        /// LIM-23: refill is exact; any number of steps equals one step.
        #[test]
        fn lim_23_many_small_refills_equal_one_large(drip in drip(), steps in proptest::collection::vec(0_u64..100_000, 0..30)) {
            let mut stepped = drip;
            let mut now = drip.at;
            for step in steps {
                now = now.after(Duration::from_micros(step));
                stepped = stepped.refreshed(now);
            }
            prop_assert_eq!(stepped, Drip { at: now, ..drip.refreshed(now) });
        }

        /// LIM-23: the fast division and the wide one agree, on both sides of the boundary between
        /// them.
        #[test]
        fn lim_23_what_comes_back_is_exact_at_any_size(drip in drip(), narrow in 0_u64..1 << 24, wide: u64) {
            for elapsed in [narrow, wide] {
                let (refilled, carry) = drip.refilled(elapsed);
                let parts = u128::from(elapsed) * u128::from(drip.refill_per_s) + u128::from(drip.carry);
                let whole = u64::try_from(parts / SECOND).unwrap_or(u64::MAX);
                prop_assert_eq!((refilled, u128::from(carry)), (whole, parts % SECOND));
            }
        }

        /// LIM-6: a clock that steps back refills nothing, and nothing overflows at the ends of the
        /// range.
        #[test]
        fn lim_6_clocks_out_of_their_mind(drip in drip(), back: u64, ahead: u64, cost: u64) {
            let back = back % (drip.at.as_micros() + 1);
            prop_assert_eq!(drip.refreshed(Time::from_micros(back)), drip);
            for now in [back, ahead].map(Time::from_micros) {
                let fresh = drip.refreshed(now);
                prop_assert!(fresh.level <= fresh.capacity && fresh.at >= drip.at);
                let _ = drip.ready(cost, now);
            }
        }

        /// The returned time is the first at which the cost is ready.
        #[test]
        fn ready_tells_the_first_moment(drip in drip(), cost in 1_u64..1 << 40) {
            prop_assume!(drip.refill_per_s > 0 && cost <= drip.capacity);
            let now = drip.at;
            if let Readiness::At(at) = drip.ready(cost, now) {
                prop_assert_eq!(drip.ready(cost, at), Readiness::Now);
                prop_assert!(drip.ready(cost, at.before(Duration::from_micros(1))) != Readiness::Now);
            }
        }
    }
}
