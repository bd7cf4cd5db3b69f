//! A drip, and the granted calls that may not have reached the upstream yet. The upstream takes its
//! tokens when a call arrives, not when we grant it; while its bucket is full, what refills in
//! between is lost. So a grant is reserved, and deducted only when the call has completed, or when
//! it must have arrived. However long calls take within that time, and in whatever order they
//! arrive, the upstream never has less than we think.

use std::collections::VecDeque;
use std::time::Duration;

use super::Readiness;
use super::drip::Drip;
use crate::time::Time;

/// A call that may not have arrived yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transit {
    /// The time by which it has arrived.
    pub by: Time,
    /// Its cost, in micro-tokens.
    pub cost: u64,
    /// The grant it belongs to.
    pub mark: u64,
}

/// The longest time a call is assumed to be in transit: long enough for a machine that stands still
/// for a moment.
const TRANSIT_MAX: Duration = Duration::from_millis(500);

/// A drip and the calls in transit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacedDrip {
    /// What the upstream has, if no call in transit has arrived.
    pub drip: Drip,
    /// Calls in transit, in the order they were granted.
    pub transit: VecDeque<Transit>,
}

impl PacedDrip {
    /// Creates one with no call in transit.
    #[must_use]
    pub const fn new(drip: Drip) -> Self {
        Self { drip, transit: VecDeque::new() }
    }

    /// How long a call is assumed to be in transit: never so long that calls in transit fill the
    /// bucket, because then the rate could not be used.
    fn transit_time(&self) -> Duration {
        let Drip { capacity, refill_per_s, margin, .. } = self.drip;
        let room = u128::from(capacity.saturating_sub(margin)) * 3 / 4;
        // A bucket that lasts for the longest time needs no division.
        let longest = TRANSIT_MAX.as_micros() as u64;
        if room * 1_000_000 >= u128::from(longest) * u128::from(refill_per_s.max(1)) {
            return TRANSIT_MAX;
        }
        let micros = room * 1_000_000 / u128::from(refill_per_s.max(1));
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)).min(TRANSIT_MAX)
    }

    fn transit_cost(&self) -> u64 {
        self.transit.iter().map(|transit| transit.cost).sum()
    }

    /// Deducts what must have arrived by now.
    fn settle_arrived(&mut self, now: Time) {
        while let Some(first) = self.transit.front().copied()
            && first.by <= now
        {
            self.drip.take(first.cost, first.by);
            self.transit.pop_front();
        }
    }

    /// What can be granted at `now`, including the margin.
    #[must_use]
    pub fn available(&self, now: Time) -> u64 {
        let mut then = self.clone();
        then.settle_arrived(now);
        then.drip.refreshed(now).level.saturating_sub(then.transit_cost())
    }

    /// When `cost` can be taken in addition to what is reserved, if no one else takes any.
    #[must_use]
    pub fn ready(&self, cost: u64, held: u64, now: Time) -> Readiness {
        let mut drip = self.drip;
        if cost > drip.capacity {
            return Readiness::Never;
        }
        let needed = cost.saturating_add(drip.margin).min(drip.capacity).saturating_add(held);
        if needed > drip.capacity && held > 0 {
            return Readiness::AfterAnswer;
        }
        let mut on_its_way = self.transit_cost();
        for transit in &self.transit {
            let reached = drip.reaches(needed.saturating_add(on_its_way), now);
            if transit.by > now && reached <= transit.by {
                return readiness_at(reached, now);
            }
            drip.take(transit.cost, transit.by);
            on_its_way -= transit.cost;
        }
        readiness_at(drip.reaches(needed, now), now)
    }

    /// Takes `cost` for the grant `mark`, whose call is sent now.
    pub fn take(&mut self, cost: u64, mark: u64, now: Time) {
        self.settle_arrived(now);
        if cost > 0 {
            let earlier = self.transit.back().map_or(Time::ZERO, |last| last.by);
            let by = now.after(self.transit_time()).max(earlier);
            self.transit.push_back(Transit { by, cost, mark });
        }
    }

    /// Records that the call of the grant `mark` completed.
    pub fn mark_finished(&mut self, mark: u64, now: Time) {
        self.settle_arrived(now);
        if let Some(transit) = self.take_transit(mark) {
            self.drip.take(transit.cost, now);
        }
    }

    /// Records that the call of the grant `mark` was never sent.
    pub fn return_unsent(&mut self, mark: u64, cost: u64, now: Time) {
        self.settle_arrived(now);
        if self.take_transit(mark).is_none() {
            self.drip.give_back(cost, now);
        }
    }

    fn take_transit(&mut self, mark: u64) -> Option<Transit> {
        let place = self.transit.iter().position(|transit| transit.mark == mark)?;
        self.transit.remove(place)
    }

    /// Changes the figures.
    pub fn reshape(&mut self, capacity: u64, refill_per_s: u64, margin: u64, now: Time) {
        self.settle_arrived(now);
        self.drip = self.drip.reshaped(capacity, refill_per_s, margin, now);
    }

    /// Adopts the upstream's figure when less is left; it does not include calls in transit yet.
    pub fn lower_to(&mut self, left: u64, now: Time) {
        self.settle_arrived(now);
        self.drip.lower_to(left.saturating_add(self.transit_cost()), now);
    }

    /// Adopts the upstream's figure when more is left and nothing is in transit.
    pub fn raise_to(&mut self, left: u64, now: Time) {
        self.settle_arrived(now);
        self.drip.raise_to(left, now);
    }

    /// Stops refilling until `until`; then `left` can be granted.
    pub fn freeze(&mut self, until: Time, left: u64, now: Time) {
        self.settle_arrived(now);
        self.drip.freeze(until, left.saturating_add(self.transit_cost()), now);
    }
}

