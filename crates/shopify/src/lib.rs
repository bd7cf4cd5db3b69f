//! What is particular to Shopify: what its answers say, what a query costs, how long to wait; a client for programs that
//! make their own calls, and bulk operations in the queue. Shopify is plain HTTP with budgets that are learned. Which store
//! they are kept in is not known here.
//!
//! ```no_run
//! use std::sync::Arc;
//! use serde_json::json;
//! use tidegate_shopify::{Kind, Shopify};
//! use tidegate_upstream::Method;
//! # use tidegate_store::{Store, WallClock};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! // In earnest: tidegate_store_redis::open("redis://127.0.0.1:6379").await?
//! let store: Arc<dyn Store> = tidegate_store_embedded::open("memory:", Arc::new(WallClock))?;
//! let client = Shopify::builder("acme", std::env::var("ACME_TOKEN")?, store).build()?;
//!
//! // Waits for the shop's budget, follows what the answer says of it, and is repeated when it is lost.
//! let page = client.graphql("query($n: Int!) { products(first: $n) { nodes { id } } }", json!({ "n": 10 })).await?;
//! println!("{}", page.data["products"]["nodes"]);
//! let shop = client.rest(Method::Get, "shop.json", None).await?;
//! println!("{}", shop.body["shop"]["name"]);
//!
//! match client.graphql("mutation { tagsAdd(id: \"gid://shopify/Product/7\", tags: [\"a\"]) { node { id } } }", ()).await {
//!     Err(error) if error.is_unknown() => println!("it may have happened: look first"),
//!     other => println!("{:?}", other?.said.cost.actual),
//! }
//!
//! // In bulk: one at a time for each shop, whichever process runs it.
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
//!     Err(error) if matches!(error.kind(), Kind::Busy { .. }) => println!("later: {error}"),
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
