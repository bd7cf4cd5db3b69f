//! The clock as a port. This is the only place that reads the system clock.

use tidegate_core::Time;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Time;
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock")]
    fn now(&self) -> Time {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Time::ZERO.after(since)
    }
}

/// Starts at the system clock's time and is steady from there on: a system clock that is changed
/// while leases are held neither ends them early nor keeps them for ever.
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    base: Time,
    start: std::time::Instant,
}

impl SteadyClock {
    /// Starts at the system clock's time.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's steady clock")]
    pub fn new() -> Self {
        Self { base: WallClock.now(), start: std::time::Instant::now() }
    }
}

impl Default for SteadyClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Time {
        self.base.after(self.start.elapsed())
    }
}
