//! Computes how long to wait before the next attempt. Randomness is an argument: 0 gives the
//! shortest wait, `u32::MAX` the longest.

use std::time::Duration;

use crate::time::micros;

/// Exponential growth with a ceiling and jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub base: Duration,
    /// The maximum wait, jitter aside.
    pub ceiling: Duration,
    /// The jitter in either direction, in percent.
    pub jitter_percent: u8,
}

impl Backoff {
    /// For transient failures: 500 ms, doubled up to 20 s, ±30 %.
    pub const RETRY: Self =
        Self { base: Duration::from_millis(500), ceiling: Duration::from_secs(20), jitter_percent: 30 };

    /// The wait after failure number `failures` (1 is the first).
    #[must_use]
    pub fn delay(&self, failures: u32, chance: u32) -> Duration {
        let whole = doubled(self.base, self.ceiling, failures);
        let swing = whole * u64::from(self.jitter_percent) / 100;
        Duration::from_micros(whole - swing + share(swing.saturating_mul(2), chance))
    }

    /// The wait when the upstream gave a time: that time is a floor, and jitter is only ever added.
    #[must_use]
    pub fn delay_from(&self, floor: Duration, failures: u32, chance: u32) -> Duration {
        let own = self.delay(failures, chance);
        if own > floor { own } else { with_jitter_above(floor, chance) }
    }
}

/// The wait after a 429 without a time: full jitter below an exponential that ends at 60 s.
#[must_use]
pub fn throttled_without_hint(throttles: u32, chance: u32) -> Duration {
    const BASE: Duration = Duration::from_secs(1);
    const CEILING: Duration = Duration::from_secs(60);
    const LEAST: Duration = Duration::from_millis(100);
    Duration::from_micros(share(doubled(BASE, CEILING, throttles), chance)).max(LEAST)
}

/// The wait after a 429 that gave a time: that time is a floor. A time too short to be meant (zero,
/// or past) is replaced by a wait of our own that grows with every consecutive 429, so that a call
/// is never repeated immediately over and over.
#[must_use]
pub fn throttled(named: Duration, throttles: u32, chance: u32) -> Duration {
    const LEAST: Duration = Duration::from_millis(100);
    const CEILING: Duration = Duration::from_secs(60);
    if named >= LEAST {
        return with_jitter_above(named, chance);
    }
    with_jitter_above(Duration::from_micros(doubled(LEAST, CEILING, throttles)), chance)
}

/// Adds up to 5 % (at most a quarter of a second) to a given time, so that callers do not all
/// return at once.
#[must_use]
pub fn with_jitter_above(floor: Duration, chance: u32) -> Duration {
    const MOST: Duration = Duration::from_millis(250);
    let span = (floor / 20).min(MOST);
    floor.saturating_add(Duration::from_micros(share(micros(span), chance)))
}

fn doubled(base: Duration, ceiling: Duration, failures: u32) -> u64 {
    let exponent = failures.saturating_sub(1).min(40);
    micros(base).saturating_mul(1 << exponent).min(micros(ceiling))
}

pub(crate) fn share(of: u64, chance: u32) -> u64 {
    (u128::from(of) * u128::from(chance) / u128::from(u32::MAX)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// LIM-13: an upstream that says "at once" with every 429 is called less and less often; a time
    /// that is meant is used as given.
    #[test]
    fn lim_13_at_once_is_never_taken_at_its_word() {
        let waits: Vec<_> = (1..=12).map(|n| throttled(Duration::ZERO, n, 0).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000]);
        assert_eq!(throttled(Duration::from_millis(99), 1, 0), Duration::from_millis(100));
        for streak in [0, 1, 50] {
            assert_eq!(throttled(Duration::from_secs(2), streak, 0), Duration::from_secs(2));
        }
    }

    /// LIM-12: without a time from the upstream the jitter is full: over all chances, the waits are
    /// spread evenly from nothing to the whole of what has doubled, which ends at 60 s.
    #[test]
    fn lim_12_without_a_hint_the_jitter_is_full_and_even() {
        const DRAWS: u32 = 10_000;
        for (throttles, whole) in [(1, 1_000), (2, 2_000), (6, 32_000), (7, 60_000), (1_000, 60_000)] {
            let mut tenths = [0_u32; 10];
            for draw in 0..=DRAWS {
                let chance = (u64::from(u32::MAX) * u64::from(draw) / u64::from(DRAWS)) as u32;
                let wait = throttled_without_hint(throttles, chance).as_micros() as usize;
                tenths[(wait - 1) * 10 / (whole * 1_000)] += 1;
            }
            assert!(tenths.iter().all(|count| count.abs_diff(DRAWS / 10) <= 2), "{throttles}: {tenths:?}");
        }
        assert_eq!(throttled_without_hint(1, 0), Duration::from_millis(100), "never at once");
    }

    /// OPS-11: base 500 ms, ceiling 20 s, jitter ±30 %.
    #[test]
    fn ops_11_the_documented_figures() {
        let middle = u32::MAX / 2;
        let about = |d: Duration| (d.as_micros() + 500) / 1_000;
        assert_eq!(about(Backoff::RETRY.delay(1, middle)), 500);
        assert_eq!(about(Backoff::RETRY.delay(2, middle)), 1_000);
        assert_eq!(about(Backoff::RETRY.delay(60, middle)), 20_000);
        assert_eq!(Backoff::RETRY.delay(1, 0), Duration::from_millis(350));
        assert_eq!(Backoff::RETRY.delay(1, u32::MAX), Duration::from_millis(650));
        assert_eq!(Backoff::RETRY.delay(9, u32::MAX), Duration::from_secs(26));
    }

    proptest! {
        /// OPS-11: `retry_after` is a floor; jitter is only ever added to it.
        #[test]
        fn ops_11_a_named_time_is_a_floor(ms in 0_u64..10_000_000, failures in 0_u32..100, chance: u32) {
            let floor = Duration::from_millis(ms);
            prop_assert!(Backoff::RETRY.delay_from(floor, failures, chance) >= floor);
            prop_assert!(with_jitter_above(floor, chance) >= floor);
        }

        #[test]
        fn every_delay_is_within_its_band(failures in 0_u32..1_000, chance: u32) {
            let delay = Backoff::RETRY.delay(failures, chance);
            prop_assert!(delay >= Duration::from_millis(350) && delay <= Duration::from_secs(26));
            prop_assert!(throttled_without_hint(failures, chance) <= Duration::from_secs(60));
        }
    }
}
