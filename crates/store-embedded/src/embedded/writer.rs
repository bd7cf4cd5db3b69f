//! The one thread that writes a file. It runs all queued steps in one transaction, and replies when
//! that is durable. A failed step does not fail the others: all are rolled back and each is run
//! alone. After a commit with an unknown outcome, nothing more is written.

mod step;

pub(super) use step::{Step, StepContext, StepResult, Task};

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rusqlite::Connection;
use tidegate_store::{Clock, Error, Result, StoreErrorKind};
use tokio::sync::{mpsc, oneshot};

use super::errors::{is_surely_undone, nothing_changed, unsure};
use super::faults::Faults;
use super::mark::MarkSlots;
use super::partition_meta::{Counts, PartitionMeta};
use super::wal_applier::WalApplier;

/// The steps that may be queued before callers wait.
const WAITING_MAX: usize = 4_096;
/// The number of rows after which a transaction takes no further step.
const ROWS_MAX: usize = 8_192;
/// SQLite's value for "no limit".
const PAGES_UNBOUNDED: u32 = u32::MAX - 1;

/// A handle on the thread.
pub(super) struct SqliteWriter {
    queue: Option<mpsc::Sender<Box<dyn Task>>>,
    thread: Option<JoinHandle<()>>,
    stopped: Arc<AtomicBool>,
    counts: Arc<Counts>,
}

/// What the thread works with.
pub(super) struct Setup {
    pub(super) sql: Connection,
    pub(super) path: PathBuf,
    pub(super) meta: PartitionMeta,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) faults: Arc<Faults>,
    pub(super) counts: Arc<Counts>,
    /// Set after every commit, for the checkpointer.
    pub(super) written: Arc<AtomicBool>,
    /// Set when nothing may be written any more.
    pub(super) stopped: Arc<AtomicBool>,
    /// Where commits that are in no other file are noted.
    pub(super) mark: MarkSlots,
}

impl SqliteWriter {
    pub(super) fn start(setup: Setup) -> std::io::Result<Self> {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        setup.counts.update_from(&setup.meta);
        let stopped = Arc::clone(&setup.stopped);
        let counts = Arc::clone(&setup.counts);
        let hand = WriterThread { setup, pages_max: 0, durable: true };
        hand.count_pages();
        let thread = std::thread::Builder::new().name("store-writer".into()).spawn(|| hand.run(waiting))?;
        Ok(Self { queue: Some(queue), thread: Some(thread), stopped, counts })
    }

    /// A handle for applying appends that are durable elsewhere.
    pub(super) fn wal_applier(&self) -> Option<WalApplier> {
        let queue = self.queue.clone()?;
        Some(WalApplier::new(queue, Arc::clone(&self.stopped), Arc::clone(&self.counts)))
    }

    /// Runs a step that writes about `rows` rows; returns when it is durable.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        rows: usize,
        work: impl FnMut(&mut StepContext<'_>) -> StepResult<T> + Send + 'static,
    ) -> Result<T> {
        self.write_then(rows, work, |_| {}).await
    }

    /// Runs a step that need not be durable when it returns: what is lost in a crash is written
    /// again.
    pub(super) async fn write_without_sync<T: Send + 'static>(
        &self,
        rows: usize,
        work: impl FnMut(&mut StepContext<'_>) -> StepResult<T> + Send + 'static,
    ) -> Result<T> {
        self.submit(rows, false, work, |_| {}).await
    }

    /// Like `write`; also runs `then` when the step is durable, before it returns.
    pub(super) async fn write_then<T: Send + 'static>(
        &self,
        rows: usize,
        work: impl FnMut(&mut StepContext<'_>) -> StepResult<T> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T> {
        self.submit(rows, true, work, then).await
    }

    async fn submit<T: Send + 'static>(
        &self,
        rows: usize,
        durable: bool,
        work: impl FnMut(&mut StepContext<'_>) -> StepResult<T> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T> {
        let gone =
            || Error::new(StoreErrorKind::Unsure, "the store's writer has ended; the store must be reopened");
        let (tell, told) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        queue
            .send(Box::new(Step { rows, durable, work, then, answer: None, reply: tell }))
            .await
            .map_err(|_| gone())?;
        told.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for SqliteWriter {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            // A writer that panicked has already failed all of its callers.
            let _ = thread.join();
        }
    }
}

/// The failure of a transaction.
enum Failure {
    Undone(rusqlite::Error),
    Unsure(String),
}

/// The thread's own state.
struct WriterThread {
    setup: Setup,
    pages_max: u32,
    /// Whether commits are synced at present.
    durable: bool,
}

