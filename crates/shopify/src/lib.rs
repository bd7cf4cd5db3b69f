//! What is particular to Shopify: what its answers say, what a query costs, how long to wait. Shopify is plain HTTP
//! with budgets that are learned; which call is next, and when, is decided elsewhere, and no store is known here.

pub mod bulk;
pub mod client;
pub mod delay;
pub mod executor;
pub mod said;
pub mod shop;
pub mod version;

pub use bulk::{Bulk, Finished, Lines, Running};
pub use client::{Error, Kind, Result, Shopify};
pub use delay::ThrottleStatus;
pub use said::{Code, Cost, Said};
pub use shop::ShopId;
pub use version::ApiVersion;
