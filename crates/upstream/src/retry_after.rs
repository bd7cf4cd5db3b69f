//! Parses `Retry-After` as upstreams send it in practice: whole seconds, decimals, an HTTP date.
//! Pure; an invalid header gives `None`, and the caller backs off as if there were none.

use std::time::{Duration, UNIX_EPOCH};

use tidegate_core::Time;
use tidegate_core::bounds::RETRY_AFTER_MAX;

/// Longer headers are ignored.
const HEADER_LEN_MAX: usize = 128;
/// A longer time of a reset is ignored: it is in other units than seconds.
const RESET_LEN_MAX: usize = 24;
/// Less than this, in the year 2001, is no time since the epoch.
const EARLIEST_RESET: Duration = Duration::from_secs(1_000_000_000);
/// The longest time to wait until a reset: a larger number is in milliseconds, or a count.
const RESET_DELAY_MAX: Duration = Duration::from_secs(3_600);

/// Parses a `Retry-After` header into the time to wait from `now`. A date in the past means no
/// wait.
#[must_use]
pub fn parse(header: &str, now: Time) -> Option<Duration> {
    let text = header.trim_matches([' ', '\t']);
    if text.is_empty() || text.len() > HEADER_LEN_MAX {
        return None;
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return seconds(text);
    }
    parse_http_date(text).map(|at| at.since(now).min(RETRY_AFTER_MAX))
}

/// Parses when a rate limit is reset, in seconds since the epoch or, up to an hour, in seconds from
/// now, into the time to wait from `now`. Any other number is in another unit and means nothing.
#[must_use]
pub fn parse_reset(header: &str, now: Time) -> Option<Duration> {
    let text = header.trim_matches([' ', '\t']);
    let seconds = Some(text).filter(|text| text.len() <= RESET_LEN_MAX).and_then(exact_seconds)?;
    if seconds <= RESET_DELAY_MAX {
        return Some(seconds);
    }
    let wait = Time::ZERO.after(seconds).since(now);
    (seconds >= EARLIEST_RESET && wait <= RETRY_AFTER_MAX).then_some(wait)
}

/// Parses an HTTP date.
#[must_use]
pub fn parse_http_date(text: &str) -> Option<Time> {
    let at = httpdate::parse_http_date(text).ok()?;
    at.duration_since(UNIX_EPOCH).ok().map(|since| Time::ZERO.after(since))
}

fn seconds(text: &str) -> Option<Duration> {
    exact_seconds(text).map(|wait| wait.min(RETRY_AFTER_MAX))
}

/// Parses seconds, exact to the microsecond and rounded up: no caller returns too early.
fn exact_seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let mut micros = 0_u64;
    let mut scale = 100_000_u64;
    for (place, digit) in fraction.bytes().map(|b| u64::from(b - b'0')).enumerate() {
        if place < 6 {
            micros += digit * scale;
            scale /= 10;
        } else if digit > 0 {
            micros += 1;
            break;
        }
    }
    // More digits than a number can hold mean a very long wait, not an invalid one.
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().unwrap_or(u64::MAX) };
    Some(Duration::from_secs(whole).saturating_add(Duration::from_micros(micros)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 1994-11-06 08:49:37 UTC, the date in HTTP's own examples.
    const SUNDAY: Time = Time::from_millis(784_111_777_000);

    /// LIM-2 / LIM-20: each form that is sent in the wild, and invalid ones.
    #[test]
    fn lim_2_every_form_is_read() {
        let ms = |ms| Some(Duration::from_millis(ms));
        let table = [
            ("2", ms(2_000)),
            ("0", ms(0)),
            ("2.0", ms(2_000)),
            ("0.5", ms(500)),
            (".25", ms(250)),
            ("3.", ms(3_000)),
            (" 7 ", ms(7_000)),
            ("0.0000001", Some(Duration::from_micros(1))),
            ("Sun, 06 Nov 1994 08:49:47 GMT", ms(10_000)),
            ("Sunday, 06-Nov-94 08:49:47 GMT", ms(10_000)),
            ("Sun Nov  6 08:49:47 1994", ms(10_000)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", ms(0)),
            ("Fri, 01 Jan 2100 00:00:00 GMT", Some(RETRY_AFTER_MAX)),
            ("604801", Some(RETRY_AFTER_MAX)),
            ("99999999999999999999999999", Some(RETRY_AFTER_MAX)),
            ("18446744073709551615.999999", Some(RETRY_AFTER_MAX)),
        ];
        for (header, wait) in table {
            assert_eq!(parse(header, SUNDAY), wait, "{header}");
        }
        let nonsense = [
            "", " ", ".", "-1", "-0.5", "+2", "NaN", "inf", "1e3", "0x10", "2 s", "1.2.3", "1,5", "soon", "٣",
        ];
        for header in nonsense {
            assert_eq!(parse(header, SUNDAY), None, "{header}");
        }
        assert_eq!(parse(&"9".repeat(129), SUNDAY), None);
    }

    /// LIM-20: the reset of a rate limit is a time since the epoch or from now, within bounds;
    /// anything else means nothing.
    #[test]
    fn lim_20_a_reset_is_a_time() {
        let now = Time::from_millis(1_700_000_000_000);
        let table = [
            ("1700000007", Some(Duration::from_secs(7))),
            (" 1700000000.25 ", Some(Duration::from_millis(250))),
            ("1699999999", Some(Duration::ZERO)),
            ("1700604800", Some(RETRY_AFTER_MAX)),
            ("1700000000000", None),
            ("60", Some(Duration::from_secs(60))),
            ("0", Some(Duration::ZERO)),
            ("3600", Some(Duration::from_secs(3_600))),
            ("60000", None),
            ("", None),
            ("-1700000007", None),
            ("soon", None),
        ];
        for (header, wait) in table {
            assert_eq!(parse_reset(header, now), wait, "{header}");
        }
    }

    proptest! {
        /// LIM-2: any header is parsed or refused, and never exceeds the bound.
        #[test]
        fn lim_2_no_header_is_too_odd(header in "\\PC{0,140}", now: u64) {
            if let Some(wait) = parse(&header, Time::from_micros(now)) {
                prop_assert!(wait <= RETRY_AFTER_MAX);
            }
        }

        /// LIM-2: a decimal is exact to the microsecond.
        #[test]
        fn lim_2_decimals_are_exact(micros in 0_u64..604_800_000_000) {
            let header = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
            prop_assert_eq!(parse(&header, Time::ZERO), Some(Duration::from_micros(micros)));
        }

        /// LIM-20: a wait is never parsed as shorter than it was sent.
        #[test]
        fn lim_20_a_wait_is_never_cut_short(whole in 0_u32..600_000, fraction in "[0-9]{0,12}") {
            let wait = parse(&format!("{whole}.{fraction}"), Time::ZERO).unwrap();
            let asked = format!("{whole}.{fraction}0").parse::<f64>().unwrap();
            prop_assert!(wait.as_secs_f64() >= asked - 1e-9);
        }
    }
}
