//! The embedded backend: one directory with SQLite files (`Embedded`), or plain memory (`Memory`). Both keep the
//! promises of the storage ports in one process; neither knows what an operation is or who calls it.

mod checks;
pub mod embedded;
mod matching;
pub mod memory;
mod register;
mod tenure;

use std::path::Path;
use std::sync::Arc;

pub use embedded::{Embedded, Faults, Options};
pub use memory::Memory;
use tidegate_store::{Clock, Error, Kind, Result, Store};

/// Opens the store that a URL names: `file:DIR` or `memory:`.
///
/// # Errors
/// `Invalid` when the URL names no embedded store; else whatever keeps the directory from being opened.
pub fn open(url: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn Store>> {
    if url == "memory:" {
        return Ok(Arc::new(Memory::new(clock)));
    }
    let dir = url.strip_prefix("file:").map(|rest| rest.strip_prefix("//").unwrap_or(rest));
    match dir {
        Some(dir) if !dir.is_empty() => Ok(Arc::new(Embedded::open(Path::new(dir), Options::new(clock))?)),
        _ => Err(Error::new(Kind::Invalid, "an embedded store is named file:DIR or memory:")),
    }
}
