//! The engine's clock: the wall's when it opens, never before the last time in the log, and from there on steady.
//! A wall clock that jumps afterwards moves nothing; in tests it moves with tokio's.

use tidegate_core::Time;
use tidegate_store::Clock;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(crate) struct SteadyClock {
    base: Time,
    start: Instant,
}

impl SteadyClock {
    pub(crate) fn starting_at(base: Time) -> Self {
        Self { base, start: Instant::now() }
    }

    /// The moment at which this clock will show `at`.
    pub(crate) fn instant(&self, at: Time) -> Instant {
        self.start + at.since(self.base)
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Time {
        self.base.after(self.start.elapsed())
    }
}
