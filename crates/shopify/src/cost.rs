//! The cost of a call before Shopify has reported it: estimated from its text, and cached by its
//! shape once a response has arrived. An estimate decides nothing: it only says how much to
//! reserve, and Shopify decides what is too much.

mod cache;
mod estimate;
mod shape;
mod variables;

pub use cache::CostCache;
pub use estimate::estimate;
pub use shape::{CallShape, rest_shape};
pub use variables::Variables;

/// The assumed cost of a text that cannot be parsed, in points.
pub const UNREADABLE_COST: u64 = 50;
