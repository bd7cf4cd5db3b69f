//! Stand-alone buckets and leases that any number of processes share, over any store: what to use in a program that makes
//! its own calls. Nothing here knows which store it is, or what the tokens and leases are for.
//!
//! ```
//! use std::time::Duration;
//! use tidegate_limits::{Acquired, Bucket, Lease, Taken};
//! # use std::sync::Arc;
//! # use tidegate_store::{Store, WallClock};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In earnest: tidegate_store_redis::open("redis://127.0.0.1:6379").await?
//! let store: Arc<dyn Store> = tidegate_store_embedded::open("memory:", Arc::new(WallClock))?;
//!
//! // At most 40 at once, and 2 come back each second, whoever takes them.
//! let requests = Bucket::new(store.clone(), "shop-7/requests", 40, 2.0)?;
//! match requests.try_take(1).await? {
//!     Taken::Granted(grant) => println!("go; {} are left", grant.remaining()),
//!     Taken::Wait(wait) => println!("come back in {:?}", wait.delay),
//! }
//! // Or wait in line; then say what it really cost.
//! let grant = requests.take(3).await?;
//! grant.settle(2.5).await?;
//!
//! // One bulk job for each shop.
//! let bulk = Lease::new(store, "bulk-lock:7", Duration::from_secs(30))?;
//! if let Acquired::Held(guard) = bulk.acquire_within(Duration::from_secs(5)).await? {
//!     tokio::select! {
//!         () = work(guard.fence()) => {}
//!         () = guard.lost() => println!("somebody else may have it now: stop"),
//!     }
//!     guard.release().await?;
//! }
//! # Ok(())
//! # }
//! # async fn work(_fence: u64) {}
//! ```

mod bucket;
mod error;
mod grant;
mod lease;
mod tokens;

pub use bucket::params::ReportedLevels;
pub use bucket::{SharedBucket, TokenTakeOutcome, Wait, take_all, take_all_within, try_take_all};
pub use error::{Error, Result};
pub use grant::Grant;
pub use lease::guard::LeaseGuard;
pub use lease::{LeaseAcquisition, NamedLease};
pub use tokens::Tokens;

use tidegate_core::bounds::NAME_LEN_MAX;

/// Checks a name against the length that every store supports.
fn check_name(what: &str, name: impl Into<String>) -> Result<String> {
    let name = name.into();
    if name.is_empty() || name.len() > NAME_LEN_MAX || name.chars().any(char::is_control) {
        let length = name.len();
        let message =
            format!("The name of a {what} is 1 to {NAME_LEN_MAX} bytes on one line; this one has {length}.");
        return Err(Error::Invalid(message));
    }
    Ok(name)
}
