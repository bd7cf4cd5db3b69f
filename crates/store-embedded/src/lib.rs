//! The embedded backend: one directory with SQLite files (`EmbeddedStore`), or plain memory
//! (`MemoryStore`). Both implement the storage ports within one process; neither knows what an
//! operation is or who calls it.

mod checks;
pub mod embedded;
mod epoch_lease;
pub mod memory;
mod node_registry;
mod query_filter;

use std::path::Path;
use std::sync::Arc;

pub use embedded::{EmbeddedStore, Faults, Options};
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
