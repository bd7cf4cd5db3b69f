//! A budget that refills, behind one interface whatever its shape: when can this be taken, take it, give it back,
//! learn from an answer, close and open. Arithmetic only: who waits for it is the model's.

pub mod drip;
pub mod gate;
mod given;
pub mod paced;
pub mod window;

use std::collections::VecDeque;
use std::time::Duration;

use drip::Drip;
use gate::Gate;
use paced::Paced;
use window::Window;

use crate::fact::Shape;
use crate::time::Time;
use crate::verdict::Hint;

/// When something can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// At once.
    Now,
    /// Not before this time.
    At(Time),
    /// When a call that is under way has been answered.
    AfterAnswer,
    /// Never: it is more than there can be.
    Never,
}

/// What kind of budget it is, with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Refills evenly.
    Drip(Paced),
    /// Comes back all at once.
    Window(Window),
    /// Only closed when told.
    Gate(Gate),
}

/// A budget, and what is common to all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The budget.
    pub budget: Budget,
    /// The upstream asked for quiet until then.
    pub frozen_until: Time,
    /// Everything that was ever granted, wrapping. A grant remembers it, so a late answer can be placed.
    pub granted: u64,
    /// Answers in a row that said to wait.
    pub throttles: u32,
    /// Calls under way. Follows from the claims, so a snapshot does not keep it.
    pub in_flight: u32,
    /// Grants whose calls have not left yet, in the order of granting. They are held aside: nothing
    /// says when they will reach the upstream, so they are taken off the budget when they leave.
    pub unsent: VecDeque<Grant>,
    /// What answered calls turned out to cost, while others are under way: an answer to an earlier grant does not know it. A
    /// snapshot does not keep it: without it less is believed to be left, never more.
    pub corrections: VecDeque<Correction>,
}

/// What a grant turned out to cost, in micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    /// Which grant.
    pub mark: u64,
    /// What was granted.
    pub reserved: u64,
    /// What it cost.
    pub actual: u64,
}

/// Most corrections that are kept; the oldest goes first.
const CORRECTIONS_MAX: usize = 1_024;

/// A grant whose call has not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Which.
    pub mark: u64,
    /// What it takes, in micro-tokens.
    pub cost: u64,
}

/// How long two clocks may differ by: what refills in this time is left alone.
const MARGIN: Duration = Duration::from_millis(20);

/// The usual margin of a drip: what refills in 20 ms, at most a quarter of what it holds.
#[must_use]
pub fn usual_margin(capacity: u64, refill_per_s: u64) -> u64 {
    let refilled = u128::from(refill_per_s) * MARGIN.as_micros() / 1_000_000;
    u64::try_from(refilled).unwrap_or(u64::MAX).min(capacity / 4)
}

impl Bucket {
    /// A full one of this shape; `None` for a cap, which is no bucket.
    #[must_use]
    pub fn new(shape: Shape, now: Time) -> Option<Self> {
        let budget = match shape {
            Shape::Drip { capacity, refill_per_s, margin } => {
                Budget::Drip(Paced::new(Drip::full(capacity, refill_per_s, margin, now)))
            }
            Shape::Window { limit, period } => Budget::Window(Window::new(limit, period)),
            Shape::Gate => Budget::Gate(Gate::default()),
            Shape::Cap { .. } => return None,
        };
        Some(Self {
            budget,
            frozen_until: Time::ZERO,
            granted: 0,
            throttles: 0,
            in_flight: 0,
            unsent: VecDeque::new(),
            corrections: VecDeque::new(),
        })
    }

