//! The write-ahead log: plain files that appends go to first. One thread writes pending appends,
//! makes them durable, and acknowledges them. Another one applies them to SQLite, many appends in
//! one transaction that need not be durable by itself. After a crash the log is read first and
//! applied. With SQLite alone, every append would wait for SQLite's pages.
//!
//! Every append in the log has a checksum. An end that does not check is a torn write, which was
//! never acknowledged, unless a later append or the mark says that it had been durable: then it is
//! damage, and the store is not opened. Damage to appends that are already in SQLite is no loss.

mod checkpointer;
mod files;
pub(super) mod frame;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use checkpointer::Checkpointer;
use files::WalFiles;
use tidegate_store::log::{Batch, Lsn, Ownership};
use tidegate_store::{Error, Result, StoreErrorKind, codec};
use tokio::sync::{mpsc, oneshot};

use super::errors;
use super::faults::Faults;
use super::mark::{MarkSlots, WalMark};
use super::partition_meta::Counts;
use super::tail::{PendingAppend, Tail};
use super::wal_applier::WalApplier;
use crate::checks;

/// The appends that may be queued before callers wait.
const WAITING_MAX: usize = 1_024;
/// The bytes written at once.
const GO_LEN_MAX: usize = 8 * 1024 * 1024;

/// A queued append.
struct Append {
    owner: Ownership,
    frame: Vec<u8>,
    pending: PendingAppend,
    reply: oneshot::Sender<Result<Lsn>>,
}

/// A handle on the write-ahead log.
pub(super) struct Wal {
    queue: Option<mpsc::Sender<Append>>,
    threads: Vec<JoinHandle<()>>,
    wake: Option<std::sync::mpsc::SyncSender<()>>,
    pub(super) tail: Arc<Tail>,
}

/// What the write-ahead log works with.
pub(super) struct Setup {
    pub(super) dir: std::path::PathBuf,
    pub(super) partition: tidegate_core::id::Partition,
    pub(super) last: Lsn,
    pub(super) last_seq: tidegate_core::Seq,
    pub(super) faults: Arc<Faults>,
    pub(super) counts: Arc<Counts>,
    pub(super) applier: WalApplier,
    pub(super) readers: Arc<super::reader::Readers>,
    /// The mark that records how far the log is durable, and its last value.
    pub(super) mark: MarkSlots,
    pub(super) known: WalMark,
}

impl Wal {
    /// Opens the log and applies what a crash left in it, before anything else happens.
    pub(super) fn open(setup: Setup) -> Result<Self> {
        let (files, left) = WalFiles::open(&setup.dir, setup.partition, setup.last, setup.known)?;
        let mut setup = setup;
        for pending in &left {
            setup.last = pending.lsn;
            setup.last_seq =
                pending.batch.operations.last().map_or(setup.last_seq, |one| one.seq.max(setup.last_seq));
        }
        apply_leftover(&setup.applier, &left)?;
        let tail = Arc::new(Tail::new(setup.last));
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        let (wake, woken) = std::sync::mpsc::sync_channel(1);
        let waker = wake.clone();
        let broken = |cause| super::lock::unusable(&setup.dir, cause);
        let filler = Checkpointer { tail: Arc::clone(&tail), applier: setup.applier.clone() };
        let filling = spawn("store-filler", move || filler.run(&woken)).map_err(broken)?;
        let path = setup.dir.clone();
        let hand = WalWriter { files, tail: Arc::clone(&tail), setup, stopped: None, wake };
        let writing = spawn("store-front", move || hand.run(waiting))
            .map_err(|cause| super::lock::unusable(&path, cause))?;
        Ok(Self { queue: Some(queue), threads: vec![writing, filling], wake: Some(waker), tail })
    }

    /// Makes the checkpointer look again now.
    pub(super) fn wake(&self) {
        if let Some(wake) = &self.wake {
            // A checkpointer that is already woken needs no second call.
            let _ = wake.try_send(());
        }
    }

    /// Waits until everything acknowledged before is in SQLite; fails if applying has stalled.
    pub(super) async fn wait_until_applied(&self) -> Result<()> {
        let wanted = self.tail.request_all();
        self.wake();
        self.tail.wait_until_applied(wanted).await
    }