fn readiness_at(at: Time, now: Time) -> Readiness {
    if at <= now { Readiness::Now } else { Readiness::At(at) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::Bucket;
    use crate::fact::LimitShape;
    use crate::operation::MICRO;
    use proptest::prelude::*;

    /// A call, from its grant to its response.
    struct Flight {
        mark: u64,
        arrives: Time,
        answers: Time,
    }

    proptest! {
        /// LIM-14: however long calls are in transit, the upstream's own bucket never runs short:
        /// no 429. With work waiting, the rate is used: what is not granted is less than what was
        /// once in transit.
        #[test]
        fn lim_14_the_upstream_never_runs_short_and_the_rate_is_used(
            delays in proptest::collection::vec((0_u64..100, 0_u64..400), 50..400),
            capacity in 4_u64..40, rate in 5_u64..200,
        ) {
            let start = Time::from_millis(10_000);
            let drip = Drip::full(capacity * MICRO, rate * MICRO, 0, start);
            let (mut ours, mut theirs) = (PacedDrip::new(drip), drip);
            let longest = ours.transit_time().as_micros() as u64;
            let (mut now, mut flights, mut granted) = (start, Vec::<Flight>::new(), 0_u64);
            let mut arrived = Vec::new();
            for (mark, (way, back)) in delays.iter().enumerate() {
                let mark = mark as u64 + 1;
                while let Readiness::At(at) = ours.ready(MICRO, 0, now) {
                    let answered = flights.iter().map(|flight| flight.answers).min().unwrap_or(Time::MAX);
                    now = at.min(answered);
                    for flight in flights.extract_if(.., |flight| flight.answers <= now) {
                        ours.mark_finished(flight.mark, flight.answers.max(now));
                    }
                }
                ours.take(MICRO, mark, now);
                granted += 1;
                let arrives = now.after(Duration::from_micros(longest * way / 100));
                let answers = arrives.after(Duration::from_millis(*back));
                arrived.push(arrives);
                flights.push(Flight { mark, arrives, answers });
                prop_assert!(flights.iter().all(|flight| flight.arrives <= flight.answers));
            }
            arrived.sort_unstable();
            for at in arrived {
                theirs = theirs.refreshed(at);
                prop_assert!(theirs.level >= MICRO, "a 429 at {at:?}");
                theirs.take(MICRO, at);
            }
            let allowed = capacity as f64 + rate as f64 * now.since(start).as_secs_f64();
            let lost = capacity as f64 + 1.0;
            prop_assert!(granted as f64 >= allowed - lost, "{granted} of {allowed}");
        }

        /// LIM-14: calls sent seconds after they were granted, because the log held up their
        /// claims, never take more than the upstream has, in whatever order they are sent.
        #[test]
        fn lim_14_a_call_that_leaves_late_counts_from_then(
            steps in proptest::collection::vec((0_u64..700, 0_usize..12, 0_usize..12, 0_u64..100, 0_u64..3), 5..120),
            capacity in 2_u64..60, rate in 1_u64..100,
        ) {
            let start = Time::from_millis(10_000);
            let shape = LimitShape::Drip { capacity: capacity * MICRO, refill_per_s: rate * MICRO, margin: 0 };
            let mut ours = Bucket::new(shape, start).unwrap();
            let mut theirs = Drip::full(capacity * MICRO, rate * MICRO, 0, start);
            let transit = PacedDrip::new(theirs).transit_time();
            let (mut now, mut unsent, mut arrived) = (start, Vec::new(), Vec::new());
            let mut flights: Vec<(u64, Time)> = Vec::new();
            for (wait, grants, sends, way, order) in steps {
                for _ in 0..grants {
                    if ours.ready(MICRO, now) == Readiness::Now {
                        unsent.push(ours.take(MICRO));
                    }
                }
                now = now.after(Duration::from_millis(wait));
                for _ in 0..sends.min(unsent.len()) {
                    let mark = unsent.remove(if order == 0 { unsent.len() - 1 } else { 0 });
                    if order == 2 && wait % 3 == 0 {
                        ours.return_unsent(mark, MICRO, now);
                        continue;
                    }
                    ours.mark_sent(mark, now);
                    let arrives = now.after(transit * way as u32 / 100);
                    arrived.push(arrives);
                    flights.push((mark, arrives));
                }
                for (mark, _) in flights.extract_if(.., |(mark, arrives)| *arrives <= now && *mark % 2 == 0) {
                    ours.mark_finished(mark, now);
                }
            }
            arrived.sort_unstable();
            for at in arrived {
                theirs = theirs.refreshed(at);
                prop_assert!(theirs.level >= MICRO, "a 429 at {at:?}");
                theirs.take(MICRO, at);
            }
        }

        /// The returned time is the first at which the cost is ready.
        #[test]
        fn ready_tells_the_first_moment(
            steps in proptest::collection::vec((0_u64..80_000, 1_u64..4), 1..40), cost in 1_u64..5,
        ) {
            let mut now = Time::from_millis(5_000);
            let mut paced = PacedDrip::new(Drip::full(5 * MICRO, 20 * MICRO, MICRO / 2, now));
            for (mark, (wait, cost)) in steps.into_iter().enumerate() {
                now = now.after(Duration::from_micros(wait));
                if paced.ready(cost * MICRO, 0, now) == Readiness::Now {
                    paced.take(cost * MICRO, mark as u64, now);
                }
            }
            if let Readiness::At(at) = paced.ready(cost * MICRO, 0, now) {
                prop_assert_eq!(paced.ready(cost * MICRO, 0, at), Readiness::Now);
                prop_assert!(paced.ready(cost * MICRO, 0, at.before(Duration::from_micros(1))) != Readiness::Now);
            }
        }
    }
}
