//! A clock that moves only by hand, so that a test can be at any moment without waiting for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_core::Time;
use tidegate_store::Clock;

/// A clock that stands still until it is told to move.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows `time`.
    #[must_use]
    pub fn at(time: Time) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(time.as_micros())))
    }

    /// A clock that shows a moment as real ones do: some day in 2026.
    #[must_use]
    pub fn today() -> Arc<Self> {
        Self::at(Time::from_millis(1_780_000_000_000))
    }

    /// Shows `time` from now on, which may be earlier than before.
    pub fn set(&self, time: Time) {
        self.0.store(time.as_micros(), Ordering::SeqCst);
    }

    /// Moves on, and answers what it shows then.
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
