//! Formats a time as a date, for simulated APIs that report one.

use tidegate_core::Time;

/// Formats a time in UTC as RFC 3339, with microseconds and without a zone.
#[must_use]
pub fn date_and_time(time: Time) -> String {
    let (micros, seconds) = (time.as_micros() % 1_000_000, time.as_micros() / 1_000_000);
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}")
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
    fn times_are_written_as_dates() {
        let written = |seconds: u64| date_and_time(Time::from_millis(seconds * 1_000 + 7));
        assert_eq!(written(0), "1970-01-01T00:00:00.007000");
        assert_eq!(written(951_827_696), "2000-02-29T12:34:56.007000");
        assert_eq!(written(1_798_761_599), "2026-12-31T23:59:59.007000");
    }
}
