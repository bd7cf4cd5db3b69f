//! The engine's clock: it starts at the wall clock's time, as far as a shared store's clock agrees,
//! and never before the last time in the log; from there on it is steady. A wall clock that jumps
//! afterwards has no effect; in tests this clock moves with tokio's.

use tidegate_core::Time;
use tidegate_store::Clock;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
pub(crate) struct EngineClock {
    base: Time,
    start: Instant,
}

impl EngineClock {
    pub(crate) fn starting_at(base: Time) -> Self {
        Self { base, start: Instant::now() }
    }

    /// What this clock shows at `instant`.
    pub(crate) fn at(&self, instant: Instant) -> Time {
        self.base.after(instant.saturating_duration_since(self.start))
    }

    /// The instant at which this clock will show `at`.
    pub(crate) fn instant(&self, at: Time) -> Instant {
        self.start + at.since(self.base)
    }
}

impl Clock for EngineClock {
    fn now(&self) -> Time {
        self.at(Instant::now())
    }
}

/// The time on the store's clock when it granted a partition, at some moment between request and
/// response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreClockReading {
    pub at: Time,
    pub asked: Instant,
    pub owned: Instant,
}

impl StoreClockReading {
    /// Returns the wall time, unless the store's clock proves it wrong: otherwise a machine with a
    /// wrong clock would skip delays and refill limits too early when it takes a partition over.
    /// Then returns the earliest possible time, which grants nothing too early.
    pub(crate) fn check_wall_clock(&self, wall: Time) -> Time {
        let (least, most) = (self.at.after(self.owned.elapsed()), self.at.after(self.asked.elapsed()));
        if (least..=most).contains(&wall) { wall } else { least }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// LIM-6: a wall clock counts as far as the store's clock allows, whatever time has passed
    /// since.
    #[tokio::test(start_paused = true)]
    async fn lim_6_a_wall_clock_that_the_store_disproves_does_not_count() {
        let asked = Instant::now();
        tokio::time::advance(Duration::from_millis(300)).await;
        let granted = StoreClockReading { at: Time::from_millis(10_000), asked, owned: Instant::now() };
        tokio::time::advance(Duration::from_millis(2_000)).await;
        let table =
            [(12_000, 12_000), (12_150, 12_150), (12_300, 12_300), (12_301, 12_000), (11_999, 12_000)];
        for (wall, expected) in table {
            assert_eq!(
                granted.check_wall_clock(Time::from_millis(wall)),
                Time::from_millis(expected),
                "{wall}"
            );
        }
    }
}
