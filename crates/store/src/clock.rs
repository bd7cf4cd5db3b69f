//! The clock as a port. This is the only place that reads the system's clock.

use tidegate_core::Time;

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Time;
}

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct WallClock;

impl Clock for WallClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the system's clock")]
    fn now(&self) -> Time {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Time::ZERO.after(since)
    }
}

/// The machine's clock as it was when this one was made, and steady from there on: a system clock that is set anew while leases
/// are held neither ends them early nor keeps them for ever.
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    base: Time,
    start: std::time::Instant,
}

impl SteadyClock {
    /// Begins at the machine's time.
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