impl WriterThread {
    fn count_pages(&self) {
        let pages = self.setup.sql.prepare_cached("PRAGMA page_count");
        let pages = pages.and_then(|mut pages| pages.query_row([], |row| row.get(0)));
        self.setup.counts.set_pages(pages.unwrap_or(0));
    }

    fn run(mut self, mut waiting: mpsc::Receiver<Box<dyn Task>>) {
        while let Some(first) = waiting.blocking_recv() {
            let mut rows = first.rows();
            let mut tasks = vec![first];
            while rows < ROWS_MAX
                && let Ok(next) = waiting.try_recv()
            {
                rows += next.rows().max(1);
                tasks.push(next);
            }
            self.commit(tasks);
        }
    }

    fn commit(&mut self, mut tasks: Vec<Box<dyn Task>>) {
        if self.setup.stopped.load(Ordering::Acquire) {
            return self.fail(tasks, |path| unsure(path, "it was refused"));
        }
        match self.attempt(&mut tasks) {
            Ok(()) => {
                self.setup.counts.update_from(&self.setup.meta);
                self.count_pages();
                self.setup.written.store(true, Ordering::Release);
                tasks.into_iter().for_each(Task::committed);
            }
            Err(Failure::Undone(_)) if tasks.len() > 1 => {
                for task in tasks {
                    self.commit(vec![task]);
                }
            }
            Err(Failure::Undone(cause)) => self.fail(tasks, |path| nothing_changed(path, &cause)),
            Err(Failure::Unsure(cause)) => {
                self.setup.stopped.store(true, Ordering::Release);
                self.fail(tasks, |path| unsure(path, &cause));
            }
        }
    }

    fn fail(&self, tasks: Vec<Box<dyn Task>>, why: impl Fn(&std::path::Path) -> Error) {
        for task in tasks {
            task.failed(why(&self.setup.path));
        }
    }

    /// Runs all steps in one transaction; the in-memory state is rolled back with it.
    fn attempt(&mut self, tasks: &mut [Box<dyn Task>]) -> std::result::Result<(), Failure> {
        let before = self.setup.meta.clone();
        let done = match self.run_tasks(tasks, &before) {
            Ok(()) => self.commit_transaction(),
            Err(cause) => Err(self.undo(cause)),
        };
        if done.is_err() {
            self.setup.meta = before;
        } else if self.setup.meta.commits != before.commits {
            self.setup.mark.note_commits(self.setup.meta.commits);
        }
        done
    }

    fn run_tasks(&mut self, tasks: &mut [Box<dyn Task>], before: &PartitionMeta) -> rusqlite::Result<()> {
        self.bound_pages()?;
        self.set_durable(tasks.iter().any(|task| task.is_durable()))?;
        let Setup { sql, meta: ledger, clock, .. } = &mut self.setup;
        sql.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for task in tasks {
            task.run(&mut StepContext { sql, meta: ledger, now: clock.now() })?;
        }
        ledger.write(sql, before)
    }

    fn commit_transaction(&self) -> std::result::Result<(), Failure> {
        let sealed = self.setup.sql.prepare_cached("COMMIT").and_then(|mut commit| commit.execute([]));
        match sealed {
            Ok(_) if self.durable && self.setup.faults.takes_unsure_commit() => {
                Err(Failure::Unsure("a sync failed".into()))
            }
            Ok(_) => Ok(()),
            Err(cause) if is_surely_undone(&cause) => Err(self.undo(cause)),
            Err(cause) => Err(Failure::Unsure(cause.to_string())),
        }
    }

    fn undo(&self, cause: rusqlite::Error) -> Failure {
        // Some failures have already rolled everything back.
        if !self.setup.sql.is_autocommit()
            && let Err(second) = self.setup.sql.execute_batch("ROLLBACK")
        {
            return Failure::Unsure(format!("{cause}, and then {second}"));
        }
        Failure::Undone(cause)
    }

    /// Sets whether commits are synced; a commit that need not be durable by itself is not waited
    /// for.
    fn set_durable(&mut self, durable: bool) -> rusqlite::Result<()> {
        if durable != self.durable {
            let level = if durable { "FULL" } else { "NORMAL" };
            self.setup.sql.execute_batch(&format!("PRAGMA synchronous = {level}"))?;
            self.durable = durable;
        }
        Ok(())
    }

    fn bound_pages(&mut self) -> rusqlite::Result<()> {
        let wanted = self.setup.faults.pages_max();
        if wanted != self.pages_max {
            let bound = if wanted == 0 { PAGES_UNBOUNDED } else { wanted };
            self.setup.sql.execute_batch(&format!("PRAGMA max_page_count = {bound}"))?;
            self.pages_max = wanted;
        }
        Ok(())
    }
}
