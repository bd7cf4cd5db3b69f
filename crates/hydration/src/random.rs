//! Correlation ids and jitter.

use tidegate_core::hydration::CorrelationId;

/// A number for jitter. Without the system's randomness there is none.
pub(crate) fn chance() -> u32 {
    getrandom::u32().unwrap_or(0)
}

/// An id for a caller that has none of its own.
pub(crate) fn correlation_id() -> CorrelationId {
    let number =
        (u128::from(getrandom::u64().unwrap_or(0)) << 64) | u128::from(getrandom::u64().unwrap_or(0));
    correlation(&format!("{number:032x}"))
}

#[expect(clippy::expect_used, reason = "32 digits are within the bound")]
fn correlation(text: &str) -> CorrelationId {
    CorrelationId::new(text).expect("a short id")
}
