//! The next midnight in California, where Google's daily quotas start again.

use std::time::Duration;

use tidegate_core::Time;

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;

/// How long it is from `now` to the next midnight, Pacific time.
pub(super) fn until_midnight(now: Time) -> Duration {
    let seconds = now.as_millis() / 1_000;
    let offset = offset_hours(seconds) * HOUR_S;
    let local = seconds.saturating_sub(offset);
    let midnight = local - local % DAY_S + DAY_S;
    // The clock may change in between.
    let offset = offset_hours(midnight + offset) * HOUR_S;
    Time::from_millis((midnight + offset) * 1_000).since(now)
}

/// How many hours California is behind: seven from the second Sunday of March to the first Sunday
/// of November, at two o'clock, otherwise eight.
fn offset_hours(seconds: u64) -> u64 {
    let year = year_of(seconds / DAY_S);
    let (march, november) = (sunday(days_before(year, 3), 2), sunday(days_before(year, 11), 1));
    let summer = march * DAY_S + 10 * HOUR_S..november * DAY_S + 9 * HOUR_S;
    if summer.contains(&seconds) { 7 } else { 8 }
}

/// The day of the n-th Sunday of the month that starts on `first`. Day 0 was a Thursday.
const fn sunday(first: u64, n: u64) -> u64 {
    first + (7 - (first + 4) % 7) % 7 + (n - 1) * 7
}

/// The days from 1970 to the first of a month.
fn days_before(year: u64, month: u64) -> u64 {
    let text = format!("{year:04}-{month:02}-01T00:00:00Z");
    Time::parse_rfc_3339(&text).map_or(0, |at| at.as_millis() / 1_000 / DAY_S)
}

fn year_of(day: u64) -> u64 {
    let text = Time::from_millis(day * DAY_S * 1_000).to_string();
    text.get(..4).and_then(|year| year.parse().ok()).unwrap_or(1970)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times are those of the time-zone database (Python's `zoneinfo`, America/Los_Angeles).
    #[test]
    fn midnight_in_california_follows_the_clock_change() {
        for (now, midnight) in [
            ("2026-01-15T12:00:00Z", "2026-01-16T08:00:00Z"),
            ("2026-01-15T07:59:59Z", "2026-01-15T08:00:00Z"),
            ("2026-07-01T00:00:00Z", "2026-07-01T07:00:00Z"),
            ("2026-03-08T09:59:00Z", "2026-03-09T07:00:00Z"),
            ("2026-03-08T11:00:00Z", "2026-03-09T07:00:00Z"),
            ("2026-11-01T08:30:00Z", "2026-11-02T08:00:00Z"),
            ("2026-11-01T10:00:00Z", "2026-11-02T08:00:00Z"),
            ("2028-12-31T23:00:00Z", "2029-01-01T08:00:00Z"),
        ] {
            let [now, midnight] = [now, midnight].map(|text| Time::parse_rfc_3339(text).unwrap());
            assert_eq!(now.after(until_midnight(now)), midnight, "{now}");
        }
    }
}
