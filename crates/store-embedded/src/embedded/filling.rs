//! The front's way to the thread that writes SQLite: from threads that may wait, with commits that need not be durable
//! by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_store::{Error, Kind, Result};
use tokio::sync::{mpsc, oneshot};

use super::ledger::Counts;
use super::tail::Pending;
use super::writer::{Desk, Step, Stepped, Task};

/// Puts appends that are safe in the front where they can be found.
#[derive(Clone)]
pub(super) struct Filling {
    queue: mpsc::Sender<Box<dyn Task>>,
    stopped: Arc<AtomicBool>,
    counts: Arc<Counts>,
}

impl Filling {
    pub(super) const fn new(
        queue: mpsc::Sender<Box<dyn Task>>,
        stopped: Arc<AtomicBool>,
        counts: Arc<Counts>,
    ) -> Self {
        Self { queue, stopped, counts }
    }

    /// Fills in appends, in order; they are there for whoever reads, though not yet on the disk.
    pub(super) fn fill(&self, appends: Vec<Arc<Pending>>) -> Result<()> {
        self.step(appends.len(), false, move |desk| {
            super::log::fill(desk, &appends)?;
            Ok(Ok(()))
        })
    }

    /// Everything that was filled in is on the disk when this answers.
    pub(super) fn sync(&self) -> Result<()> {
        self.step(1, true, |desk| {
            let last = desk.ledger.last.0.cast_signed();
            super::schema::set_meta(desk.sql, "synced", last)?;
            Ok(Ok(()))
        })
    }

    /// The last append that was filled in.
    pub(super) fn filled_upto(&self) -> tidegate_store::log::Lsn {
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
        work: impl FnMut(&mut Desk<'_>) -> Stepped<T> + Send + 'static,
    ) -> Result<T> {
        let gone = || Error::new(Kind::Unsure, "the store's writer has ended; the store must be reopened");
        let (tell, told) = oneshot::channel();
        let step = Step { rows, durable, work, then: |_: &_| {}, answer: None, tell };
        self.queue.blocking_send(Box::new(step)).map_err(|_| gone())?;
        told.blocking_recv().unwrap_or_else(|_| Err(gone()))
    }
}
