//! Points in time as RFC 3339 with milliseconds, in UTC.

use std::fmt;

use super::Time;

const DAY_MS: u64 = 86_400_000;
/// 9999-12-31T23:59:59.999Z: later times are written as this one.
const MILLIS_MAX: u64 = 253_402_300_799_999;
/// The days of 400 years.
const ERA_DAYS: u64 = 146_097;
/// The days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: u64 = 719_468;

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.as_millis().min(MILLIS_MAX);
        let (year, month, day) = civil(millis / DAY_MS + EPOCH_DAYS);
        let of_day = millis % DAY_MS;
        let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
        let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

impl Time {
    /// Parses an RFC 3339 time, with `Z` or an offset; `None` if it is invalid. One
    /// before 1970 is the beginning of 1970: nothing is older.
    #[must_use]
    pub fn parse_rfc_3339(text: &str) -> Option<Self> {
        let (date, rest) = text.split_at_checked(10)?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let rest = rest.strip_prefix(['T', 't', ' '])?;
        let (clock, rest) = rest.split_at_checked(8)?;
        let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
        let (fraction, zone) = rest.split_at(rest.find(['Z', 'z', '+', '-'])?);
        let micros = match fraction.strip_prefix('.') {
            Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                let padded: String = digits.chars().chain("000000".chars()).take(6).collect();
                padded.parse::<u64>().ok()?
            }
            None if fraction.is_empty() => 0,
            _ => return None,
        };
        let at = days(year, month, day)? * 86_400 + hour * 3_600 + minute * 60 + second;
        let offset = match zone {
            "Z" | "z" => 0,
            _ => {
                let [hours, minutes] = numbers(zone.get(1..)?, ':', [2, 2])?;
                if hours > 23 || minutes > 59 {
                    return None;
                }
                hours * 3_600 + minutes * 60
            }
        };
        let at = if zone.starts_with('+') { at - offset } else { at + offset };
        let since_1970 = at.checked_sub((EPOCH_DAYS + ERA_DAYS) * 86_400);
        let at = since_1970.map_or(Time::ZERO, |seconds| Time::from_micros(seconds * 1_000_000 + micros));
        // A leap second is the first of the next minute.
        (hour <= 23 && minute <= 59 && second <= 60).then_some(at)
    }
}

/// Parses numbers of exactly so many digits, with a separator between them.
fn numbers<const N: usize>(text: &str, between: char, digits: [usize; N]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(between);
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == digits)?;
        *number = part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(numbers)
}

/// Days from the first of March 400 years before year 0 to a date; `None` if there is no such date.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    let shifted = year + 400 - u64::from(month <= 2);
    let (era, year_of_era) = (shifted / 400, shifted % 400);
    let from_march = (month + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + day.checked_sub(1)?;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let days = era * ERA_DAYS + of_era;
    (civil(days) == (year + 400, month, day)).then_some(days)
}

/// Year, month and day of a number of days since 0000-03-01, counted in eras of 400 years that
/// begin on the first of March, so that a leap day is the last of its year.
const fn civil(days: u64) -> (u64, u64, u64) {
    let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
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
            assert_eq!(Time::from_millis(millis).to_string(), text);
        }
    }

    #[test]
    fn times_are_read_as_rfc_3339() {
        for millis in [0, 951_782_400_000, 1_709_251_199_999, 4_107_542_400_000] {
            let at = Time::from_millis(millis);
            assert_eq!(Time::parse_rfc_3339(&at.to_string()), Some(at));
        }
        let noon = Time::parse_rfc_3339("2031-05-06T12:00:00Z").unwrap();
        for same in ["2031-05-06T14:00:00+02:00", "2031-05-06t07:30:00.000-04:30", "2031-05-06 12:00:00z"] {
            assert_eq!(Time::parse_rfc_3339(same), Some(noon), "{same}");
        }
        assert_eq!(
            Time::parse_rfc_3339("2031-05-06T12:00:00.25Z"),
            Some(noon.after(std::time::Duration::from_millis(250)))
        );
        for wrong in [
            "",
            "tomorrow",
            "2031-05-06",
            "2031-05-06T12:00:00",
            "2031-02-29T12:00:00Z",
            "2031-13-01T12:00:00Z",
            "2031-05-00T12:00:00Z",
            "2031-05-06T24:00:00Z",
            "2031-05-06T12:60:00Z",
            "2031-05-06T12:00:00.Z",
            "2031-05-06T12:00:00+2",
            "2031-05-06T12:00:00+24:00",
            "+031-05-06T12:00:00Z",
            "2031-05-06T12:00:00Zé",
            "0000-02-30T12:00:00Z",
            "1900-02-29T12:00:00Z",
        ] {
            assert_eq!(Time::parse_rfc_3339(wrong), None, "{wrong}");
        }
        for old in [
            "0000-01-01T00:00:00+23:59",
            "0000-02-29T12:00:00Z",
            "0246-10-10T16:05:32.9-00:24",
            "1969-12-31T23:59:59.999Z",
            "1970-01-01T00:00:00+00:01",
        ] {
            assert_eq!(Time::parse_rfc_3339(old), Some(Time::ZERO), "{old}");
        }
        assert_eq!(Time::parse_rfc_3339("1969-12-31T23:59:59-00:01"), Some(Time::from_millis(59_000)));
    }
}
