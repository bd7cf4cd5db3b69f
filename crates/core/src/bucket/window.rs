//! A budget that refills all at once, for upstreams that work that way. Before anything is known
//! one call goes ahead alone; the rest follow what it learned.

use std::time::Duration;

use crate::bucket::Readiness;
use crate::time::Time;

/// The state of a window, in micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The budget of one window; 0 while it is unknown.
    pub limit: u64,
    /// The length of a window, if it was configured or assumed: the first call starts a window of
    /// this length.
    pub period: Duration,
    /// The longest time until its end that a response reported: about its length. Only estimates
    /// use it, because the response to the first call says when the window ends.
    pub observed: Duration,
    /// What is left of the current window.
    pub remaining: u64,
    /// When the next one starts.
    pub reset_at: Time,
    /// Whether any of this has been learned or set.
    pub known: bool,
}

/// Added to a reset time, so that our clock is never ahead of the upstream's.
pub(super) const RESET_MARGIN: Duration = Duration::from_millis(20);

impl Window {
    /// Creates a window with these figures; a limit of 0 means unknown.
    #[must_use]
    pub const fn new(limit: u64, period: Duration) -> Self {
        Self {
            limit,
            period,
            observed: Duration::ZERO,
            remaining: limit,
            reset_at: Time::ZERO,
            known: limit > 0,
        }
    }

    /// The length of a window, as far as anything is known of it; zero while nothing is.
    #[must_use]
    pub const fn length(&self) -> Duration {
        if self.period.is_zero() { self.observed } else { self.period }
    }

    /// The state at `now`: after the reset the full budget is back.
    #[must_use]
    pub fn refreshed(self, now: Time) -> Self {
        if self.known && self.reset_at != Time::ZERO && now >= self.reset_at.after(RESET_MARGIN) {
            return Self { remaining: self.limit, reset_at: Time::ZERO, ..self };
        }
        self
    }

    /// When `cost` can be taken in addition to what is reserved.
    #[must_use]
    pub fn ready(&self, cost: u64, held: u64, now: Time, in_flight: u32) -> Readiness {
        if !self.known {
            return if in_flight == 0 { Readiness::Now } else { Readiness::AfterAnswer };
        }
        if cost > self.limit {
            return Readiness::Never;
        }
        let (fresh, needed) = (self.refreshed(now), cost.saturating_add(held));
        if fresh.remaining >= needed {
            return Readiness::Now;
        }
        if needed > self.limit {
            return Readiness::AfterAnswer;
        }
        if fresh.reset_at == Time::ZERO {
            // The time of the next window is unknown: send one call to find out.
            return if in_flight == 0 { Readiness::Now } else { Readiness::AfterAnswer };
        }
        Readiness::At(fresh.reset_at.after(RESET_MARGIN))
    }

    /// Takes `cost`; the first call of a window starts it.
    pub fn take(&mut self, cost: u64, now: Time) {
        *self = self.refreshed(now);
        self.remaining = self.remaining.saturating_sub(cost);
        if self.known && self.reset_at == Time::ZERO && !self.period.is_zero() {
            self.reset_at = now.after(self.period);
        }
    }

    /// Puts back what was not sent.
    pub fn give_back(&mut self, amount: u64, now: Time) {
        *self = self.refreshed(now);
        self.remaining = self.remaining.saturating_add(amount).min(self.limit);
    }

    /// Learns from a response. A later reset means a new window; within the same window only a
    /// lower figure is adopted. Returns whether the response is the first one of its window.
    pub fn observe(
        &mut self,
        remaining: Option<u64>,
        limit: Option<u64>,
        reset_at: Option<Time>,
        now: Time,
    ) -> bool {
        let fresh = self.refreshed(now);
        let first = !fresh.known;
        *self = fresh;
        if let Some(limit) = limit {
            self.limit = limit;
            self.remaining = self.remaining.min(limit);
            self.known = limit > 0;
        }
        if let Some(at) = reset_at {
            self.observed = self.observed.max(at.since(now));
        }
        let newer = reset_at.is_some_and(|at| at > fresh.reset_at.after(RESET_MARGIN));
        if let Some(at) = reset_at
            && (newer || first)
        {
            self.reset_at = at;
        }
        let renewed = first || (newer && fresh.reset_at == Time::ZERO);
        if let Some(remaining) = remaining {
            self.remaining = if renewed { remaining } else { self.remaining.min(remaining) };
        }
        renewed
    }

    /// Raises what is left to the upstream's figure, once it has surely counted every call.
    pub fn raise_to(&mut self, remaining: u64, now: Time) {
        *self = self.refreshed(now);
        if self.reset_at != Time::ZERO {
            self.remaining = self.remaining.max(remaining).min(self.limit);
        }
    }

