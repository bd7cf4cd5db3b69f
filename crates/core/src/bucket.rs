//! A budget that refills, behind one interface for every shape: when can a cost be taken, take it,
//! put it back, learn from a response, close and reopen. Arithmetic only: the model keeps track of
//! who waits for it.

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

/// When a cost can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// Immediately.
    Now,
    /// Not before this time.
    At(Time),
    /// After a call in flight completes.
    AfterAnswer,
    /// Never: it exceeds the capacity.
    Never,
}

impl Readiness {
    /// Whether a call cannot start before this deadline, as things stand.
    #[must_use]
    pub fn is_past(self, deadline: Time) -> bool {
        match self {
            Self::Now | Self::AfterAnswer => false,
            Self::At(at) => at >= deadline,
            Self::Never => true,
        }
    }
}

/// The kind of budget, with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Refills evenly.
    Drip(PacedDrip),
    /// Refills all at once.
    Window(Window),
    /// Closed only when the upstream says so.
    Gate(Gate),
}

/// A budget, with the state common to all shapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The budget.
    pub budget: Budget,
    /// The time until which the upstream asked for quiet.
    pub frozen_until: Time,
    /// The total ever granted, wrapping. Each grant records it, so that a late response can be
    /// ordered.
    pub granted: u64,
    /// The number of consecutive throttled responses.
    pub throttles: u32,
    /// Calls in flight. Derived from the claims, so a snapshot does not keep it.
    pub in_flight: u32,
    /// Grants whose calls have not been sent, in the order of granting. They stay reserved: nothing
    /// says when they will reach the upstream, so they are deducted from the budget when they are
    /// sent.
    pub unsent: VecDeque<UnsentGrant>,
    /// The actual costs of completed calls, while others are in flight: a response to an earlier
    /// grant does not include them. A snapshot does not keep them: without them the budget is
    /// believed to be smaller, never larger.
    pub corrections: VecDeque<Correction>,
    /// The lowest figure that responses reported in the current window; none when a call got no
    /// response. A snapshot does not keep it, with the same effect.
    pub reported: Option<u64>,
}

/// The actual cost of a grant, in micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The mark of the grant.
    pub mark: u64,
    /// The amount granted.
    pub reserved: u64,
    /// The actual cost.
    pub actual: u64,
}

/// The maximum number of corrections kept; the oldest is dropped first.
const CORRECTIONS_MAX: usize = 1_024;

/// A grant whose call has not been sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnsentGrant {
    /// The mark of the grant.
    pub mark: u64,
    /// Its cost, in micro-tokens.
    pub cost: u64,
}

/// How far two clocks may differ: what refills in this time is never granted.
const MARGIN: Duration = Duration::from_millis(20);

/// The default margin of a drip: what refills in 20 ms, at most a quarter of its capacity.
#[must_use]
pub fn default_margin(capacity: u64, refill_per_s: u64) -> u64 {
    let refilled = u128::from(refill_per_s) * MARGIN.as_micros() / 1_000_000;
    u64::try_from(refilled).unwrap_or(u64::MAX).min(capacity / 4)
}

impl Bucket {
    /// Creates a full bucket of this shape; `None` for a cap or a breaker, which is no bucket.
    #[must_use]
    pub fn new(shape: LimitShape, now: Time) -> Option<Self> {
        let budget = match shape {
            LimitShape::Drip { capacity, refill_per_s, margin } => {
                Budget::Drip(PacedDrip::new(Drip::full(capacity, refill_per_s, margin, now)))
            }
            LimitShape::Window { limit, period } => Budget::Window(Window::new(limit, period)),
            LimitShape::Gate => Budget::Gate(Gate::default()),
            LimitShape::Cap { .. } | LimitShape::Breaker { .. } => return None,
        };
        Some(Self {
            budget,
            frozen_until: Time::ZERO,
            granted: 0,
            throttles: 0,
            in_flight: 0,
            unsent: VecDeque::new(),
            corrections: VecDeque::new(),
            reported: None,
        })
    }

    /// The current shape.
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

