//! What is particular to Shopify: what its answers say, what a query costs, how long to wait. Shopify is plain HTTP
//! with budgets that are learned; which call is next, and when, is decided elsewhere, and no store is known here.

pub mod cost;
pub mod delay;
pub mod dialect;
pub mod document;
pub mod idempotent;
pub mod query;
pub mod said;
pub mod shop;
pub mod version;

pub use delay::ThrottleStatus;
pub use dialect::ShopifyDialect;
pub use said::{Code, Cost, Said};
pub use shop::ShopId;
pub use version::ApiVersion;
