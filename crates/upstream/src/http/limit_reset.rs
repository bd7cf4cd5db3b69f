//! When a used-up rate limit is full again, by the headers that upstreams send in place of
//! `Retry-After`: the fields of the IETF's drafts (`RateLimit`, `RateLimit-Reset`), and
//! `X-RateLimit-Reset` as GitHub and others send it.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_core::Time;
use tidegate_core::bounds::RETRY_AFTER_MAX;

use crate::retry_after;

/// All limits, in the drafts since 2021: `limit=9, remaining=0, reset=30`, or `"name";r=0;t=30`.
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// A limit in headers of its own: what is left, and when it is reset.
const HEADERS: [(&str, &str); 2] =
    [("ratelimit-remaining", "ratelimit-reset"), ("x-ratelimit-remaining", "x-ratelimit-reset")];
/// Longer headers are ignored.
const HEADER_LEN_MAX: usize = 1_024;

/// The limits of a response, as far as they are used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LimitReset {
    /// How long until they are reset.
    pub wait: Option<Duration>,
    /// Whether the response itself says that nothing is left.
    pub is_used_up: bool,
}

impl LimitReset {
    /// Reads the headers of a response that came at `now`. A limit of which something is left is
    /// not the one that refused the call.
    pub(super) fn from_headers(headers: &HeaderMap, now: Time) -> Self {
        let listed = joined(headers, &RATE_LIMIT);
        let listed = listed.iter().flat_map(|text| limits_of(text));
        let own = HEADERS.iter().filter_map(|(remaining, reset)| {
            let text = headers.get(*reset)?.to_str().ok()?;
            // The drafts say that it is in seconds, however many.
            let delay = || retry_after::parse(text, now).filter(|wait| *wait < RETRY_AFTER_MAX);
            let is_standard = !reset.starts_with("x-");
            let wait = retry_after::parse_reset(text, now).or_else(|| delay().filter(|_| is_standard))?;
            let remaining = headers.get(*remaining).and_then(|left| left.to_str().ok());
            Some((remaining.map(|left| left.trim().to_owned()), Some(wait)))
        });
        let mut found = Self::default();
        for (remaining, wait) in listed.chain(own) {
            let is_zero = remaining.as_deref().map(|left| left.bytes().all(|digit| digit == b'0'));
            if wait.is_some() && is_zero != Some(false) {
                found.wait = found.wait.max(wait);
                found.is_used_up |= is_zero == Some(true);
            }
        }
        found
    }
}

/// The values of a header, as one list.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values = headers.get_all(name).iter().map(HeaderValue::to_str);
    let text = values.collect::<Result<Vec<_>, _>>().ok()?.join(",");
    (!text.is_empty() && text.len() <= HEADER_LEN_MAX).then_some(text)
}

/// What is left of each limit of a list, and how long until it is reset.
fn limits_of(text: &str) -> Vec<(Option<String>, Option<Duration>)> {
    let value = |text: &str, names: [&str; 2]| {
        let pairs = split(text, &[';', ',']).into_iter().filter_map(|pair| pair.split_once('='));
        let mut values =
            pairs.filter(|(name, _)| names.contains(&name.trim())).map(|(_, value)| value.trim());
        values.next().filter(|value| value.bytes().all(|byte| byte.is_ascii_digit())).map(str::to_owned)
    };
    let limit = |text: &str| {
        let wait = value(text, ["t", "reset"]).and_then(|reset| reset.parse().ok());
        (value(text, ["r", "remaining"]), wait.map(|wait| Duration::from_secs(wait).min(RETRY_AFTER_MAX)))
    };
    // In the earlier drafts the members of the list are the parts of one limit.
    let members = split(text, &[',']);
    let is_one = members.iter().any(|member| member.trim().starts_with("reset="));
    if is_one { vec![limit(text)] } else { members.into_iter().map(limit).collect() }
}

/// Splits a structured field where it is not in quotes.
fn split<'a>(text: &'a str, at: &[char]) -> Vec<&'a str> {
    let (mut in_quotes, mut is_escaped) = (false, false);
    text.split(|c: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match c {
            '\\' if in_quotes && !was_escaped => is_escaped = true,
            '"' if !was_escaped => in_quotes = !in_quotes,
            _ => {}
        }
        !in_quotes && at.contains(&c)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Time = Time::from_millis(1_700_000_000_000);

    fn read(lines: &[(&str, &str)]) -> LimitReset {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        LimitReset::from_headers(&headers, NOW)
    }

    /// LIM-20: each form in which upstreams say when a limit is full again; the longest of those
    /// that are used up counts.
    #[test]
    fn lim_20_every_form_of_a_reset_is_read() {
        type Headers<'a> = &'a [(&'a str, &'a str)];
        let table: [(Headers<'_>, Option<u64>, bool); 20] = [
            (&[], None, false),
            (&[("RateLimit-Reset", "30")], Some(30), false),
            (&[("RateLimit-Reset", "30"), ("RateLimit-Remaining", "0")], Some(30), true),
            (&[("RateLimit-Reset", "30"), ("RateLimit-Remaining", "7")], None, false),
            (&[("RateLimit-Reset", "soon")], None, false),
            (&[("RateLimit-Reset", "86400")], Some(86_400), false),
            (&[("RateLimit-Reset", "1700000000000")], None, false),
            (&[("X-RateLimit-Reset", "86400")], None, false),
            (&[("X-RateLimit-Reset", "30")], Some(30), false),
            (&[("X-RateLimit-Reset", "1700000009"), ("X-RateLimit-Remaining", " 0 ")], Some(9), true),
            (&[("X-RateLimit-Reset", "1700000009"), ("X-RateLimit-Remaining", "12")], None, false),
            (&[("RateLimit", "limit=10, remaining=0, reset=4")], Some(4), true),
            (&[("RateLimit", "limit=10;w=60, remaining=3, reset=4")], None, false),
            (&[("RateLimit", "\"default\";r=0;t=5")], Some(5), true),
            (&[("RateLimit", "\"burst\";r=0;t=5, \"day\";r=0;t=500,\"hour\";r=9;t=3600")], Some(500), true),
            (&[("RateLimit", "\"a,b;t=9\\\"\";r=0;t=5"), ("RateLimit", "\"c\";r=0;t=6")], Some(6), true),
            (&[("RateLimit", "\"default\";r=0")], None, false),
            (&[("RateLimit", "\"default\";r=0;t=-5")], None, false),
            (&[("RateLimit", "\"default\";r=0;t=99999999999")], Some(RETRY_AFTER_MAX.as_secs()), true),
            (&[("RateLimit", "\"default\";t=5"), ("RateLimit-Reset", "7")], Some(7), false),
        ];
        for (lines, wait, is_used_up) in table {
            let wanted = LimitReset { wait: wait.map(Duration::from_secs), is_used_up };
            assert_eq!(read(lines), wanted, "{lines:?}");
        }
        assert_eq!(read(&[("RateLimit", &format!("\"{}\";r=0;t=5", "x".repeat(1_024)))]).wait, None);
    }

    proptest! {
        /// LIM-20: any header is read or ignored, and never asks for more than the bound.
        #[test]
        fn lim_20_no_limit_header_is_too_odd(text in "[\"a-z0-9=;,\\\\ ]{0,80}", number in "[0-9.]{0,30}") {
            let found = read(&[("ratelimit", &text), ("x-ratelimit-reset", &number)]);
            prop_assert!(found.wait.is_none_or(|wait| wait <= RETRY_AFTER_MAX));
        }
    }
}