    /// Changes the shape from `now` on. What was spent of the old budget stays spent where that is
    /// well defined.
    pub fn reshape(&mut self, shape: LimitShape, now: Time) {
        match (&mut self.budget, shape) {
            (Budget::Drip(paced), LimitShape::Drip { capacity, refill_per_s, margin }) => {
                paced.reshape(capacity, refill_per_s, margin, now);
            }
            (Budget::Window(window), LimitShape::Window { limit, period }) if limit > 0 => {
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

    /// Whether it is full, open and has no call in flight.
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

    /// When `cost` can be taken, if no one else takes any.
    #[must_use]
    pub fn ready(&self, cost: u64, now: Time) -> Readiness {
        let budget = match &self.budget {
            Budget::Drip(paced) => paced.ready(cost, self.held(), now),
            Budget::Window(window) => window.ready(cost, self.held(), now, self.in_flight),
            Budget::Gate(gate) => gate.ready(self.in_flight),
        };
        if self.frozen_until > now { budget.max(Readiness::At(self.frozen_until)) } else { budget }
    }

    /// The amount reserved for calls that have not been sent.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.unsent.iter().map(|grant| grant.cost).sum()
    }

    /// Grants `cost` and returns the mark of this grant. It stays reserved until its call is sent.
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

    /// Whether the call of the grant `mark` has not been sent, as far as known.
    #[must_use]
    pub fn is_unsent(&self, mark: u64) -> bool {
        self.unsent.iter().any(|grant| grant.mark == mark)
    }

    /// Records that the call of the grant `mark` is sent now: its cost is on its way to the
    /// upstream.
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

    /// Records that the call of the grant `mark` is no longer in flight: it completed, or no one
    /// waits for it any more.
    pub fn mark_finished(&mut self, mark: u64, now: Time) {
        self.mark_sent(mark, now);
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Budget::Drip(paced) = &mut self.budget {
            paced.mark_finished(mark, now);
        }
    }

    /// Puts back what was taken for the grant `mark`, whose call was not sent.
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

    /// Corrects the grant `mark` of `reserved` by its actual cost.
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

    /// What calls granted after `mark` may have taken: the actual cost of completed ones, the full
    /// grant of any other. What has not been sent is reserved anyway.
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

    /// Learns from the response to the grant marked `mark`. The upstream may not have counted calls
    /// sent after it, so they are deducted from the upstream's figure; the lower of that and ours
    /// counts. Only the response to the newest grant, with nothing else in flight, is certainly not
    /// out of order: then the upstream's figure is used as it is, because ours may have counted
    /// calls that the upstream had counted too.
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
            Budget::Window(window) => {
                let is_first = window.observe(remaining, hint.capacity, hint.reset_at, now);
                // An upstream's figure only falls within a window. With nothing in flight the
                // lowest one has counted every call, and ours may have counted some of them twice.
                let earlier = if is_first { None } else { self.reported };
                self.reported = hint.remaining.map(|left| earlier.map_or(left, |known| known.min(left)));
                if let Some(left) = self.reported.filter(|_| self.in_flight == 0 && self.frozen_until <= now)
                {
                    window.raise_to(left, now);
                }
            }
            // A call that failed for good may report that no other call can succeed before then.
            Budget::Gate(gate) => {
                if let Some(until) = hint.reset_at.filter(|until| *until > now) {
                    gate.close();
                    self.frozen_until = self.frozen_until.max(until);
                }
            }
        }
    }

    /// Records that a call ended without a report of what is left.
    pub const fn miss_report(&mut self) {
        self.reported = None;
    }

    /// Records a successful call.
    pub const fn succeed(&mut self) {
        self.throttles = 0;
        if let Budget::Gate(gate) = &mut self.budget {
            gate.widen();
        }
    }

    /// Closes the bucket until `until`, as the upstream asked. A later time is never shortened.
    /// Afterwards `cost` can be taken once, and the rest refills from there; of a window, all of
    /// it.
    pub fn freeze(&mut self, until: Time, cost: u64, now: Time) {
        self.throttles = self.throttles.saturating_add(1);
        self.frozen_until = self.frozen_until.max(until);
        let until = self.frozen_until;
        match &mut self.budget {
            Budget::Drip(paced) => paced.freeze(until, cost.saturating_add(paced.drip.margin), now),
            Budget::Window(window) => window.exhaust(until, now),
            Budget::Gate(gate) => gate.close(),
        }
        self.reported = None;
    }

    /// Reopens the bucket on behalf of an operator.
    pub fn thaw(&mut self, now: Time) {
        self.frozen_until = Time::ZERO;
        self.throttles = 0;
        match &mut self.budget {
            Budget::Drip(paced) => paced.drip.thaw(now),
            Budget::Window(window) => window.refill(),
            Budget::Gate(_) => {}
        }
        self.reported = None;
    }
}

#[cfg(test)]
mod tests;
