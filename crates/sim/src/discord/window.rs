//! A limit as Discord counts it: a window that begins with its first call and starts afresh when it
//! is over. It knows neither whose it is nor what a refusal looks like.

use std::time::Duration;

use serde::Serialize;
use tidegate_core::Time;
use tidegate_core::time::millis_up;

/// A number of calls per window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    /// Calls.
    pub calls: u64,
    /// The length of the window.
    pub window: Duration,
}

impl WindowLimit {
    /// Creates a limit from calls and milliseconds.
    #[must_use]
    pub const fn new(calls: u64, window_ms: u64) -> Self {
        Self { calls, window: Duration::from_millis(window_ms) }
    }
}

impl Serialize for WindowLimit {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Plain {
            calls: u64,
            window_ms: u64,
        }
        Plain { calls: self.calls, window_ms: millis_up(self.window) }.serialize(serializer)
    }
}

/// The usage of a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCounter {
    began: Time,
    used: u64,
}

/// The decision about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDecision {
    /// Whether it is admitted.
    pub allowed: bool,
    /// The most calls.
    pub limit: u64,
    /// The calls left.
    pub remaining: u64,
    /// When the window ends.
    pub reset_after: Duration,
}

impl WindowCounter {
    /// Takes one call if there is one. A refused call does not count.
    pub fn take(&mut self, figure: WindowLimit, now: Time) -> WindowDecision {
        if self.is_over(figure, now) {
            *self = Self { began: now, used: 0 };
        }
        let allowed = self.used < figure.calls;
        self.used += u64::from(allowed);
        WindowDecision {
            allowed,
            limit: figure.calls,
            remaining: figure.calls.saturating_sub(self.used),
            reset_after: self.began.after(figure.window).since(now),
        }
    }

    /// Returns the decision that a call would get, without taking one.
    #[must_use]
    pub fn peek(mut self, figure: WindowLimit, now: Time) -> WindowDecision {
        self.take(figure, now)
    }

    /// Returns whether the window is over, so that it can be dropped.
    #[must_use]
    pub fn is_over(&self, figure: WindowLimit, now: Time) -> bool {
        self.used == 0 || self.began.after(figure.window) <= now
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// LIM-6: whatever comes when, no window grants more than its calls, the reported wait is
        /// exact, and the reported remainder will be granted.
        #[test]
        fn lim_6_a_window_is_exact(calls in 1_u64..6, window in 1_u64..50, gaps in prop::collection::vec(0_u64..20, 1..80)) {
            let figure = WindowLimit::new(calls, window);
            let (mut state, mut now) = (WindowCounter::default(), Time::from_millis(1_000));
            let mut granted: Vec<Time> = Vec::new();
            for gap in gaps {
                now = now.after(Duration::from_millis(gap));
                let ruling = state.take(figure, now);
                prop_assert!(ruling.reset_after <= figure.window && ruling.remaining < calls.max(1));
                if ruling.allowed {
                    granted.push(now);
                    let mut copy = state;
                    prop_assert!((0..ruling.remaining).all(|_| copy.take(figure, now).allowed));
                    prop_assert!(!copy.take(figure, now).allowed);
                } else {
                    let open = now.after(ruling.reset_after);
                    prop_assert!(!state.peek(figure, open.before(Duration::from_micros(1))).allowed);
                    prop_assert!(state.peek(figure, open).allowed);
                }
            }
            // Twice the calls fit around the end of a window, and no more in any stretch of one
            // window's length.
            for (at, first) in granted.iter().enumerate() {
                let inside = granted[at..].iter().filter(|time| time.since(*first) < figure.window).count() as u64;
                prop_assert!(inside <= 2 * calls, "{inside}");
            }
            let whole = granted.last().unwrap().since(granted[0]).as_millis() as u64 / window + 1;
            prop_assert!(granted.len() as u64 <= whole * calls);
        }
    }

    #[test]
    fn a_window_begins_with_its_first_call() {
        let (figure, at) = (WindowLimit::new(2, 10), Time::from_millis);
        let mut window = WindowCounter::default();
        let mut take = |ms| {
            let ruling = window.take(figure, at(ms));
            (ruling.allowed, ruling.remaining, ruling.reset_after.as_millis())
        };
        assert_eq!(take(100), (true, 1, 10));
        assert_eq!(take(109), (true, 0, 1));
        assert_eq!(take(109), (false, 0, 1));
        assert_eq!(take(110), (true, 1, 10));
        assert_eq!(take(500), (true, 1, 10));
    }
}
