//! Call costs and the state of limits, for people who look later. The append that settles a call
//! writes its costs (`Batch::costs`), so no crash loses or doubles one; the state of limits is
//! written periodically. Nothing that runs reads any of it.

mod bill;

use std::borrow::Cow;
use std::sync::Arc;

use tidegate_core::id::Partition;
use tidegate_core::operation::MICRO;
use tidegate_core::{Fence, OperationId, Time};

pub use bill::{CostLine, CostQuery, CostReport, merge_reports, sum_costs};

use crate::StoreFuture;
use crate::log::{Ownership, Retention};

/// What one call cost in one limit, in micro-tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// When its response came.
    pub at: Time,
    /// The operation of the call.
    pub operation: OperationId,
    /// The claim under which the call was made.
    pub claim: Fence,
    /// Its position among the costs of that call.
    pub nth: u8,
    /// The full name of the limit.
    pub limit: Arc<str>,
    /// What similar calls have in common.
    pub shape: Arc<str>,
    /// The amount taken before it was sent.
    pub requested: u64,
    /// The actual cost, if the response reported it.
    pub actual: Option<u64>,
    /// What the limit restored per second, if the response reported it.
    pub restore_rate: Option<u64>,
}

impl Cost {
    /// The effective cost: the actual one, or the amount taken when none was reported.
    #[must_use]
    pub const fn effective_cost(&self) -> u64 {
        match self.actual {
            Some(actual) => actual,
            None => self.requested,
        }
    }
}

/// The state of a limit at one time. Figures are in micro-tokens; those of a cap are slots, also in
/// millionths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSnapshot {
    /// Its name.
    pub name: Arc<str>,
    /// `drip`, `window`, `gate` or `cap`.
    pub kind: Cow<'static, str>,
    /// Its capacity.
    pub capacity: Option<u64>,
    /// Its refill per second.
    pub refill_per_s: Option<u64>,
    /// What is left.
    pub level: Option<u64>,
    /// Where its figures come from: `config`, `operator` or `learned`.
    pub source: Cow<'static, str>,
    /// The time until which the upstream closed it.
    pub closed_until: Option<Time>,
    /// The time of this state.
    pub updated_at: Time,
}

/// Call costs and limits that a store keeps for people.
pub trait Costs: Send + Sync {
    /// Returns call costs by shape, over all partitions.
    fn cost_report(&self, question: CostQuery) -> StoreFuture<'_, CostReport>;

    /// Removes costs of calls that completed before the retention time, at most so many; returns
    /// how many. `Fenced` when a newer owner exists.
    fn sweep_costs(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize>;

    /// Saves the state of the partition's limits. Each replaces the saved state of that limit.
    /// `Fenced` when a newer owner exists.
    fn save_limit_snapshots(&self, owner: Ownership, standings: Vec<LimitSnapshot>) -> StoreFuture<'_, ()>;

    /// Removes the saved state of limits that are gone: of those with these names, and of all whose
    /// state was last saved before `before`. `Fenced` when a newer owner exists.
    fn remove_limit_snapshots(
        &self,
        owner: Ownership,
        names: Vec<Arc<str>>,
        before: Time,
    ) -> StoreFuture<'_, ()>;

    /// Returns the last saved state of a partition's limits, by name.
    fn limit_snapshots(&self, partition: Partition) -> StoreFuture<'_, Vec<LimitSnapshot>>;
}

/// Converts micro-tokens to tokens, the unit of tables, which people can sum up.
#[must_use]
pub fn micro_to_tokens(micro: u64) -> f64 {
    micro as f64 / MICRO as f64
}

/// Converts tokens of a table to micro-tokens. Exact below two thousand million tokens, which is
/// more than anything costs.
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