    /// Makes an append durable.
    pub(super) async fn append(&self, owner: Ownership, batch: Batch) -> Result<Lsn> {
        let gone =
            || Error::new(StoreErrorKind::Unsure, "the store's writer has ended; the store must be reopened");
        let facts = codec::encode(&batch.facts);
        let frame = frame::encode(&facts, &batch);
        let batch = Batch { facts: Vec::new(), ..batch };
        let pending = PendingAppend { lsn: Lsn(0), facts, batch };
        let (tell, told) = oneshot::channel();
        let queue = self.queue.as_ref().ok_or_else(gone)?;
        let append = Append { owner, frame, pending, reply: tell };
        queue.send(append).await.map_err(|_| gone())?;
        told.await.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for Wal {
    /// Ends the writer first, and with it the checkpointer, after it has applied what it can.
    fn drop(&mut self) {
        drop(self.queue.take());
        drop(self.wake.take());
        for thread in self.threads.drain(..) {
            // A thread that panicked has already failed all of its callers.
            let _ = thread.join();
        }
    }
}

/// Applies what a crash left, on a thread that may block.
fn apply_leftover(filling: &WalApplier, left: &[Arc<PendingAppend>]) -> Result<()> {
    let fill = || left.chunks(64).try_for_each(|some| filling.apply(some.to_vec()));
    std::thread::scope(|scope| scope.spawn(fill).join()).unwrap_or_else(|_| {
        Err(Error::new(StoreErrorKind::Unavailable, "the last appends could not be applied to SQLite"))
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.into()).spawn(work)
}

/// The thread that writes.
struct WalWriter {
    files: WalFiles,
    tail: Arc<Tail>,
    setup: Setup,
    /// Why nothing more is written.
    stopped: Option<String>,
    wake: std::sync::mpsc::SyncSender<()>,
}

impl WalWriter {
    fn run(mut self, mut waiting: mpsc::Receiver<Append>) {
        let mut bytes = Vec::new();
        while let Some(first) = waiting.blocking_recv() {
            let (mut some, mut last, mut last_seq) = (Vec::new(), self.setup.last, self.setup.last_seq);
            let mut next = Some(first);
            while let Some(append) = next {
                self.admit(append, &mut bytes, &mut some, &mut last, &mut last_seq);
                next = if bytes.len() < GO_LEN_MAX { waiting.try_recv().ok() } else { None };
            }
            self.write(&bytes, some, last, last_seq);
            bytes.clear();
        }
        self.setup.mark.sync();
    }

    /// Numbers an append that may be written, and rejects one that may not.
    fn admit(
        &self,
        mut append: Append,
        bytes: &mut Vec<u8>,
        some: &mut Vec<Append>,
        last: &mut Lsn,
        last_seq: &mut tidegate_core::Seq,
    ) {
        if let Err(refused) = self.check(&append, *last, *last_seq) {
            // The caller may be gone.
            let _ = append.reply.send(Err(refused));
            return;
        }
        *last = Lsn(last.0 + 1);
        append.pending.lsn = *last;
        *last_seq = append.pending.batch.operations.last().map_or(*last_seq, |one| one.seq.max(*last_seq));
        frame::seal(&mut append.frame, *last, self.setup.last);
        bytes.extend_from_slice(&append.frame);
        some.push(append);
    }

    fn check(&self, append: &Append, last: Lsn, last_seq: tidegate_core::Seq) -> Result<()> {
        if let Some(why) = &self.stopped {
            return Err(errors::unsure(&self.setup.dir, why));
        }
        self.setup.counts.check(append.owner)?;
        checks::follows(&append.pending.batch, last)?;
        self.tail.check()?;
        self.check_seqs(append, last_seq)?;
        if self.setup.faults.is_full(self.setup.counts.pages()) {
            return Err(errors::no_room(&self.setup.dir, "the disk is full"));
        }
        Ok(())
    }

    /// Checks that new operations have new seqs. They nearly always grow; otherwise SQLite is
    /// asked.
    fn check_seqs(&self, append: &Append, last_seq: tidegate_core::Seq) -> Result<()> {
        let operations = append.pending.batch.operations.iter().map(|one| one.seq);
        for seq in operations.take_while(|seq| *seq <= last_seq) {
            let waits = self.tail.latest(&[seq]).into_iter().flatten().any(|newest| newest.is_whole());
            let known = "SELECT EXISTS (SELECT 1 FROM operations WHERE seq = ?1)";
            let look = |sql: &rusqlite::Connection| {
                sql.prepare_cached(known)?.query_row([seq.0.cast_signed()], |row| row.get(0))
            };
            if waits || self.setup.readers.read(look)? {
                return Err(checks::seq_taken(seq));
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8], some: Vec<Append>, last: Lsn, last_seq: tidegate_core::Seq) {
        if some.is_empty() {
            return;
        }
        let first = Lsn(self.setup.last.0 + 1);
        let written = match self.files.append(bytes, first, last) {
            Ok(()) if self.setup.faults.takes_unsure_commit() => Err(("a sync failed".to_owned(), false)),
            Ok(()) => Ok(()),
            Err((cause, undone)) => Err((cause.to_string(), undone)),
        };
        if let Err((cause, undone)) = written {
            if !undone {
                self.stopped = Some(cause.clone());
                self.setup.applier.stop();
                self.tail.set_failure(Some((
                    StoreErrorKind::Unsure,
                    errors::unsure(&self.setup.dir, &cause).to_string(),
                )));
            }
            for append in some {
                let why = if undone {
                    errors::no_room(&self.setup.dir, &cause)
                } else {
                    errors::unsure(&self.setup.dir, &cause)
                };
                let _ = append.reply.send(Err(why));
            }
            return;
        }
        (self.setup.last, self.setup.last_seq) = (last, last_seq);
        self.setup.mark.note_wal(WalMark { last, last_seq });
        let was_empty = self.tail.is_empty();
        for append in some {
            let lsn = append.pending.lsn;
            self.tail.push(Arc::new(append.pending), append.frame.len());
            let _ = append.reply.send(Ok(lsn));
        }
        if was_empty || self.tail.is_due(checkpointer::ROWS) {
            // A checkpointer that is already woken needs no second call.
            let _ = self.wake.try_send(());
        }
        self.recycle_applied_files();
        while self.tail.is_full() && self.tail.check().is_ok() {
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    /// Recycles files that are completely in SQLite, once SQLite's own are durable.
    fn recycle_applied_files(&mut self) {
        let Some(full) = self.files.last_of_full_files() else { return };
        if self.setup.applier.applied_upto() >= full && self.setup.applier.sync().is_ok() {
            // One that could not be removed is removed with the next, or read again and recognised.
            let _ = self.files.recycle(full);
        }
    }
}
