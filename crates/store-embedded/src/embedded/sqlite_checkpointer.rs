//! Checkpoints SQLite's log into the file in the background, so that the writer seldom has to.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tidegate_store::Result;

use super::lock::unusable;
use super::schema;

const EVERY: Duration = Duration::from_millis(250);

/// The checkpointing thread; it ends on drop.
pub(super) struct SqliteCheckpointer {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SqliteCheckpointer {
    /// Starts a thread that checkpoints whenever `written` is set.
    pub(super) fn start(path: &Path, written: Arc<AtomicBool>) -> Result<Self> {
        let sql = schema::mover(path)?;
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".into())
            .spawn(move || run(&sql, &stopped, &written))
            .map_err(|cause| unusable(path, cause))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for SqliteCheckpointer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(sql: &Connection, stopped: &mpsc::Receiver<()>, written: &AtomicBool) {
    while stopped.recv_timeout(EVERY) == Err(mpsc::RecvTimeoutError::Timeout) {
        if written.swap(false, Ordering::AcqRel) {
            // What could not be checkpointed stays in SQLite's log, where it is safe, and is
            // retried.
            let moved = sql.execute_batch("PRAGMA wal_checkpoint(PASSIVE)");
            if moved.is_err() {
                written.store(true, Ordering::Release);
            }
        }
    }
}
