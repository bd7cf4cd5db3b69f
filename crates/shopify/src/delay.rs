//! Computes how long to wait: from a throttle status and a cost, from a `Retry-After`, from a 429.
//! Pure arithmetic without store, clock or state; nothing here sleeps, and nonsense gives `None`,
//! never a panic.

use serde::Deserialize;
use tidegate_core::Time;
use tidegate_core::operation::MICRO;
use tidegate_core::time::millis_up;
pub use tidegate_upstream::retry_after;

/// The state of a points budget as Shopify reports it. All three in micro-points, so that decimals
/// are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThrottleStatus {
    /// The most it holds.
    pub maximum: u64,
    /// What is available now.
    pub available: u64,
    /// What is restored per second.
    pub restore_per_s: u64,
}

impl ThrottleStatus {
    /// Converts whole points, in the order in which Shopify reports them.
    #[must_use]
    pub const fn of_points(maximum: u64, available: u64, restore_per_s: u64) -> Self {
        Self {
            maximum: maximum.saturating_mul(MICRO),
            available: available.saturating_mul(MICRO),
            restore_per_s: restore_per_s.saturating_mul(MICRO),
        }
    }

    /// Returns whether a cost in micro-points can ever be available. If not, waiting is pointless.
    #[must_use]
    pub const fn can_hold(&self, cost: u64) -> bool {
        cost <= self.maximum
    }

    /// Returns the milliseconds until a cost in micro-points is available: `ceil((cost - available)
    /// / restore rate * 1000)`, and 0 when it is available already. `None` when nothing is
    /// restored.
    ///
    /// ```
    /// use tidegate_shopify::ThrottleStatus;
    ///
    /// let status = ThrottleStatus::of_points(2_000, 666, 100);
    /// assert_eq!(status.delay_ms(752_000_000), Some(860));
    /// assert_eq!(status.delay_ms(666_000_000), Some(0));
    /// assert_eq!(ThrottleStatus::of_points(2_000, 0, 0).delay_ms(1), None);
    /// ```
    #[must_use]
    pub fn delay_ms(&self, cost: u64) -> Option<u64> {
        let missing = cost.saturating_sub(self.available);
        if missing == 0 {
            return Some(0);
        }
        if self.restore_per_s == 0 {
            return None;
        }
        let millis = (u128::from(missing) * 1_000).div_ceil(u128::from(self.restore_per_s));
        Some(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

/// Returns the milliseconds until `cost` whole points are available.
///
/// ```
/// use tidegate_shopify::delay::from_throttle_status;
/// use tidegate_shopify::ThrottleStatus;
///
/// let status = ThrottleStatus::of_points(1_000, 40, 50);
/// assert_eq!(from_throttle_status(&status, 101), Some(1_220));
/// ```
#[must_use]
pub fn from_throttle_status(status: &ThrottleStatus, cost: u64) -> Option<u64> {
    status.delay_ms(cost.saturating_mul(MICRO))
}

/// Parses a `Retry-After` header into milliseconds from `now`: seconds, decimals or an HTTP date.
/// `None` for nonsense.
///
/// ```
/// use tidegate_core::Time;
/// use tidegate_shopify::delay::from_retry_after;
///
/// let now = Time::from_millis(784_111_777_000); // 1994-11-06 08:49:37 UTC
/// assert_eq!(from_retry_after("2.0", now), Some(2_000));
/// assert_eq!(from_retry_after("Sun, 06 Nov 1994 08:49:39 GMT", now), Some(2_000));
/// assert_eq!(from_retry_after("soon", now), None);
/// ```
#[must_use]
pub fn from_retry_after(header: &str, now: Time) -> Option<u64> {
    retry_after::parse(header, now).map(millis_up)
}

/// A 429, as far as it says when to retry.
#[derive(Clone, Copy, Debug, Default)]
pub struct TooManyRequests<'a> {
    /// Its `Retry-After` header.
    pub retry_after: Option<&'a str>,
    /// Its `Date` header: a `Retry-After` that is a date is compared with this clock, not with
    /// ours.
    pub date: Option<&'a str>,
    /// Its body: JSON, HTML or nothing.
    pub body: &'a [u8],
}

/// Returns the milliseconds that a 429 asks to wait: the longer one of header and body, since they
/// can disagree. `None` when neither says anything; then back off.
///
/// ```
/// use tidegate_core::Time;
/// use tidegate_shopify::delay::{TooManyRequests, from_429};
///
/// let body = br#"{"errors":"Exceeded 2 calls per second for api client."}"#;
/// let both = TooManyRequests { retry_after: Some("2.0"), body, ..TooManyRequests::default() };
/// assert_eq!(from_429(&both, Time::ZERO), Some(2_000));
/// let bare = TooManyRequests { body, ..TooManyRequests::default() };
/// assert_eq!(from_429(&bare, Time::ZERO), Some(500));
/// assert_eq!(from_429(&TooManyRequests::default(), Time::ZERO), None);
/// ```
#[must_use]
pub fn from_429(response: &TooManyRequests<'_>, now: Time) -> Option<u64> {
    let now = response.date.and_then(retry_after::parse_http_date).unwrap_or(now);
    let header = response.retry_after.and_then(|header| from_retry_after(header, now));
    header.max(from_body(response.body))
}

/// The part of a 429's body that says when to retry.
#[derive(Deserialize)]
struct TooManyRequestsBody {
    #[serde(default)]
    errors: serde_json::Value,
    #[serde(default)]
    retry_after: serde_json::Value,
}

/// Longer bodies are not searched for a time.
const BODY_LEN_MAX: usize = 64 * 1024;

fn from_body(body: &[u8]) -> Option<u64> {
    if body.len() > BODY_LEN_MAX {
        return None;
    }
    let body: TooManyRequestsBody = serde_json::from_slice(body).ok()?;
    let said = match &body.retry_after {
        serde_json::Value::Number(number) => from_seconds(&number.to_string()),
        serde_json::Value::String(text) => from_seconds(text),
        _ => None,
    };
    said.max(body.errors.as_str().and_then(from_rate))
}

/// Parses seconds only; a body has no dates.
fn from_seconds(text: &str) -> Option<u64> {
    text.starts_with(|c: char| c.is_ascii_digit()).then(|| from_retry_after(text, Time::ZERO))?
}

/// Parses "Exceeded 2 calls per second …": one call is available again after half a second.
fn from_rate(sentence: &str) -> Option<u64> {
    let (rate, rest) = sentence.strip_prefix("Exceeded ")?.split_once(' ')?;
    let rate = rate.parse::<u64>().ok().filter(|rate| *rate > 0 && rest.starts_with("calls per second"))?;
    Some(1_000_u64.div_ceil(rate))
}

#[cfg(test)]
mod tests;
