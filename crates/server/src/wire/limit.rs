//! An operator's request about a limit: other figures, the configured ones again, or to open it.

use std::fmt;
use std::time::Duration;

use tidegate_core::bounds::TOKENS_MAX;
use tidegate_core::bucket::default_margin;
use tidegate_core::fact::LimitShape;
use tidegate_core::operation::MICRO;

use super::field::Field;
use super::object::{Fields, missing, read};
use crate::error::{Error, ErrorCode, Result};

const NAMES: [&str; 7] = ["capacity", "refill_per_s", "period_ms", "at_once", "open", "reset", "strict"];

/// The longest period of a window: a year.
const PERIOD_MAX_MS: u64 = 366 * 86_400_000;

/// The request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LimitRequest {
    Set(LimitShape),
    /// Open it; if strict, refuse when it is open already.
    Open {
        strict: bool,
    },
    Reset,
}

impl fmt::Display for LimitRequest {
    /// Formats the request for the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens = |micro: u64| micro as f64 / MICRO as f64;
        match *self {
            Self::Set(LimitShape::Drip { capacity, refill_per_s, .. }) => {
                write!(f, "capacity {}, refill_per_s {}", tokens(capacity), tokens(refill_per_s))
            }
            Self::Set(LimitShape::Cap { at_once }) => write!(f, "at_once {at_once}"),
            Self::Set(LimitShape::Window { limit, period }) => {
                write!(f, "capacity {}, period_ms {}", tokens(limit), period.as_millis())
            }
            // This cannot be requested.
            Self::Set(LimitShape::Gate | LimitShape::Breaker { .. }) => f.write_str("another shape"),
            Self::Open { .. } => f.write_str("open"),
            Self::Reset => f.write_str("as configured"),
        }
    }
}

pub(crate) fn parse_limit_request(body: &[u8]) -> Result<LimitRequest> {
    let Fields { values, mut problems } = read(body, &NAMES)?;
    let field = |place: usize| Field { name: NAMES[place], raw: values[place] };
    let most = TOKENS_MAX as f64;
    let capacity = problems.check(field(0).figure(1.0..=most));
    let refill = problems.check(field(1).figure(0.000_001..=most));
    let period = problems.check(field(2).integer(0..=PERIOD_MAX_MS)).map(Duration::from_millis);
    let at_once = problems.check(field(3).integer(1..=u64::from(u32::MAX)));
    let [open, reset, strict] = [4, 5, 6].map(|place| problems.check(field(place).flag()));
    if strict.is_some() && open.is_none() {
        problems
            .add(Error::new(ErrorCode::Malformed, "The field \"strict\" goes with open.").field("strict"));
    }
    problems.finish()?;
    match (capacity, refill, period, at_once, open, reset) {
        (Some(capacity), Some(refill), None, None, None, None) => {
            let (capacity, refill_per_s) = (to_micro(capacity), to_micro(refill));
            let margin = default_margin(capacity, refill_per_s);
            Ok(LimitRequest::Set(LimitShape::Drip { capacity, refill_per_s, margin }))
        }
        (Some(capacity), None, Some(period), None, None, None) => {
            Ok(LimitRequest::Set(LimitShape::Window { limit: to_micro(capacity), period }))
        }
        (None, None, None, Some(at_once), None, None) => {
            Ok(LimitRequest::Set(LimitShape::Cap { at_once: u32::try_from(at_once).unwrap_or(u32::MAX) }))
        }
        (None, None, None, None, Some(true), None) => {
            Ok(LimitRequest::Open { strict: strict.unwrap_or(false) })
        }
        (None, None, None, None, None, Some(true)) => Ok(LimitRequest::Reset),
        (Some(_), None, None, None, None, None) => Err(missing("refill_per_s")),
        (None, Some(_), None, None, None, None) | (None, None, Some(_), None, None, None) => {
            Err(missing("capacity"))
        }
        _ => {
            let message =
                "Send capacity with refill_per_s or period_ms, or at_once, or open: true, or reset: true.";
            Err(Error::new(ErrorCode::Malformed, message).field("capacity"))
        }
    }
}

/// Converts tokens to micro-tokens. The bounds keep it in range, and a cast from a float saturates.
fn to_micro(tokens: f64) -> u64 {
    (tokens * MICRO as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_whole_sets() {
        let drip = LimitShape::Drip { capacity: 40_000_000, refill_per_s: 2_500_000, margin: 50_000 };
        assert_eq!(
            parse_limit_request(br#"{"capacity":40,"refill_per_s":2.5}"#),
            Ok(LimitRequest::Set(drip))
        );
        assert_eq!(
            parse_limit_request(br#"{"at_once":3}"#),
            Ok(LimitRequest::Set(LimitShape::Cap { at_once: 3 }))
        );
        let window = LimitShape::Window { limit: 40_000_000, period: Duration::from_secs(9) };
        assert_eq!(
            parse_limit_request(br#"{"capacity":40,"period_ms":9000}"#),
            Ok(LimitRequest::Set(window))
        );
        let open = |body: &[u8]| parse_limit_request(body);
        assert_eq!(open(br#"{"open":true}"#), Ok(LimitRequest::Open { strict: false }));
        assert_eq!(open(br#"{"open":true,"strict":true}"#), Ok(LimitRequest::Open { strict: true }));
        assert_eq!(parse_limit_request(br#"{"reset":true}"#), Ok(LimitRequest::Reset));
        let told = |body: &[u8]| parse_limit_request(body).unwrap().to_string();
        assert_eq!(told(br#"{"capacity":40,"refill_per_s":2.5}"#), "capacity 40, refill_per_s 2.5");
        assert_eq!([told(br#"{"at_once":3}"#), told(br#"{"open":true}"#)], ["at_once 3", "open"]);
        let table = [
            (&br#"{"capacity":40}"#[..], "refill_per_s"),
            (br#"{"refill_per_s":40}"#, "capacity"),
            (br#"{"period_ms":40}"#, "capacity"),
            (br#"{"capacity":4,"refill_per_s":2,"period_ms":40}"#, "capacity"),
            (br#"{"capacity":0,"refill_per_s":2}"#, "capacity"),
            (br#"{"capacity":4,"refill_per_s":-2}"#, "refill_per_s"),
            (br#"{"capacity":1e300,"refill_per_s":2}"#, "capacity"),
            (br#"{"capacity":"4","refill_per_s":2}"#, "capacity"),
            (br#"{"at_once":1.5}"#, "at_once"),
            (br#"{"at_once":1,"open":true}"#, "capacity"),
            (br#"{"open":false}"#, "capacity"),
            (br#"{"open":true,"reset":true}"#, "capacity"),
            (br#"{"reset":true,"strict":true}"#, "strict"),
            (br#"{"refill":1}"#, "refill"),
        ];
        for (body, field) in table {
            assert_eq!(parse_limit_request(body).unwrap_err().field.as_deref(), Some(field), "{body:?}");
        }
    }
}
