//! The names of a shop's budgets and their initial values, shared by the queue's dialect, its bulk
//! operations and the client. What is left of them is kept elsewhere.

/// The budget of points, by its name in `cost`.
pub const POINTS: &str = "points";
/// The budget of REST calls, by its name in `cost`.
pub const REQUESTS: &str = "requests";
/// The slots for bulk operations, by their name in `cost`.
pub const BULK: &str = "bulk";
/// The slots for all other calls, where the configuration has any, by their name in `cost`.
pub const AT_ONCE: &str = "at_once";

/// A budget before the first response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialBudget {
    /// The most it holds.
    pub capacity: u32,
    /// The refill per second.
    pub refill_per_s: u32,
}

/// Points: 50 per second, with a capacity of 1,000.
pub const POINTS_INITIAL: InitialBudget = InitialBudget { capacity: 1_000, refill_per_s: 50 };
/// REST calls: 2 per second, with a capacity of 40.
pub const REQUESTS_INITIAL: InitialBudget = InitialBudget { capacity: 40, refill_per_s: 2 };

/// Bulk operations at once, by default.
pub const BULK_AT_ONCE_DEFAULT: u32 = 1;
