//! Amounts of tokens as people write them (`3`, `0.5`) and as stores count them: exactly, in
//! millionths. An invalid amount is kept as it was given, and rejected with a message where it is
//! used.

use tidegate_core::bounds::TOKENS_MAX;
use tidegate_core::operation::MICRO;

use crate::{Error, Result};

/// The smallest positive amount: a millionth of a token.
pub(crate) const LEAST: u64 = 1;
/// The smallest cost: zero.
pub(crate) const NOTHING: u64 = 0;

/// An amount of tokens, whole or fractional, with a precision of one millionth. Convert from
/// numbers: `3.into()`, `0.5.into()`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tokens {
    /// In millionths; `None` when the amount is invalid.
    micro: Option<u64>,
    said: f64,
}

impl Tokens {
    /// Creates an amount from millionths of a token, the unit of APIs and stores.
    #[must_use]
    pub const fn from_micro(micro: u64) -> Self {
        Self { micro: Some(micro), said: micro as f64 / MICRO as f64 }
    }

    /// Returns the amount in millionths, if it is at least `least` of them and within bounds.
    pub(crate) fn checked(self, what: &str, bucket: &str, least: u64) -> Result<u64> {
        let most = TOKENS_MAX.saturating_mul(MICRO);
        self.micro.filter(|micro| (least..=most).contains(micro)).ok_or_else(|| {
            let (said, least) = (self.said, to_tokens(least));
            Error::Invalid(format!(
                "The {what} of the bucket {bucket:?} is {said}, and must be {least} to {TOKENS_MAX}."
            ))
        })
    }
}

/// Converts millionths to tokens, for display.
pub(crate) fn to_tokens(micro: u64) -> f64 {
    micro as f64 / MICRO as f64
}

impl From<f64> for Tokens {
    fn from(said: f64) -> Self {
        let micro = (said * MICRO as f64).round();
        // Below 2^64 and not negative: the conversion is exact. NaN is in no range.
        let fits = (0.0..18_446_744_073_709_551_616.0).contains(&micro);
        Self { micro: fits.then_some(micro as u64), said }
    }
}

impl From<u64> for Tokens {
    fn from(whole: u64) -> Self {
        Self { micro: whole.checked_mul(MICRO), said: whole as f64 }
    }
}

impl From<u32> for Tokens {
    fn from(whole: u32) -> Self {
        u64::from(whole).into()
    }
}

impl From<i32> for Tokens {
    fn from(whole: i32) -> Self {
        u32::try_from(whole).map_or(Self { micro: None, said: f64::from(whole) }, Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_or_refused_in_words() {
        let micro = |tokens: Tokens| tokens.checked("cost", "b", NOTHING).ok();
        assert_eq!(micro(3.into()), Some(3_000_000));
        assert_eq!(micro(0.1.into()), Some(100_000));
        assert_eq!(micro(0.into()), Some(0));
        assert_eq!(micro(TOKENS_MAX.into()), Some(TOKENS_MAX * MICRO));
        for odd in [f64::NAN, f64::INFINITY, -0.5, 1e30] {
            assert_eq!(micro(odd.into()), None, "{odd}");
        }
        assert_eq!(
            (micro((-1).into()), micro((TOKENS_MAX + 1).into()), micro(u64::MAX.into())),
            (None, None, None)
        );
        let refused = Tokens::from(0).checked("refill", "shop", LEAST).unwrap_err();
        let said = "The refill of the bucket \"shop\" is 0, and must be 0.000001 to 1000000000000.";
        assert_eq!(refused.to_string(), said);
    }
}
