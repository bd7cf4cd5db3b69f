//! Ids as Discord generates them: they contain the time, grow with it, and are text on the wire.

use serde_json::Value;
use tidegate_core::Time;

use crate::timestamp::date_and_time;

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
    format!("{}+00:00", date_and_time(time))
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
}
