//! One partition's file: the thread that writes it, the connections that read it, and the thread
//! that checkpoints it.

use std::path::Path;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use rusqlite::Connection;
use tidegate_core::Seq;
use tidegate_core::bounds::STORE_READS_MAX;
use tidegate_core::id::Partition;
use tidegate_store::{Error, Result, StoreErrorKind};
use tokio::sync::Semaphore;

use super::errors::{damaged, nothing_changed};
use super::lock::{Lock, sync_names, unusable};
use super::mark::MarkFile;
use super::partition_meta::{Counts, PartitionMeta};
use super::reader::Readers;
use super::sqlite_checkpointer::SqliteCheckpointer;
use super::wal::{self, Wal};
use super::writer::{Setup, SqliteWriter, StepContext, StepResult};
use super::{Options, blocking, schema, snapshot};

/// One partition's file. Its threads end before the directory lock is released.
pub(super) struct PartitionFile {
    pub(super) partition: Partition,
    pub(super) counts: Arc<Counts>,
    pub(super) readers: Arc<Readers>,
    /// The permits for reads.
    reads: Semaphore,
    /// One snapshot at a time, and none while one is being read.
    pub(super) snapshots: Arc<tokio::sync::Mutex<()>>,
    /// How far clean-up has scanned for old results behind younger ones.
    pub(super) swept_to: Mutex<Seq>,
    /// Ends before the writer does.
    pub(super) wal: Wal,
    writer: SqliteWriter,
    _checkpoint: SqliteCheckpointer,
    lock: Arc<Lock>,
}

impl PartitionFile {
    /// Opens the file, creating it if it does not exist.
    pub(super) fn open(lock: Arc<Lock>, partition: Partition, options: &Options) -> Result<Self> {
        let dir = lock.dir();
        let path = schema::path_of(dir, partition);
        snapshot::remove_unfinished(dir, partition)?;
        let newest = snapshot::all(dir, partition)?.first().map(|found| found.0).unwrap_or_default();
        let sql = schema::writer(&path)?;
        sync_names(dir).map_err(|cause| unusable(dir, cause))?;
        let ledger = PartitionMeta::read(&sql, newest).map_err(|cause| nothing_changed(&path, &cause))?;
        let marks = MarkFile::open(dir, partition)?;
        check_commits(&path, &ledger, &marks)?;
        let (counts, written) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(true)));
        let checkpoint = SqliteCheckpointer::start(&path, Arc::clone(&written))?;
        let (last, last_seq) = (ledger.last, last_seq(&sql).map_err(|cause| nothing_changed(&path, &cause))?);
        let setup = Setup {
            sql,
            path: path.clone(),
            meta: ledger,
            clock: Arc::clone(&options.clock),
            faults: Arc::clone(&options.faults),
            counts: Arc::clone(&counts),
            written,
            stopped: Arc::default(),
            mark: marks.sqlite.1,
        };
        let writer = SqliteWriter::start(setup).map_err(|cause| unusable(&path, cause))?;
        let readers = Arc::new(Readers::new(path));
        let gone = || Error::new(StoreErrorKind::Unavailable, "the store's writer did not start");
        let front = wal::Setup {
            dir: dir.to_owned(),
            partition,
            last,
            last_seq,
            faults: Arc::clone(&options.faults),
            counts: Arc::clone(&counts),
            applier: writer.wal_applier().ok_or_else(gone)?,
            readers: Arc::clone(&readers),
            mark: marks.wal.1,
            known: marks.wal.0,
        };
        let front = Wal::open(front)?;
        Ok(Self {
            partition,
            counts,
            readers,
            reads: Semaphore::new(STORE_READS_MAX),
            snapshots: Arc::default(),
            swept_to: Mutex::default(),
            wal: front,
            writer,
            _checkpoint: checkpoint,
            lock,
        })
    }

    /// The path of the directory.
    pub(super) fn dir(&self) -> &Path {
        self.lock.dir()
    }

    /// Runs a step that writes about `rows` rows; returns when it is durable.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        rows: usize,
        work: impl FnMut(&mut StepContext<'_>) -> StepResult<T> + Send + 'static,
    ) -> Result<T> {
        self.writer.write(rows, work).await
    }

    /// Runs a step that need not be durable when it returns.
    pub(super) async fn write_without_sync<T: Send + 'static>(
        &self,
        rows: usize,
        work: impl FnMut(&mut StepContext<'_>) -> StepResult<T> + Send + 'static,
    ) -> Result<T> {
        self.writer.write_without_sync(rows, work).await
    }

    /// Like `write`; the writer also runs `then` when the step is durable, before it returns.
    pub(super) async fn write_then<T: Send + 'static>(
        &self,
        rows: usize,
        work: impl FnMut(&mut StepContext<'_>) -> StepResult<T> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T> {
        self.writer.write_then(rows, work, then).await
    }

    /// Like `write_then`, for data that is in no other file: the commit is noted in the mark.
    pub(super) async fn write_and_mark<T: Send + 'static>(
        &self,
        rows: usize,
        mut work: impl FnMut(&mut StepContext<'_>) -> StepResult<T> + Send + 'static,
        then: impl FnOnce(&T) + Send + 'static,
    ) -> Result<T> {
        let noted = move |desk: &mut StepContext<'_>| {
            let before = desk.sql.total_changes();
            let done = work(desk)?;
            desk.meta.commits += u64::from(desk.sql.total_changes() != before);
            Ok(done)
        };
        self.writer.write_then(rows, noted, then).await
    }

    /// Reads on a thread of its own, once there is a permit.
    pub(super) async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let readers = Arc::clone(&self.readers);
        // The semaphore is never closed.
        let _turn = self.reads.acquire().await;
        blocking::run(move || readers.read(look)).await
    }
}

/// Rejects a file that has lost acknowledged data which is in no other file.
fn check_commits(path: &Path, ledger: &PartitionMeta, marks: &MarkFile) -> Result<()> {
    let known = marks.sqlite.0;
    if ledger.commits >= known {
        return Ok(());
    }
    let what = format!(
        "the last {} commits of idempotency records, leases, deployments or the audit log were acknowledged \
         and are gone; to go on without them, keep a copy of the folder and remove {}",
        known - ledger.commits,
        marks.path.display(),
    );
    Err(damaged(path, &what))
}

/// The last operation in the file.
fn last_seq(sql: &Connection) -> rusqlite::Result<Seq> {
    let last: Option<i64> = sql.query_row("SELECT max(seq) FROM operations", [], |row| row.get(0))?;
    Ok(Seq(last.unwrap_or(0).cast_unsigned()))
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::embedded::EmbeddedStore;

    /// Many concurrent reads wait for each other instead of opening connections: as many run as
    /// there are permits.
    #[tokio::test(flavor = "multi_thread")]
    async fn reads_take_turns() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path(), Options::default()).unwrap();
        let file = store.partition(0).await.unwrap();
        let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        // Opens when all permits are taken.
        let full = Arc::new(Barrier::new(STORE_READS_MAX));
        let reads = (0..STORE_READS_MAX * 8).map(|_| {
            let (file, inside, most) = (Arc::clone(&file), Arc::clone(&inside), Arc::clone(&most));
            let full = Arc::clone(&full);
            let look = move |_: &Connection| {
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                full.wait();
                inside.fetch_sub(1, Ordering::SeqCst);
                Ok(())
            };
            tokio::spawn(async move { file.read(look).await })
        });
        for read in reads.collect::<Vec<_>>() {
            read.await.unwrap().unwrap();
        }
        assert_eq!(most.load(Ordering::SeqCst), STORE_READS_MAX);
    }
}
