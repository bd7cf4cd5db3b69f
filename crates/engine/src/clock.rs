//! The engine's clock: the wall's when it opens, as far as a store that others share agrees, never before the last time
//! in the log, and from there on steady. A wall clock that jumps afterwards moves nothing; in tests it moves with tokio's.

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

    /// The moment at which this clock will show `at`.
    pub(crate) fn instant(&self, at: Time) -> Instant {
        self.start + at.since(self.base)
    }
}

impl Clock for EngineClock {
    fn now(&self) -> Time {
        self.base.after(self.start.elapsed())
    }
}

/// What the store's clock showed when it granted a partition, at some moment between the question and the answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreClockReading {
    pub at: Time,
    pub asked: Instant,
    pub owned: Instant,
}

impl StoreClockReading {
    /// The wall's time, unless the store's clock proves it wrong: else a machine whose clock is off would skip delays and
    /// refill limits too early when it takes a partition over. Then the earliest time it can be, which grants nothing too early.
    pub(crate) fn check_wall_clock(&self, wall: Time) -> Time {
        let (least, most) = (self.at.after(self.owned.elapsed()), self.at.after(self.asked.elapsed()));
        if (least..=most).contains(&wall) { wall } else { least }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// LIM-6: a wall clock counts as far as the store's clock allows, whatever has passed since.
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
