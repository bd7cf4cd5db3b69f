//! Parses what a response says about limits: on any response, the headers of the route's own limit;
//! on a 429, whose limit it was and how long to wait. Nonsensical values count as absent.

use std::time::Duration;

use http::HeaderMap;
use serde::Deserialize;
use tidegate_core::Time;
use tidegate_core::bounds::RETRY_AFTER_MAX;
use tidegate_core::operation::MICRO;
use tidegate_upstream::retry_after;

use super::buckets::is_hash;

/// No route allows more per window.
const CALLS_MAX: u64 = 1_000_000;

/// The route's limit as the headers report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RateLimitHeaders<'a> {
    /// The size of a window, in micro-tokens.
    pub limit: Option<u64>,
    /// What is left of the window, in micro-tokens.
    pub remaining: Option<u64>,
    /// When the next window starts, by our clock: the date in the headers is by Discord's.
    pub reset_at: Option<Time>,
    /// The bucket that it is counted by.
    pub bucket: Option<&'a str>,
}

impl<'a> RateLimitHeaders<'a> {
    /// Parses the headers of a response that arrived at `at`.
    pub(super) fn from_headers(headers: &'a HeaderMap, at: Time) -> Self {
        let calls = |name| {
            let calls: u64 = header_text(headers, name)?.trim().parse().ok()?;
            (calls <= CALLS_MAX).then_some(calls * MICRO)
        };
        let after =
            header_text(headers, "x-ratelimit-reset-after").and_then(|text| retry_after::parse(text, at));
        Self {
            limit: calls("x-ratelimit-limit").filter(|limit| *limit > 0),
            remaining: calls("x-ratelimit-remaining"),
            reset_at: after.map(|after| at.after(after)),
            bucket: header_text(headers, "x-ratelimit-bucket").filter(|hash| is_hash(hash)),
        }
    }
}

/// Whose limit a 429 is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The bot's limit on this route.
    User,
    /// The bot's limit on all calls.
    Global,
    /// Everyone's limit on this resource: no fault of ours.
    Shared,
    /// Not Discord's: a proxy in front of it refuses the address.
    Edge,
}

/// A parsed 429 response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooManyRequests {
    pub scope: Scope,
    /// How long to wait: the longer one of header and body.
    pub after: Option<Duration>,
}

#[derive(Default, Deserialize)]
struct Body {
    #[serde(default)]
    retry_after: Option<f64>,
    #[serde(default)]
    global: bool,
}

impl TooManyRequests {
    /// Parses headers and body of a response that arrived at `at`.
    pub(super) fn from_response(headers: &HeaderMap, body: &[u8], at: Time) -> Self {
        let body: Body = serde_json::from_slice(body).unwrap_or_default();
        let now = header_text(headers, "date").and_then(retry_after::parse_http_date).unwrap_or(at);
        let in_header = header_text(headers, "retry-after").and_then(|text| retry_after::parse(text, now));
        let in_body = body.retry_after.and_then(seconds);
        let is_told = headers.keys().any(|name| name.as_str().starts_with("x-ratelimit-"));
        let scope = match header_text(headers, "x-ratelimit-scope") {
            Some("shared") => Scope::Shared,
            Some("global") => Scope::Global,
            _ if body.global || headers.contains_key("x-ratelimit-global") => Scope::Global,
            // A ban comes from a proxy in front, which knows nothing of Discord's bodies.
            _ if is_told || body.retry_after.is_some() => Scope::User,
            _ => Scope::Edge,
        };
        Self { scope, after: in_header.max(in_body) }
    }
}

/// Returns how long a body says to wait until the requested data is ready.
pub(super) fn retry_after_in_body(body: &[u8]) -> Option<Duration> {
    serde_json::from_slice::<Body>(body).ok()?.retry_after.and_then(seconds)
}

