//! A circuit breaker as a meter: it admits calls to a provider while the provider is well. Failures
//! in a row cool it for longer and longer; after a cooldown one call goes first as a probe, and
//! while calls succeed the number allowed at once doubles. Arithmetic only: the model keeps track
//! of who waits for it, and decides which outcomes are the provider's own fault.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_core::Time;
//! use tidegate_core::breaker::{Breaker, BreakerReport, CooldownLadder};
//! use tidegate_core::bucket::Readiness;
//!
//! let mut breaker = Breaker::new(CooldownLadder::default());
//! let now = Time::from_millis(5_000);
//! let (first, second) = (breaker.take(), breaker.take());
//! breaker.report(first, BreakerReport::Failed, now);
//! // The second call failed in the same outage, which counts once.
//! breaker.report(second, BreakerReport::Failed, now);
//! assert_eq!(breaker.ready(now), Readiness::At(now.after(Duration::from_secs(10))));
//! ```

use std::time::Duration;

use crate::bucket::Readiness;
use crate::time::{Time, micros};

/// The number of steps of a ladder.
const STEPS: usize = 4;
/// Failures are forgotten when none followed for this long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);
/// Above this many calls at once the breaker is fully closed again.
const CLOSED_ABOVE: u32 = 1_024;

/// How long a breaker cools after one, two, three, and four or more failures in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CooldownLadder(pub [Duration; STEPS]);

impl Default for CooldownLadder {
    fn default() -> Self {
        Self([10, 30, 60, 120].map(Duration::from_secs))
    }
}

impl CooldownLadder {
    /// The cooldown after this many failures in a row.
    #[must_use]
    pub fn cooldown(&self, failures: u32) -> Duration {
        let step = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
        self.0[step.min(STEPS - 1)]
    }
}

/// What the outcome of a call says about its provider. Outcomes that say nothing are not reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerReport {
    /// The provider accepted a job, which it has yet to finish.
    Accepted,
    /// The call, or the job, succeeded.
    Succeeded,
    /// It failed by the provider's own fault.
    Failed,
    /// The provider asked to wait until then.
    Throttled {
        /// The end of the wait.
        until: Time,
    },
}

/// The state of a breaker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Its cooldowns.
    pub ladder: CooldownLadder,
    /// Failures in a row; all failures of one outage count once.
    pub failures: u32,
    /// When the last of them was counted.
    pub failed_at: Time,
    /// The end of the current cooldown.
    pub open_until: Time,
    /// How often it opened, wrapping. Each grant records it, so that the report on an older call is
    /// recognized as part of the outage that opened the breaker.
    pub openings: u64,
    /// How long operations took lately, from pick to success; zero when that is not known.
    pub latency: Duration,
    /// The number of calls allowed at once; 0 means any number.
    pub at_once: u32,
    /// Calls granted since it last opened that have not been answered. Derived from the claims, so
    /// a snapshot does not keep it.
    pub in_flight: u32,
}

impl Breaker {
    /// Creates a closed breaker: it admits every call.
    #[must_use]
    pub const fn new(ladder: CooldownLadder) -> Self {
        Self {
            ladder,
            failures: 0,
            failed_at: Time::ZERO,
            open_until: Time::ZERO,
            openings: 0,
            latency: Duration::ZERO,
            at_once: 0,
            in_flight: 0,
        }
    }

    /// When a call is admitted, if no other one is.
    #[must_use]
    pub fn ready(&self, now: Time) -> Readiness {
        if self.open_until > now {
            Readiness::At(self.open_until)
        } else if self.at_once == 0 || self.in_flight < self.at_once {
            Readiness::Now
        } else {
            Readiness::AfterAnswer
        }
    }

    /// The number of failures in a row that count now.
    #[must_use]
    pub fn failures(&self, now: Time) -> u32 {
        if now.since(self.failed_at) < FORGOTTEN_AFTER { self.failures } else { 0 }
    }

    /// Whether its last outage was so long ago that the next failure begins another one.
    #[must_use]
    pub fn is_outage_over(&self, now: Time) -> bool {
        now.since(self.open_until) >= FORGOTTEN_AFTER
    }

    /// Whether it behaves like a new one.
    #[must_use]
    pub fn is_at_rest(&self, now: Time) -> bool {
        self.failures(now) == 0 && self.open_until <= now && self.at_once == 0 && self.in_flight == 0
    }

    /// Admits a call and returns the mark of this grant.
    pub const fn take(&mut self) -> u64 {
        self.in_flight += 1;
        self.openings
    }

    /// Records that the call of the grant `mark` is no longer in flight: it was answered, or no one
    /// waits for it any more.
    pub const fn release(&mut self, mark: u64) {
        if self.is_current(mark) {
            self.in_flight = self.in_flight.saturating_sub(1);
        }
    }

    /// Learns from the outcome of the call of the grant `mark`. What a call granted before the last
    /// opening reports is part of that outage: it changes nothing, unless the provider asks for a
    /// longer wait.
    pub fn report(&mut self, mark: u64, report: BreakerReport, now: Time) {
        match report {
            BreakerReport::Throttled { until } if self.is_current(mark) || until > self.open_until => {
                self.open(until);
            }
            _ if !self.is_current(mark) => {}
            BreakerReport::Failed => {
                self.failures = self.failures(now).saturating_add(1);
                self.failed_at = now;
                self.open(now.after(self.ladder.cooldown(self.failures)));
            }
            BreakerReport::Succeeded => {
                self.failures = 0;
                self.widen();
            }
            BreakerReport::Accepted => self.widen(),
            BreakerReport::Throttled { .. } => {}
        }
    }

    /// Learns how long an operation took: an eighth of the difference counts.
    pub fn observe_latency(&mut self, took: Duration) {
        let (known, took) = (micros(self.latency), micros(took).max(1));
        let next = if known == 0 { took } else { known - known / 8 + took / 8 };
        self.latency = Duration::from_micros(next.max(1));
    }

    /// Ends the cooldown on behalf of an operator: one call goes first, as when it had passed. The
    /// failures still count, as nothing shows that the provider is well.
    pub fn end_cooldown(&mut self, now: Time) {
        self.open_until = self.open_until.min(now);
    }

    /// Whether the grant `mark` was given since the last opening.
    #[must_use]
    pub const fn is_current(&self, mark: u64) -> bool {
        mark == self.openings
    }

    /// Opens it until then at least; afterwards a probe goes first. A later time is never
    /// shortened.
    fn open(&mut self, until: Time) {
        self.open_until = self.open_until.max(until);
        self.openings = self.openings.wrapping_add(1);
        (self.at_once, self.in_flight) = (1, 0);
    }

    const fn widen(&mut self) {
        if self.at_once > 0 {
            self.at_once *= 2;
            if self.at_once > CLOSED_ABOVE {
                self.at_once = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests;
