//! Points in time as RFC 3339 with milliseconds, in UTC.

use serde::{Serialize, Serializer};
use tidegate_core::Time;

const DAY_MS: u64 = 86_400_000;
/// 9999-12-31T23:59:59.999Z: later times are written as this one.
const MILLIS_MAX: u64 = 253_402_300_799_999;

/// A time on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At(pub Time);

impl Serialize for At {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let millis = self.0.as_millis().min(MILLIS_MAX);
        let (year, month, day) = civil(millis / DAY_MS);
        let of_day = millis % DAY_MS;
        let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
        let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// Year, month and day of a number of days since 1970-01-01, counted in eras of 400 years that begin on the first
/// of March, so that a leap day is the last of its year.
const fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + if month <= 2 { 1 } else { 0 }, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        let table = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_735_689_600_001, "2025-01-01T00:00:00.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (u64::MAX / 1_000, "9999-12-31T23:59:59.999Z"),
        ];
        for (millis, text) in table {
            assert_eq!(At(Time::from_millis(millis)).to_string(), text);
        }
    }
}
