//! Ids as Discord generates them: they contain the time, grow with it, and are text on the wire.

use serde_json::Value;
use tidegate_core::Time;

/// The first millisecond of 2015, the epoch of ids.
const EPOCH_MS: u64 = 1_420_070_400_000;

/// Generates ids.
#[derive(Clone, Copy, Debug, Default)]
pub struct SnowflakeGenerator {
    last: u64,
}

impl SnowflakeGenerator {
    /// Returns a unique id.
    pub fn next(&mut self, now: Time) -> u64 {
        let timed = now.as_millis().saturating_sub(EPOCH_MS) << 22;
        self.last = timed.max(self.last + 1);
        self.last
    }
}

/// Parses an id.
#[must_use]
pub fn parse(text: &str) -> Option<u64> {
    let digits = (1..=20).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok().filter(|id| *id > 0) } else { None }
}

/// Returns an id in JSON.
#[must_use]
pub fn to_json(id: u64) -> Value {
    Value::String(id.to_string())
}

/// Formats a time as the API does.
#[must_use]
pub fn timestamp(time: Time) -> String {
    let (micros, seconds) = (time.as_micros() % 1_000_000, time.as_micros() / 1_000_000);
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}+00:00")
}

/// Returns the date of a day since 1970, by counting from a March so that the leap day comes last.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + (month <= 2) as u64, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_hold_the_time_and_only_grow() {
        let mut ids = SnowflakeGenerator::default();
        let at = Time::from_millis(EPOCH_MS + 5);
        assert_eq!(
            [ids.next(at), ids.next(at), ids.next(Time::ZERO)],
            [5 << 22, (5 << 22) + 1, (5 << 22) + 2]
        );
        assert_eq!([parse("175928847299117063"), parse("0"), parse("+1"), parse("x"), parse("")], {
            [Some(175_928_847_299_117_063), None, None, None, None]
        });
    }

    #[test]
    fn times_are_written_as_dates() {
        let written = |seconds: u64| timestamp(Time::from_millis(seconds * 1_000 + 7));
        assert_eq!(written(0), "1970-01-01T00:00:00.007000+00:00");
        assert_eq!(written(951_827_696), "2000-02-29T12:34:56.007000+00:00");
        assert_eq!(written(1_798_761_599), "2026-12-31T23:59:59.007000+00:00");
    }
}
