//! Connections for reading. They see everything that has been answered and never wait for the writer.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;
use tidegate_store::Result;

use super::errors::nothing_changed;
use super::schema;

/// Reads at once; whoever comes meanwhile waits. More would need more connections, each with a cache to be filled and
/// statements to be parsed, and no disk reads faster for it.
pub(super) const READS_MAX: usize = 4;
/// Connections kept open when nobody reads: those, and one for whoever does not wait.
const IDLE_MAX: usize = READS_MAX + 1;

/// Connections that are free.
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::default() }
    }

    /// Reads, all of it from one moment.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        self.with(|sql| look(sql).map_err(|cause| nothing_changed(&self.path, &cause)))
    }

    /// The same for reading that has failures of its own.
    pub(super) fn with<T>(&self, look: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let sql = kept.map_or_else(|| schema::reader(&self.path), Ok)?;
        let moment = sql.unchecked_transaction().map_err(|cause| nothing_changed(&self.path, &cause))?;
        let found = look(&moment);
        drop(moment);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && sql.is_autocommit() {
            idle.push(sql);
        }
        found
    }

    /// The file.
    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }
}
