//! What the budgets of a shop are called and what they are until it has said something else: for the queue's dialect, for its
//! bulk operations and for the client alike. What is left of them is kept elsewhere.

/// The budget of points, as `cost` calls it.
pub const POINTS: &str = "points";
/// The budget of REST calls, as `cost` calls it.
pub const REQUESTS: &str = "requests";
/// The places for bulk operations, as `cost` calls them.
pub const BULK: &str = "bulk";
/// The places for all other calls, where the configuration has any, as `cost` calls them.
pub const AT_ONCE: &str = "at_once";

/// What a budget is until the first answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialBudget {
    /// What it holds.
    pub capacity: u32,
    /// What comes back each second.
    pub refill_per_s: u32,
}

/// Points: 50 a second, and it holds 1,000.
pub const POINTS_INITIAL: InitialBudget = InitialBudget { capacity: 1_000, refill_per_s: 50 };
/// REST calls: 2 a second, and it holds 40.
pub const REQUESTS_INITIAL: InitialBudget = InitialBudget { capacity: 40, refill_per_s: 2 };

/// Bulk operations at once, when nothing else is said.
pub const BULK_AT_ONCE_DEFAULT: u32 = 1;
/// Most bulk operations at once that Shopify allows, from API version 2026-01 on.
pub const BULK_AT_ONCE_MAX: u32 = 5;
