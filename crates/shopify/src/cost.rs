//! What a call will cost before Shopify has said it: estimated from its text, and once it was answered, remembered by
//! its shape. An estimate is no judgement: it only says how much to set aside, and what is too much is Shopify's to say.

mod cache;
mod estimate;
mod shape;
mod variables;

pub use cache::CostCache;
pub use estimate::estimate;
pub use shape::{CallShape, rest_shape};
pub use variables::Variables;

/// What a text that cannot be read is taken to cost, in points.
pub const UNREADABLE_COST: u64 = 50;
/// The most that one query may cost on any plan, in points.
pub const SINGLE_MAX: u64 = 1_000;
/// The most objects of one page.
pub const PAGE_MAX: u64 = 250;