    /// Learns from a refusal: nothing is left until `until`, and the next window begins then,
    /// whatever was assumed. A window whose beginning is known is as long as that shows.
    pub fn exhaust(&mut self, until: Time, now: Time) {
        *self = self.refreshed(now);
        if !self.known {
            return;
        }
        let is_used = self.remaining < self.limit && self.reset_at != Time::ZERO;
        if is_used && !self.period.is_zero() {
            self.period = until.since(self.reset_at.before(self.period));
        }
        (self.remaining, self.reset_at) = (0, until);
    }

    /// Makes the whole budget available, on behalf of an operator.
    pub fn refill(&mut self) {
        (self.remaining, self.reset_at) = (self.limit, Time::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::MICRO;

    #[test]
    fn one_goes_ahead_and_the_rest_follow_what_it_learned() {
        let now = Time::from_millis(1_000);
        let mut window = Window::new(0, Duration::ZERO);
        assert_eq!(window.ready(MICRO, 0, now, 0), Readiness::Now);
        window.take(MICRO, now);
        assert_eq!(window.ready(MICRO, 0, now, 1), Readiness::AfterAnswer);
        let reset = now.after(Duration::from_secs(2));
        window.observe(Some(4 * MICRO), Some(5 * MICRO), Some(reset), now);
        for _ in 0..4 {
            assert_eq!(window.ready(MICRO, 0, now, 0), Readiness::Now);
            window.take(MICRO, now);
        }
        assert_eq!(window.ready(MICRO, 0, now, 0), Readiness::At(reset.after(RESET_MARGIN)));
        assert_eq!(window.ready(MICRO, 0, reset.after(RESET_MARGIN), 0), Readiness::Now);
    }

    /// OPS-24: the response to the first call of a window shows how long it is; those to later
    /// calls and refusals change nothing, and no window starts by itself.
    #[test]
    fn ops_24_the_first_answer_shows_how_long_a_window_is() {
        let now = Time::from_millis(1_000);
        let reset = now.after(Duration::from_secs(9));
        let mut window = Window::new(0, Duration::ZERO);
        window.observe(Some(4 * MICRO), Some(5 * MICRO), Some(reset), now);
        assert_eq!(window.length(), Duration::from_secs(9));
        let later = now.after(Duration::from_secs(5));
        window.observe(Some(3 * MICRO), None, Some(reset), later);
        window.exhaust(later.after(Duration::from_secs(70)), later);
        assert_eq!(window.length(), Duration::from_secs(9));
        let fresh = window.reset_at.after(RESET_MARGIN);
        window.take(MICRO, fresh);
        assert_eq!(window.reset_at, Time::ZERO);
    }

    /// LIM-23: a late response from the same window never raises what is left.
    #[test]
    fn lim_23_late_answers_only_lower() {
        let now = Time::from_millis(1_000);
        let reset = Some(now.after(Duration::from_secs(9)));
        let mut window = Window::new(5 * MICRO, Duration::from_secs(9));
        window.take(3 * MICRO, now);
        window.observe(Some(4 * MICRO), None, reset, now);
        assert_eq!(window.remaining, 2 * MICRO);
        window.observe(Some(MICRO), None, reset, now);
        assert_eq!(window.remaining, MICRO);
    }

    /// LIM-12: what a refusal says replaces what was assumed: neither the rest of an assumed window
    /// nor its length outlasts it. The other way round, a longer wait is a longer window.
    #[test]
    fn lim_12_a_refusal_ends_an_assumed_window() {
        let (now, period) = (Time::from_millis(1_000), Duration::from_secs(48 * 3_600));
        for wait in [3, 3 * 86_400].map(Duration::from_secs) {
            let mut window = Window::new(250 * MICRO, period);
            window.take(MICRO, now);
            let later = now.after(Duration::from_secs(10));
            let until = later.after(wait);
            window.exhaust(until, later);
            assert_eq!(window.ready(MICRO, 0, later, 0), Readiness::At(until.after(RESET_MARGIN)));
            assert_eq!(window.period, Duration::from_secs(10) + wait);
            let open = until.after(RESET_MARGIN);
            assert_eq!(window.ready(MICRO, 0, open, 0), Readiness::Now);
        }
        let mut unused = Window::new(2 * MICRO, period);
        unused.exhaust(now.after(Duration::from_secs(3)), now);
        assert_eq!(unused.period, period, "the calls of others say nothing about its length");
        unused.refill();
        assert_eq!(unused.ready(2 * MICRO, 0, now, 0), Readiness::Now);
    }
}
