//! Everything specific to Shopify: what its responses report, what a query costs, how long to wait;
//! a client for programs that make their own calls, and bulk operations in the queue. Shopify is
//! plain HTTP with learned budgets. This crate does not know which store keeps them.
//!
//! ```
//! use serde_json::json;
//! use tidegate_shopify::{Method, Shopify};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let simulator = tidegate_sim::ShopifySim::start(Default::default()).await?;
//! # let (token, url) = ("secret", format!("http://{}/shops/acme", simulator.addr()));
//! // Processes share the shop's budget through `redis://…` and `postgres://…`.
//! let store = tidegate_shopify::store::open("memory:").await?;
//! let client = Shopify::builder("acme", token, store)
//! #   .base_url(url)
//!     .build()?;
//!
//! // Waits for the shop's budget, adjusts to what the response reports, and retries a lost call.
//! let query = "query($n: Int!) { products(first: $n) { nodes { id } } }";
//! let page = client.graphql(query, json!({ "n": 10 })).await?;
//! println!("{}", page.data["products"]["nodes"]);
//! let shop = client.rest(Method::Get, "shop.json", None).await?;
//! println!("{}", shop.body["shop"]["name"]);
//!
//! let mutation =
//!     r#"mutation { tagsAdd(id: "gid://shopify/Product/7", tags: ["a"]) { node { id } } }"#;
//! match client.graphql(mutation, ()).await {
//!     Err(error) if error.is_unknown() => println!("it may have taken effect: check first"),
//!     other => println!("{:?}", other?.meta.cost.actual),
//! }
//!
//! // In bulk: one at a time per shop, across all processes.
//! let bulk = client.bulk();
//! let running = bulk.query("{ products { edges { node { id title } } } }").await?;
//! let finished = running.wait().await?;
//! if let Some(url) = &finished.url {
//!     let mut lines = bulk.lines(url).await?;
//!     while let Some(line) = lines.next_line().await? {
//!         println!("{} bytes", line.len());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The features `embedded` (default), `redis` and `postgres` choose the stores.

pub mod budget;
pub mod bulk;
pub mod client;
pub mod cost;
pub mod delay;
pub mod dialect;
pub mod document;
mod endpoint;
pub mod executor;
mod idempotent;
mod once_logger;
mod query;
pub mod response_meta;
pub mod shop;
pub mod version;

pub use bulk::{Bulk, CompletedBulk, ResultLines, RunningBulk};
pub use client::{Error, Result, Shopify, ShopifyErrorKind};
pub use delay::ThrottleStatus;
pub use dialect::ShopifyDialect;
pub use response_meta::{GraphqlErrorCode, GraphqlOutcome, QueryCost, ResponseMeta};
pub use shop::ShopId;
pub use version::ApiVersion;

#[doc(inline)]
pub use tidegate_limits::store;
pub use tidegate_upstream::{Method, Secret};
