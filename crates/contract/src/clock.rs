//! A manual clock, so that a test can be at any moment without waiting for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_core::Time;
use tidegate_store::Clock;

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Creates a clock that shows `time`.
    #[must_use]
    pub fn at(time: Time) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(time.as_micros())))
    }

    /// Creates a clock that shows a realistic time: some day in 2026.
    #[must_use]
    pub fn today() -> Arc<Self> {
        Self::at(Time::from_millis(1_780_000_000_000))
    }

    /// Sets the clock to `time`, which may be earlier than before.
    pub fn set(&self, time: Time) {
        self.0.store(time.as_micros(), Ordering::SeqCst);
    }

    /// Advances the clock, and returns the new time.
    pub fn advance(&self, by: Duration) -> Time {
        let later = |micros| Some(Time::from_micros(micros).after(by).as_micros());
        let before = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
        Time::from_micros(before.unwrap_or_else(|same| same)).after(by)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_micros(self.0.load(Ordering::SeqCst))
    }
}
