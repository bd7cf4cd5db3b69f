//! The front's way to the thread that writes SQLite: from threads that may wait, with commits that need not be durable
//! by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_store::{Error, Result, StoreErrorKind};
use tokio::sync::{mpsc, oneshot};

use super::partition_meta::Counts;
use super::tail::PendingAppend;
use super::writer::{Step, StepContext, StepResult, Task};

/// Puts appends that are safe in the front where they can be found.
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

    /// Fills in appends, in order; they are there for whoever reads, though not yet on the disk.
    pub(super) fn apply(&self, appends: Vec<Arc<PendingAppend>>) -> Result<()> {
        self.step(appends.len(), false, move |desk| {
            super::log::apply_appends(desk, &appends)?;
            Ok(Ok(()))
        })
    }

    /// Everything that was filled in is on the disk when this answers.
    pub(super) fn sync(&self) -> Result<()> {
        self.step(1, true, |desk| {
            let last = desk.meta.last.0.cast_signed();
            super::schema::set_meta(desk.sql, "synced", last)?;
            Ok(Ok(()))
        })
    }

    /// The last append that was filled in.
    pub(super) fn applied_upto(&self) -> tidegate_store::log::Lsn {
        self.counts.last()
    }

    /// Nothing is written any more, by anybody.
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
