//! The embedded backend: one directory with SQLite files (`EmbeddedStore`), or plain memory
//! (`MemoryStore`). Both implement the storage ports within one process; neither knows what an
//! operation is or who calls it.
//!
//! ```
//! use std::time::Duration;
//!
//! use tidegate_store::{SharedState, Store};
//! use tidegate_store_embedded::{EmbeddedStore, Options};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let temporary = tempfile::tempdir()?;
//! # let folder = temporary.path();
//! let store = EmbeddedStore::open(folder, Options::default())?;
//! let lease = store.acquire_lease("bulk-lock:7", Duration::from_secs(30)).await?;
//! println!("{lease:?}");
//! # Ok(())
//! # }
//! ```

mod checks;
mod embedded;
mod epoch_lease;
mod memory;
mod node_registry;
mod query_filter;

use std::path::Path;
use std::sync::Arc;

// For the tests of stores.
#[doc(hidden)]
pub use embedded::Faults;
pub use embedded::{EmbeddedStore, Options};
pub use memory::MemoryStore;
use tidegate_store::{Clock, Error, Result, Store, StoreErrorKind};

/// Opens the store that a URL names: `file:DIR` or `memory:`.
///
/// # Errors
/// `Invalid` when the URL does not name an embedded store; otherwise the error of opening the
/// directory.
pub fn open(url: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>> {
    if url == "memory:" {
        return Ok(Arc::new(MemoryStore::new(clock)));
    }
    let dir = url.strip_prefix("file:").map(|rest| rest.strip_prefix("//").unwrap_or(rest));
    match dir {
        Some(dir) if !dir.is_empty() => {
            Ok(Arc::new(EmbeddedStore::open(Path::new(dir), Options::new(clock))?))
        }
        _ => Err(Error::new(StoreErrorKind::Invalid, "the URL of an embedded store is file:DIR or memory:")),
    }
}
