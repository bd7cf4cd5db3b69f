//! Token buckets and leases that any number of processes share through a store, for programs that
//! make their own calls. This crate does not know which store it uses, or what the tokens and
//! leases are for.
//!
//! ```
//! use std::time::Duration;
//!
//! use tidegate_limits::{LeaseAcquisition, NamedLease, SharedBucket, TokenTakeOutcome};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Processes share `redis://…` and `postgres://…`.
//! let store = tidegate_limits::store::open("memory:").await?;
//!
//! // At most 40 at once, refilled with 2 each second.
//! let requests = SharedBucket::new(store.clone(), "shop-7/requests", 40, 2.0)?;
//! match requests.try_take(1).await? {
//!     TokenTakeOutcome::Granted(grant) => println!("go; {} are left", grant.remaining()),
//!     TokenTakeOutcome::Wait(wait) => println!("retry in {:?}", wait.delay),
//! }
//! // Or wait in the queue; then settle the actual cost.
//! let grant = requests.take(3).await?;
//! grant.settle(2.5).await?;
//!
//! // One bulk job for each shop.
//! let bulk = NamedLease::new(store, "bulk-lock:7", Duration::from_secs(30))?;
//! if let LeaseAcquisition::Held(guard) = bulk.acquire_within(Duration::from_secs(5)).await? {
//!     tokio::select! {
//!         () = work(guard.fence()) => {}
//!         () = guard.lost() => println!("another holder may have it now: stop"),
//!     }
//!     guard.release().await?;
//! }
//! # Ok(())
//! # }
//! # async fn work(_fence: u64) {}
//! ```
//!
//! The features `embedded` (default), `redis` and `postgres` choose the stores.

mod bucket;
mod error;
mod fixed_share;
mod grant;
mod lease;
mod tokens;

pub use bucket::params::ReportedLevels;
pub use bucket::{SharedBucket, TokenTakeOutcome, Wait, take_all, take_all_within, try_take_all};
pub use error::{Error, Result};
pub use fixed_share::FixedShare;
pub use grant::Grant;
pub use lease::guard::LeaseGuard;
pub use lease::token::LeaseToken;
pub use lease::{LeaseAcquisition, NamedLease};
pub use tokens::Tokens;

#[doc(inline)]
pub use tidegate_backend as store;
pub use tidegate_core::Time;

use tidegate_core::bounds::NAME_LEN_MAX;

/// Checks a name against the length that every store supports.
fn check_name(what: &str, name: impl Into<String>) -> Result<String> {
    let name = name.into();
    if !tidegate_core::shared::is_name(&name) {
        let length = name.len();
        let message =
            format!("The name of a {what} is 1 to {NAME_LEN_MAX} bytes on one line; this one has {length}.");
        return Err(Error::Invalid(message));
    }
    Ok(name)
}
