//! Everything specific to Shopify: what its responses report, what a query costs, how long to wait;
//! a client for programs that make their own calls, and bulk operations in the queue. Shopify is
//! plain HTTP with learned budgets. This crate does not know which store keeps them.
//!
//! ```no_run
//! use std::sync::Arc;
//! use serde_json::json;
//! use tidegate_shopify::{Shopify, ShopifyErrorKind};
//! use tidegate_upstream::Method;
//! # use tidegate_store::{Store, WallClock};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // In production: tidegate_store_redis::open("redis://127.0.0.1:6379").await?
//! let store: Arc<dyn Store> = tidegate_store_embedded::open("memory:", Arc::new(WallClock))?;
//! let client = Shopify::builder("acme", std::env::var("ACME_TOKEN")?, store).build()?;
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
//! match bulk.query("{ products { edges { node { id title } } } }").await {
//!     Ok(running) => {
//!         let finished = running.wait().await?;
//!         if let Some(url) = &finished.url {
//!             let mut lines = bulk.lines(url).await?;
//!             while let Some(line) = lines.next_line().await? {
//!                 println!("{} bytes", line.len());
//!             }
//!         }
//!     }
//!     Err(error) if matches!(error.kind(), ShopifyErrorKind::Busy { .. }) => {
//!         println!("later: {error}");
//!     }
//!     Err(error) => return Err(error.into()),
//! }
//! # Ok(())
//! # }
//! ```

pub mod budget;
pub mod bulk;
pub mod client;
pub mod cost;
pub mod delay;
pub mod dialect;
pub mod document;
pub mod endpoint;
pub mod executor;
pub mod idempotent;
mod once_logger;
pub mod query;
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
