//! Connections for reading. They see everything that has been acknowledged and never wait for the
//! writer.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rusqlite::Connection;
use tidegate_core::bounds::STORE_READS_MAX;
use tidegate_store::Result;

use super::errors::nothing_changed;
use super::schema;

/// Idle connections that are kept open: those, and one for readers that do not wait for a permit.
const IDLE_MAX: usize = STORE_READS_MAX + 1;

/// The idle connections.
pub(super) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::default() }
    }

    /// Reads in one transaction, so that all of it is from one moment.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        self.with(|sql| look(sql).map_err(|cause| nothing_changed(&self.path, &cause)))
    }

    /// Like `read`, for work with errors of its own.
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

    /// The path of the file.
    pub(super) fn path(&self) -> &std::path::Path {
        &self.path
    }
}
