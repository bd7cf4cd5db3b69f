//! The clock of hydration: it starts at the wall clock's time and is steady from there on. In tests
//! it moves with tokio's.

use tidegate_core::Time;
use tidegate_store::{Clock, WallClock};
use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(crate) struct FlightClock {
    base: Time,
    start: Instant,
}

impl FlightClock {
    pub(crate) fn start() -> Self {
        Self { base: WallClock.now(), start: Instant::now() }
    }

    pub(crate) fn now(&self) -> Time {
        self.base.after(self.start.elapsed())
    }

    /// The instant at which this clock will show `at`. Timers of tokio have whole milliseconds, so
    /// it is never earlier.
    pub(crate) fn instant(&self, at: Time) -> Instant {
        self.start + at.since(self.base)
    }
}
