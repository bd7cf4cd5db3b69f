//! The write-ahead log's access to the thread that writes SQLite: for threads that may block, with
//! commits that need not be durable by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_store::{Error, Result, StoreErrorKind};
use tokio::sync::{mpsc, oneshot};

use super::partition_meta::Counts;
use super::tail::PendingAppend;
use super::writer::{Step, StepContext, StepResult, Task};

/// Applies appends that are durable in the write-ahead log to SQLite.
#[derive(Clone)]
pub(super) struct WalApplier {
    queue: mpsc::Sender<Box<dyn Task>>,
    stopped: Arc<AtomicBool>,
    counts: Arc<Counts>,
}

impl WalApplier {
    pub(super) const fn new(
        queue: mpsc::Sender<Box<dyn Task>>,
        stopped: Arc<AtomicBool>,
        counts: Arc<Counts>,
    ) -> Self {
        Self { queue, stopped, counts }
    }

    /// Applies appends, in order; readers see them, though they are not yet durable in SQLite.
    pub(super) fn apply(&self, appends: Vec<Arc<PendingAppend>>) -> Result<()> {
        self.step(appends.len(), false, move |desk| {
            super::log::apply_appends(desk, &appends)?;
            Ok(Ok(()))
        })
    }

    /// Syncs: everything applied is durable when this returns.
    pub(super) fn sync(&self) -> Result<()> {
        self.step(1, true, |desk| {
            let last = desk.meta.last.0.cast_signed();
            super::schema::set_meta(desk.sql, "synced", last)?;
            Ok(Ok(()))
        })
    }

    /// The last append that was applied.
    pub(super) fn applied_upto(&self) -> tidegate_store::log::Lsn {
        self.counts.last()
    }

    /// Stops all writes.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    fn step<T: Send + 'static>(
        &self,
        rows: usize,
        durable: bool,
        work: impl FnMut(&mut StepContext<'_>) -> StepResult<T> + Send + 'static,
    ) -> Result<T> {
        let gone =
            || Error::new(StoreErrorKind::Unsure, "the store's writer has ended; the store must be reopened");
        let (tell, told) = oneshot::channel();
        let step = Step { rows, durable, work, then: |_: &_| {}, answer: None, reply: tell };
        self.queue.blocking_send(Box::new(step)).map_err(|_| gone())?;
        told.blocking_recv().unwrap_or_else(|_| Err(gone()))
    }
}