/// Converts seconds as a body has them; nonsense is `None`.
fn seconds(seconds: f64) -> Option<Duration> {
    let wait = Duration::try_from_secs_f64(seconds).ok();
    let is_long = seconds.is_finite() && seconds > RETRY_AFTER_MAX.as_secs_f64();
    if is_long { Some(RETRY_AFTER_MAX) } else { wait }
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    /// LIM-8: a reset is computed from the remaining time, not from Discord's clock.
    #[test]
    fn lim_8_headers_are_read() {
        let at = Time::from_millis(5_000);
        let all = headers(&[
            ("x-ratelimit-limit", "5"),
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1470173023.123"),
            ("x-ratelimit-reset-after", "1.5"),
            ("x-ratelimit-bucket", "abcd1234"),
        ]);
        let parsed = RateLimitHeaders::from_headers(&all, at);
        assert_eq!((parsed.limit, parsed.remaining), (Some(5 * MICRO), Some(0)));
        assert_eq!((parsed.reset_at, parsed.bucket), (Some(Time::from_millis(6_500)), Some("abcd1234")));
        let nonsense = headers(&[
            ("x-ratelimit-limit", "-1"),
            ("x-ratelimit-remaining", "99999999999999999999"),
            ("x-ratelimit-reset-after", "soon"),
            ("x-ratelimit-bucket", "a b"),
        ]);
        assert_eq!(RateLimitHeaders::from_headers(&nonsense, at), RateLimitHeaders::default());
    }

    /// LIM-12: scopes, and the longer of two waits.
    #[test]
    fn lim_12_a_429_says_whose_limit_it_was_and_how_long() {
        let of = |lines: &[_], body: &str| {
            let parsed =
                TooManyRequests::from_response(&headers(lines), body.as_bytes(), Time::from_millis(9));
            (parsed.scope, parsed.after.map(|after| after.as_millis()))
        };
        let body = r#"{"message":"x","retry_after":64.57,"global":false}"#;
        let user = ("x-ratelimit-scope", "user");
        assert_eq!(of(&[user, ("retry-after", "65")], body), (Scope::User, Some(65_000)));
        assert_eq!(of(&[user, ("retry-after", "2")], body), (Scope::User, Some(64_570)));
        assert_eq!(of(&[("x-ratelimit-scope", "shared")], body), (Scope::Shared, Some(64_570)));
        assert_eq!(of(&[("x-ratelimit-global", "true")], "{}"), (Scope::Global, None));
        assert_eq!(of(&[], r#"{"retry_after":1,"global":true}"#), (Scope::Global, Some(1_000)));
        assert_eq!(of(&[("retry-after", "66271")], "<html>"), (Scope::Edge, Some(66_271_000)));
        assert_eq!(of(&[], ""), (Scope::Edge, None));
        assert_eq!(of(&[("retry-after", "3")], r#"{"retry_after":3}"#), (Scope::User, Some(3_000)));
        assert_eq!(of(&[user], r#"{"retry_after":-3}"#), (Scope::User, None));
        assert_eq!(of(&[user], r#"{"retry_after":1e300}"#).1, Some(RETRY_AFTER_MAX.as_millis()));
        assert_eq!(of(&[user, ("retry-after", "soon")], "{"), (Scope::User, None));
    }

    proptest! {
        /// LIM-2: whatever is sent, parsing yields a bounded wait, or none.
        #[test]
        fn lim_2_nonsense_is_no_wait(header in "[ -~]{0,40}", body in "\\PC{0,80}", number in any::<f64>()) {
            let lines = headers(&[("retry-after", &header), ("x-ratelimit-reset-after", &header)]);
            for body in [body, format!("{{\"retry_after\":{number}}}")] {
                let parsed = TooManyRequests::from_response(&lines, body.as_bytes(), Time::from_millis(9));
                prop_assert!(parsed.after.is_none_or(|after| after <= RETRY_AFTER_MAX));
            }
            let _ = RateLimitHeaders::from_headers(&lines, Time::from_millis(9));
        }
    }
}
