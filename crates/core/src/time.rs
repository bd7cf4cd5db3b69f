//! Points in time, in microseconds since the Unix epoch. Durations are `std::time::Duration`.
//! Arithmetic saturates: an absurd clock or header cannot overflow it.

mod rfc3339;

use std::time::Duration;

/// A point in time: microseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(not(test), derive(PartialOrd, Ord))]
pub struct Time(u64);

impl Time {
    /// The epoch; as "no time" it sorts before everything else.
    pub const ZERO: Self = Self(0);
    /// Later than any real event.
    pub const MAX: Self = Self(u64::MAX);

    /// Converts from microseconds since the epoch.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Converts from milliseconds since the epoch.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Microseconds since the epoch.
    #[must_use]
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// Adds a duration.
    #[must_use]
    pub fn after(self, by: Duration) -> Self {
        Self(self.0.saturating_add(micros(by)))
    }

    /// Subtracts a duration.
    #[must_use]
    pub fn before(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(micros(by)))
    }

    /// The duration since `earlier`; zero when that lies in the future.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

/// A duration in whole microseconds, saturating.
#[must_use]
pub fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// A duration in whole milliseconds, rounded up: a caller is never told to return too early.
#[must_use]
pub fn millis_up(duration: Duration) -> u64 {
    micros(duration).div_ceil(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::MAX.after(Duration::MAX), Time::MAX);
        assert_eq!(Time::from_millis(5).before(Duration::from_secs(9)), Time::ZERO);
        assert_eq!(Time::from_millis(1).since(Time::from_millis(9)), Duration::ZERO);
    }

    #[test]
    fn milliseconds_round_up_when_told_to_a_caller() {
        assert_eq!(millis_up(Duration::from_micros(1)), 1);
        assert_eq!(millis_up(Duration::from_micros(1_000)), 1);
        assert_eq!(millis_up(Duration::from_micros(1_001)), 2);
    }
}
