//! The calls that REST has counted: `X-Shopify-Shop-Api-Call-Limit: 32/40`. No header has the rate;
//! on every known plan the bucket drains in 20 s, and the rate is derived from that.

use tidegate_core::bounds::TOKENS_MAX;
use tidegate_core::operation::MICRO;

/// Seconds until a full bucket has drained: 40 at 2/s, 80 at 4/s, 400 at 20/s.
const SECONDS_TO_EMPTY: u64 = 20;

/// Calls used, and the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimit {
    /// The calls counted now.
    pub used: u64,
    /// The maximum number of calls.
    pub size: u64,
}

impl CallLimit {
    /// Parses the header; `None` when it is not `used/size`, or allows nothing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (used, size) = text.split_once('/')?;
        let whole = |part: &str| {
            let part = part.trim();
            part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse::<u64>().ok())?
        };
        let size = whole(size).filter(|size| (1..=TOKENS_MAX).contains(size))?;
        Some(Self { used: whole(used)?.min(size), size })
    }

    /// Returns what is left, in micro-calls.
    #[must_use]
    pub const fn remaining(self) -> u64 {
        (self.size - self.used) * MICRO
    }

    /// Returns the maximum, in micro-calls.
    #[must_use]
    pub const fn capacity(self) -> u64 {
        self.size * MICRO
    }

    /// Returns what is restored per second, in micro-calls.
    #[must_use]
    pub const fn refill_per_s(self) -> u64 {
        self.capacity() / SECONDS_TO_EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-4 / LIM-8: the header of each plan gives the budget of that plan; nonsense gives none.
    #[test]
    fn lim_8_the_call_limit_gives_the_rate_of_the_plan() {
        for (text, remaining, rate) in
            [("32/40", 8, 2), ("1/80", 79, 4), (" 400 / 400 ", 0, 20), ("41/40", 0, 2)]
        {
            let calls = CallLimit::parse(text).unwrap();
            assert_eq!(
                (calls.remaining(), calls.refill_per_s()),
                (remaining * MICRO, rate * MICRO),
                "{text}"
            );
        }
        for text in
            ["", "/", "32", "a/40", "32/", "/40", "1/0", "-1/40", "1.5/40", "+1/40", "1/99999999999999999999"]
        {
            assert_eq!(CallLimit::parse(text), None, "{text}");
        }
    }
}
