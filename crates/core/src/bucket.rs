//! A budget that refills, behind one interface whatever its shape: when can this be taken, take it, give it back,
//! learn from an answer, close and open. Arithmetic only: who waits for it is the model's.

pub mod drip;
pub mod gate;
mod grant_time;
pub mod paced;
pub mod window;

use std::collections::VecDeque;
use std::time::Duration;

use drip::Drip;
use gate::Gate;
use paced::PacedDrip;
use window::Window;

use crate::fact::LimitShape;
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
    Drip(PacedDrip),
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
    pub unsent: VecDeque<UnsentGrant>,
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
pub struct UnsentGrant {
    /// Which.
    pub mark: u64,
    /// What it takes, in micro-tokens.
    pub cost: u64,
}

/// How long two clocks may differ by: what refills in this time is left alone.
const MARGIN: Duration = Duration::from_millis(20);

/// The usual margin of a drip: what refills in 20 ms, at most a quarter of what it holds.
#[must_use]
pub fn default_margin(capacity: u64, refill_per_s: u64) -> u64 {
    let refilled = u128::from(refill_per_s) * MARGIN.as_micros() / 1_000_000;
    u64::try_from(refilled).unwrap_or(u64::MAX).min(capacity / 4)
}

impl Bucket {
    /// A full one of this shape; `None` for a cap, which is no bucket.
    #[must_use]
    pub fn new(shape: LimitShape, now: Time) -> Option<Self> {
        let budget = match shape {
            LimitShape::Drip { capacity, refill_per_s, margin } => {
                Budget::Drip(PacedDrip::new(Drip::full(capacity, refill_per_s, margin, now)))
            }
            LimitShape::Window { limit, period } => Budget::Window(Window::new(limit, period)),
            LimitShape::Gate => Budget::Gate(Gate::default()),
            LimitShape::Cap { .. } => return None,
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
    pub const fn shape(&self) -> LimitShape {
        match &self.budget {
            Budget::Drip(PacedDrip { drip: d, .. }) => {
                LimitShape::Drip { capacity: d.capacity, refill_per_s: d.refill_per_s, margin: d.margin }
            }
            Budget::Window(w) => LimitShape::Window { limit: w.limit, period: w.period },
            Budget::Gate(_) => LimitShape::Gate,
        }
    }

    /// Takes on another shape from `now` on. What was spent of the old one stays spent where that can be said.
    pub fn reshape(&mut self, shape: LimitShape, now: Time) {
        match (&mut self.budget, shape) {
            (Budget::Drip(paced), LimitShape::Drip { capacity, refill_per_s, margin }) => {
                paced.reshape(capacity, refill_per_s, margin, now);
            }
            (Budget::Window(window), LimitShape::Window { limit, period }) => {
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
            self.unsent.push_back(UnsentGrant { mark: self.granted, cost });
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
    pub fn mark_sent(&mut self, mark: u64, now: Time) {
        let Some(grant) = self.release(mark) else { return };
        match &mut self.budget {
            Budget::Drip(paced) => paced.take(grant.cost, mark, now),
            Budget::Window(window) => window.take(grant.cost, now),
            Budget::Gate(_) => {}
        }
    }

    fn release(&mut self, mark: u64) -> Option<UnsentGrant> {
        let place = self.unsent.iter().position(|grant| grant.mark == mark)?;
        self.unsent.remove(place)
    }

    /// The call of the grant `mark` is no longer under way: it was answered, or nobody waits for it any more.
    pub fn mark_finished(&mut self, mark: u64, now: Time) {
        self.mark_sent(mark, now);
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Budget::Drip(paced) = &mut self.budget {
            paced.mark_finished(mark, now);
        }
    }

    /// The call of the grant `mark` was not sent: what was taken for it is put back.
    pub fn return_unsent(&mut self, mark: u64, cost: u64, now: Time) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.correct(Correction { mark, reserved: cost, actual: 0 });
        if self.release(mark).is_some() {
            return;
        }
        match &mut self.budget {
            Budget::Drip(paced) => paced.return_unsent(mark, cost, now),
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
                    paced.reshape(capacity, refill_per_s, default_margin(capacity, refill_per_s), now);
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
mod tests;