    /// The shape it has now.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        match &self.budget {
            Budget::Drip(Paced { drip: d, .. }) => {
                Shape::Drip { capacity: d.capacity, refill_per_s: d.refill_per_s, margin: d.margin }
            }
            Budget::Window(w) => Shape::Window { limit: w.limit, period: w.period },
            Budget::Gate(_) => Shape::Gate,
        }
    }

    /// Takes on another shape from `now` on. What was spent of the old one stays spent where that can be said.
    pub fn reshape(&mut self, shape: Shape, now: Time) {
        match (&mut self.budget, shape) {
            (Budget::Drip(paced), Shape::Drip { capacity, refill_per_s, margin }) => {
                paced.reshape(capacity, refill_per_s, margin, now);
            }
            (Budget::Window(window), Shape::Window { limit, period }) => {
                window.observe(None, Some(limit), None, now);
                window.period = period;
            }
            (_, shape) => {
                if let Some(other) = Self::new(shape, now) {
                    self.budget = other.budget;
                }
            }
        }
    }

    /// Whether all of it is there, it is open and no call is under way.
    #[must_use]
    pub fn is_at_rest(&self, now: Time) -> bool {
        let is_full = match &self.budget {
            Budget::Drip(paced) => {
                paced.available(now) >= paced.drip.capacity.saturating_sub(paced.drip.margin)
            }
            Budget::Window(window) => window.refreshed(now).reset_at == Time::ZERO,
            Budget::Gate(gate) => gate.at_once == 0,
        };
        is_full && self.in_flight == 0 && self.frozen_until <= now
    }

    /// When `cost` can be taken, if nobody else takes any.
    #[must_use]
    pub fn ready(&self, cost: u64, now: Time) -> Readiness {
        let budget = match &self.budget {
            Budget::Drip(paced) => paced.ready(cost, self.held(), now),
            Budget::Window(window) => window.ready(cost, self.held(), now, self.in_flight),
            Budget::Gate(gate) => gate.ready(self.in_flight),
        };
        if self.frozen_until > now { budget.max(Readiness::At(self.frozen_until)) } else { budget }
    }

    /// What is held aside for calls that have not left.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.unsent.iter().map(|grant| grant.cost).sum()
    }

    /// Grants `cost` and answers the mark of this grant. It is held aside until its call leaves.
    pub fn take(&mut self, cost: u64) -> u64 {
        if self.in_flight == 0 {
            self.corrections.clear();
        }
        self.granted = self.granted.wrapping_add(cost);
        if !matches!(self.budget, Budget::Gate(_)) {
            self.unsent.push_back(Grant { mark: self.granted, cost });
        }
        self.in_flight += 1;
        self.granted
    }

    /// Whether the call of the grant `mark` has not left, as far as is known.
    #[must_use]
    pub fn is_unsent(&self, mark: u64) -> bool {
        self.unsent.iter().any(|grant| grant.mark == mark)
    }

    /// The call of the grant `mark` leaves now: what it costs is on its way to the upstream.
    pub fn send(&mut self, mark: u64, now: Time) {
        let Some(grant) = self.release(mark) else { return };
        match &mut self.budget {
            Budget::Drip(paced) => paced.take(grant.cost, mark, now),
            Budget::Window(window) => window.take(grant.cost, now),
            Budget::Gate(_) => {}
        }
    }

    fn release(&mut self, mark: u64) -> Option<Grant> {
        let place = self.unsent.iter().position(|grant| grant.mark == mark)?;
        self.unsent.remove(place)
    }

    /// The call of the grant `mark` is no longer under way: it was answered, or nobody waits for it any more.
    pub fn land(&mut self, mark: u64, now: Time) {
        self.send(mark, now);
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Budget::Drip(paced) = &mut self.budget {
            paced.land(mark, now);
        }
    }

    /// The call of the grant `mark` was not sent: what was taken for it is put back.
    pub fn unsend(&mut self, mark: u64, cost: u64, now: Time) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.correct(Correction { mark, reserved: cost, actual: 0 });
        if self.release(mark).is_some() {
            return;
        }
        match &mut self.budget {
            Budget::Drip(paced) => paced.unsend(mark, cost, now),
            Budget::Window(window) => window.give_back(cost, now),
            Budget::Gate(_) => {}
        }
    }

    /// Puts back what a call did not use.
    fn give_back(&mut self, cost: u64, now: Time) {
        match &mut self.budget {
            Budget::Drip(paced) => paced.drip.give_back(cost, now),
            Budget::Window(window) => window.give_back(cost, now),
            Budget::Gate(_) => {}
        }
    }

    fn correct(&mut self, correction: Correction) {
        if self.corrections.len() >= CORRECTIONS_MAX {
            self.corrections.pop_front();
        }
        self.corrections.push_back(correction);
    }

    /// Corrects the grant `mark` of `reserved` by what it really cost.
    pub fn settle(&mut self, mark: u64, reserved: u64, actual: u64, now: Time) {
        self.correct(Correction { mark, reserved, actual });
        if actual <= reserved {
            self.give_back(reserved - actual, now);
        } else {
            match &mut self.budget {
                Budget::Drip(paced) => paced.drip.take_beyond(actual - reserved, now),
                Budget::Window(window) => window.take(actual - reserved, now),
                Budget::Gate(_) => {}
            }
        }
    }

    /// What calls may have taken that were granted after `mark`: of one that was answered what it cost, of any other all of
    /// its grant. What has not left is held aside anyway.
    fn taken_since(&self, mark: u64) -> u64 {
        let after = self.granted.wrapping_sub(mark);
        let is_later = |later: u64| self.granted.wrapping_sub(later) < after;
        let unsent: u64 =
            self.unsent.iter().filter(|grant| is_later(grant.mark)).map(|grant| grant.cost).sum();
        let corrected = self.corrections.iter().filter(|correction| is_later(correction.mark));
        let (reserved, actual) = corrected.fold((0_u64, 0_u64), |(reserved, actual), correction| {
            (reserved.saturating_add(correction.reserved), actual.saturating_add(correction.actual))
        });
        after.saturating_sub(unsent).saturating_sub(reserved).saturating_add(actual)
    }

    /// Learns from the answer to the grant marked `mark`. What left after it may not have been counted yet, so it
    /// is taken off the upstream's figure; of that and ours the lower one counts. Only the answer to the newest grant,
    /// with nothing else under way, is surely not out of order: then the upstream's figure is what is there, because
    /// ours may have counted calls that the upstream had counted too.
    pub fn observe(&mut self, hint: &Hint, mark: u64, now: Time) {
        let since = self.taken_since(mark);
        let remaining = hint.remaining.map(|left| left.saturating_sub(since));
        match &mut self.budget {
            Budget::Drip(paced) => {
                let capacity = hint.capacity.unwrap_or(paced.drip.capacity);
                let refill_per_s = hint.refill_per_s.unwrap_or(paced.drip.refill_per_s);
                if (capacity, refill_per_s) != (paced.drip.capacity, paced.drip.refill_per_s) {
                    paced.reshape(capacity, refill_per_s, usual_margin(capacity, refill_per_s), now);
                }
                if let Some(left) = remaining {
                    paced.lower_to(left, now);
                    if self.in_flight == 0 && mark == self.granted && self.frozen_until <= now {
                        paced.raise_to(left, now);
                    }
                }
            }
            Budget::Window(window) => window.observe(remaining, hint.capacity, hint.reset_at, now),
            // A call that failed for good may say that no other can do better before then.
            Budget::Gate(gate) => {
                if let Some(until) = hint.reset_at.filter(|until| *until > now) {
                    gate.close();
                    self.frozen_until = self.frozen_until.max(until);
                }
            }
        }
    }

    /// A call went through.
    pub const fn succeed(&mut self) {
        self.throttles = 0;
        if let Budget::Gate(gate) = &mut self.budget {
            gate.widen();
        }
    }

    /// The upstream asked for quiet until `until`. A later time is never shortened. When it is over, `cost` can be
    /// taken once, and the rest refills from there.
    pub fn freeze(&mut self, until: Time, cost: u64, now: Time) {
        self.throttles = self.throttles.saturating_add(1);
        self.frozen_until = self.frozen_until.max(until);
        let until = self.frozen_until;
        match &mut self.budget {
            Budget::Drip(paced) => paced.freeze(until, cost.saturating_add(paced.drip.margin), now),
            Budget::Window(_) => {}
            Budget::Gate(gate) => gate.close(),
        }
    }

    /// A person opens it again.
    pub fn thaw(&mut self, now: Time) {
        self.frozen_until = Time::ZERO;
        self.throttles = 0;
        if let Budget::Drip(paced) = &mut self.budget {
            paced.drip.thaw(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::MICRO;

    fn drip(capacity: u64, rate: u64, now: Time) -> Bucket {
        let shape = Shape::Drip { capacity: capacity * MICRO, refill_per_s: rate * MICRO, margin: 0 };
        Bucket::new(shape, now).unwrap()
    }

    /// A call that is granted and leaves at once.
    fn sent(bucket: &mut Bucket, cost: u64, now: Time) -> u64 {
        let mark = bucket.take(cost);
        bucket.send(mark, now);
        mark
    }

    /// LIM-12 / LIM-20: after a freeze the one that was told runs again at that time, and no burst follows it.
    #[test]
    fn lim_12_a_freeze_ends_on_time_and_without_a_burst() {
        let now = Time::from_millis(10_000);
        let mut bucket = drip(40, 2, now);
        sent(&mut bucket, MICRO, now);
        let until = now.after(Duration::from_secs(2));
        bucket.freeze(until, MICRO, now);
        assert_eq!(bucket.ready(MICRO, now), Readiness::At(until));
        assert_eq!(bucket.ready(MICRO, until), Readiness::Now);
        sent(&mut bucket, MICRO, until);
        assert_eq!(bucket.ready(MICRO, until), Readiness::At(until.after(Duration::from_millis(500))));
        bucket.freeze(until.after(Duration::from_secs(9)), MICRO, until);
        bucket.freeze(until.after(Duration::from_secs(3)), MICRO, until);
        assert_eq!(bucket.frozen_until, until.after(Duration::from_secs(9)));
        bucket.thaw(until);
        assert_eq!(bucket.ready(MICRO, until), Readiness::At(until.after(Duration::from_millis(500))));
    }

    /// LIM-23: of the upstream's figure and ours the lower one counts, and what left later is taken off.
    #[test]
    fn lim_23_answers_out_of_order_never_raise_a_balance() {
        let now = Time::from_millis(10_000);
        let mut bucket = drip(10, 1, now);
        let first = sent(&mut bucket, MICRO, now);
        let second = sent(&mut bucket, MICRO, now);
        let left = |remaining| Hint { remaining: Some(remaining * MICRO), ..Hint::default() };
        bucket.observe(&left(5), second, now);
        assert_eq!(bucket.ready(5 * MICRO, now), Readiness::Now);
        bucket.observe(&left(9), first, now);
        assert_eq!(bucket.ready(5 * MICRO, now), Readiness::Now);
        assert!(bucket.ready(6 * MICRO, now) > Readiness::Now);
        bucket.observe(&left(5), first, now);
        assert!(bucket.ready(5 * MICRO, now) > Readiness::Now, "one left after the first: 5 - 1 = 4");
    }

    /// LIM-23, LIM-14: an answer that comes after those to later calls takes off what these really cost, not what was held
    /// for them; what is still under way is taken off in full.
    #[test]
    fn lim_23_lim_14_a_late_answer_knows_what_later_calls_cost() {
        let now = Time::from_millis(10_000);
        let mut bucket = drip(1_000, 50, now);
        let marks: Vec<u64> = (0..20).map(|_| sent(&mut bucket, 47 * MICRO, now)).collect();
        let later = now.after(Duration::from_millis(300));
        let answered = |bucket: &mut Bucket, mark, left: u64| {
            bucket.land(mark, later);
            bucket.settle(mark, 47 * MICRO, 2 * MICRO, later);
            bucket.observe(&Hint { remaining: Some(left * MICRO), ..Hint::default() }, mark, later);
        };
        for (nth, mark) in marks[1..19].iter().enumerate() {
            answered(&mut bucket, *mark, 1_000 - 2 * (nth as u64 + 1));
        }
        answered(&mut bucket, marks[0], 962);
        let level = |bucket: &Bucket| match &bucket.budget {
            Budget::Drip(paced) => paced.available(later) / MICRO,
            _ => 0,
        };
        assert_eq!(level(&bucket), 962 - 18 * 2 - 47, "eighteen cost 2 each, one is under way");
        answered(&mut bucket, marks[19], 960);
        assert_eq!(level(&bucket), 960, "none is under way: its own figure stands");
        sent(&mut bucket, MICRO, later);
        assert!(bucket.corrections.is_empty(), "they are of no use any more");
    }

    /// LIM-14, LIM-23: a burst against an upstream that holds the requested cost of running calls, as Shopify does, takes
    /// hardly longer than its budget: what was counted twice while calls were under way comes back with the answers.
    #[test]
    fn lim_14_lim_23_a_burst_takes_as_long_as_the_budget_needs() {
        const REQUESTED: u64 = 60 * MICRO;
        const ACTUAL: u64 = 31 * MICRO;
        let start = Time::from_millis(10_000);
        let (mut ours, mut theirs) =
            (drip(1_000, 50, start), Drip::full(1_000 * MICRO, 50 * MICRO, 0, start));
        let (mut now, mut left, mut running) = (start, 64, VecDeque::new());
        while left > 0 || !running.is_empty() {
            while left > 0 && ours.ready(REQUESTED, now) == Readiness::Now {
                let mark = sent(&mut ours, REQUESTED, now);
                assert!(theirs.refreshed(now).level >= REQUESTED, "it would be throttled");
                theirs.take(REQUESTED, now);
                // The later ones are answered first, now and then.
                let takes = Duration::from_millis(if left % 3 == 0 { 900 } else { 300 });
                running.push_back((now.after(takes), mark));
                left -= 1;
            }
            running.make_contiguous().sort_unstable();
            let next = running.front().map(|(at, _)| *at);
            let granted = match ours.ready(REQUESTED, now) {
                Readiness::At(at) if left > 0 => Some(at),
                _ => None,
            };
            now = next.into_iter().chain(granted).min().unwrap();
            while let Some((_, mark)) = running.front().copied().filter(|(at, _)| *at <= now) {
                running.pop_front();
                theirs.give_back(REQUESTED - ACTUAL, now);
                let remaining = Some(theirs.refreshed(now).level);
                ours.land(mark, now);
                ours.settle(mark, REQUESTED, ACTUAL, now);
                ours.observe(&Hint { remaining, ..Hint::default() }, mark, now);
            }
        }
        let needed = Duration::from_millis((64 * 31 - 1_000) * 1_000 / 50);
        let took = now.since(start);
        assert!(took < needed.mul_f64(1.15), "{took:?} where {needed:?} are needed");
    }

    /// LIM-14: what was granted and has not left is held aside, for as long as that takes; of a
    /// window it takes when it leaves, and the window begins then.
    #[test]
    fn lim_14_a_grant_is_held_aside_until_its_call_leaves() {
        let now = Time::from_millis(10_000);
        let later = now.after(Duration::from_secs(60));
        let window = Shape::Window { limit: 5 * MICRO, period: Duration::from_secs(2) };
        for mut bucket in [drip(5, 10, now), Bucket::new(window, now).unwrap()] {
            let marks = [bucket.take(MICRO), bucket.take(3 * MICRO)];
            for at in [now, later] {
                assert_eq!(bucket.ready(MICRO, at), Readiness::Now);
                assert_eq!(bucket.ready(2 * MICRO, at), Readiness::AfterAnswer, "all five may arrive now");
            }
            bucket.unsend(marks[0], MICRO, later);
            assert_eq!(bucket.ready(2 * MICRO, later), Readiness::Now, "it never left");
            bucket.send(marks[1], later);
            assert_eq!(bucket.ready(2 * MICRO, later), Readiness::Now);
            let Readiness::At(at) = bucket.ready(3 * MICRO, later) else { panic!("only two are left") };
            assert!(at > later, "it refills from when the call left");
        }
    }

    /// LIM-25: a gate that an answer closes stays closed until then, and opens for one call first.
    #[test]
    fn lim_25_a_gate_is_closed_by_what_is_said() {
        let now = Time::from_millis(10_000);
        let mut gate = Bucket::new(Shape::Gate, now).unwrap();
        let mark = gate.take(MICRO);
        let until = now.after(Duration::from_secs(9));
        let says = |at| Hint { reset_at: Some(at), ..Hint::default() };
        gate.observe(&says(until), mark, now);
        gate.observe(&says(now), mark, now);
        gate.land(mark, now);
        assert_eq!(gate.ready(MICRO, now), Readiness::At(until));
        assert_eq!(gate.ready(MICRO, until), Readiness::Now);
        gate.take(MICRO);
        assert_eq!(gate.ready(MICRO, until), Readiness::AfterAnswer);
    }

    /// LIM-8: a new rate takes effect at once.
    #[test]
    fn lim_8_a_learned_rate_takes_effect_at_once() {
        let now = Time::from_millis(10_000);
        let mut bucket = drip(10, 1, now);
        let mark = sent(&mut bucket, 10 * MICRO, now);
        let hint = Hint { refill_per_s: Some(100 * MICRO), capacity: Some(200 * MICRO), ..Hint::default() };
        bucket.observe(&hint, mark, now);
        let Shape::Drip { capacity, refill_per_s, .. } = bucket.shape() else { panic!() };
        assert_eq!((capacity, refill_per_s), (200 * MICRO, 100 * MICRO));
    }

    #[test]
    fn the_margin_is_a_quarter_at_most() {
        assert_eq!(usual_margin(20 * MICRO, 100 * MICRO), 2 * MICRO);
        assert_eq!(usual_margin(40 * MICRO, 2 * MICRO), MICRO / 25);
        assert_eq!(usual_margin(MICRO, 1_000 * MICRO), MICRO / 4);
    }
}
