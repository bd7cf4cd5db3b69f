//! What calls cost and how limits stand, for people who look later. Costs are written by the append that settles their
//! calls (`Batch::costs`), so no crash loses or doubles one; how limits stand is written now and then. Nothing that runs
//! reads any of it.

mod bill;

use std::borrow::Cow;
use std::sync::Arc;

use tidegate_core::id::Partition;
use tidegate_core::operation::MICRO;
use tidegate_core::{Fence, OperationId, Time};

pub use bill::{CostLine, CostQuery, CostReport, merge_reports, sum_costs};

use crate::StoreFuture;
use crate::log::{Ownership, Retention};

/// Rows that one question looks at, the newest ones.
pub const SCAN_MAX: u32 = 500_000;

/// What one call cost of one limit, in micro-tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// When its answer came.
    pub at: Time,
    /// Whose call it was.
    pub operation: OperationId,
    /// By which claim it was made.
    pub claim: Fence,
    /// Its place among the costs of that call.
    pub nth: u8,
    /// The limit, by its whole name.
    pub limit: Arc<str>,
    /// What calls of its like have in common.
    pub shape: Arc<str>,
    /// What was taken before it was sent.
    pub requested: u64,
    /// What it really cost, where the answer said so.
    pub actual: Option<u64>,
}

impl Cost {
    /// What it came to: what it really cost, or what was taken for it when nobody said.
    #[must_use]
    pub const fn effective_cost(&self) -> u64 {
        match self.actual {
            Some(actual) => actual,
            None => self.requested,
        }
    }
}

/// The upstream that a limit belongs to, by the limit's name.
#[must_use]
pub fn upstream_of(limit: &str) -> &str {
    limit.split_once('/').map_or(limit, |(upstream, _)| upstream)
}

/// A limit as it stood at a time. Figures are in micro-tokens; those of a cap are places, in millionths too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSnapshot {
    /// Its name.
    pub name: Arc<str>,
    /// `drip`, `window`, `gate` or `cap`.
    pub kind: Cow<'static, str>,
    /// The most it holds.
    pub capacity: Option<u64>,
    /// What comes back each second.
    pub refill_per_s: Option<u64>,
    /// What is left.
    pub level: Option<u64>,
    /// Where its figures come from: `config`, `operator` or `learned`.
    pub source: Cow<'static, str>,
    /// Closed by the upstream until then.
    pub closed_until: Option<Time>,
    /// When it stood so.
    pub updated_at: Time,
}

/// The costs and limits that a store keeps for people.
pub trait Costs: Send + Sync {
    /// What calls cost, by shape, over all partitions.
    fn cost_report(&self, question: CostQuery) -> StoreFuture<'_, CostReport>;

    /// Removes costs of calls that were answered before the time, at most so many; answers how many went. `Fenced` when a
    /// newer owner exists.
    fn sweep_costs(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize>;

    /// Keeps how limits of the partition stand, each in place of what was kept of it before. `Fenced` when a newer owner
    /// exists.
    fn save_limit_snapshots(&self, owner: Ownership, standings: Vec<LimitSnapshot>) -> StoreFuture<'_, ()>;

    /// The limits of a partition as they were last kept, by name.
    fn limit_snapshots(&self, partition: Partition) -> StoreFuture<'_, Vec<LimitSnapshot>>;
}

/// Micro-tokens as tables hold them: tokens, which people can sum up.
#[must_use]
pub fn micro_to_tokens(micro: u64) -> f64 {
    micro as f64 / MICRO as f64
}

/// Tokens of a table in micro-tokens. Exact below two thousand million tokens, which is more than anything costs.
#[must_use]
pub fn tokens_to_micro(tokens: f64) -> u64 {
    // A cast from a float saturates.
    (tokens * MICRO as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_went() {
        for number in [0, 1, 999_999, 52 * MICRO, 1_000_000_007, 1_999_999_999_999_999] {
            assert_eq!(tokens_to_micro(micro_to_tokens(number)), number);
        }
    }
}
