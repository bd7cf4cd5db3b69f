//! Appends that are durable in the write-ahead log and not yet in SQLite, kept in memory so that
//! readers see everything that was acknowledged.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use tidegate_core::Seq;
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::{Batch, Lsn, StoredEntry, StoredOperation, StoredResult};
use tidegate_store::{Error, Result, StoreErrorKind};
use tokio::sync::watch;

/// An append, with its facts in encoded form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingAppend {
    pub(super) lsn: Lsn,
    /// The encoded facts; the batch's own list is empty.
    pub(super) facts: Bytes,
    pub(super) batch: Batch,
}

/// The bytes that may be pending before appends are held up.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// The capacity that is kept when nothing is pending; a burst leaves no more behind.
const PLACES_KEPT: usize = 1_024;

/// The number of rows of an append.
fn rows(pending: &PendingAppend) -> usize {
    let Batch { operations, results, costs, attempts, .. } = &pending.batch;
    1 + operations.len() + results.len() + costs.len() + attempts.len()
}

/// The appends that are pending.
#[derive(Debug)]
pub(super) struct Tail {
    waiting: Mutex<TailState>,
    applied: watch::Sender<Lsn>,
    failure: watch::Sender<Option<(StoreErrorKind, String)>>,
}

#[derive(Debug, Default)]
struct TailState {
    pending: VecDeque<(Arc<PendingAppend>, usize)>,
    latest: FxHashMap<Seq, LatestOperation>,
    bytes: usize,
    rows: usize,
    last: Lsn,
    /// A caller waits for everything up to here.
    wanted: Lsn,
}

/// The location of an operation's newest known state: in which append, and at which index.
#[derive(Clone, Debug)]
pub(super) struct LatestOperation {
    lsn: Lsn,
    operation: Option<(Arc<PendingAppend>, usize)>,
    result: Option<LatestResult>,
}

/// How an operation ended, according to these appends.
#[derive(Clone, Debug)]
enum LatestResult {
    Result(Arc<PendingAppend>, usize),
    Reopened,
}

impl LatestResult {
    fn result(&self) -> Option<StoredResult> {
        match self {
            Self::Result(pending, place) => pending.batch.results.get(*place).cloned(),
            Self::Reopened => None,
        }
    }
}

impl LatestOperation {
    /// Returns whether the whole operation is in the tail.
    pub(super) const fn is_whole(&self) -> bool {
        self.operation.is_some()
    }

    /// The operation as it was accepted, if it is in the tail.
    fn operation(&self) -> Option<&StoredOperation> {
        let (pending, place) = self.operation.as_ref()?;
        pending.batch.operations.get(*place).map(|operation| &**operation)
    }

    /// The whole operation, if it is in the tail.
    pub(super) fn to_stored(&self) -> Option<StoredEntry> {
        let operation = self.operation()?.clone();
        Some(StoredEntry { operation, result: self.result.as_ref().and_then(LatestResult::result) })
    }

    /// Merges the newer state in the tail onto what SQLite has.
    pub(super) fn merge_onto(self, stored: StoredEntry) -> StoredEntry {
        let result = self.result.map_or(stored.result, |ending| ending.result());
        StoredEntry { result, ..stored }
    }
}

impl Tail {
    pub(super) fn new(last: Lsn) -> Self {
        let waiting = TailState { last, ..TailState::default() };
        Self {
            waiting: Mutex::new(waiting),
            applied: watch::channel(last).0,
            failure: watch::channel(None).0,
        }
    }

    fn lock(&self) -> MutexGuard<'_, TailState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an append that is about to be acknowledged.
    pub(super) fn push(&self, pending: Arc<PendingAppend>, bytes: usize) {
        let mut waiting = self.lock();
        let (lsn, batch) = (pending.lsn, &pending.batch);
        for (place, operation) in batch.operations.iter().enumerate() {
            let operation_at = Some((Arc::clone(&pending), place));
            waiting
                .latest
                .insert(operation.seq, LatestOperation { lsn, operation: operation_at, result: None });
        }
        let reopened = batch.reopened.iter().map(|seq| (*seq, LatestResult::Reopened));
        let results = batch.results.iter().enumerate();
        let results =
            results.map(|(place, result)| (result.seq, LatestResult::Result(Arc::clone(&pending), place)));
        for (seq, ending) in reopened.chain(results) {
            let newest =
                waiting.latest.entry(seq).or_insert(LatestOperation { lsn, operation: None, result: None });
            (newest.lsn, newest.result) = (lsn, Some(ending));
        }
        let (lsn, waiting) = (pending.lsn, &mut *waiting);
        waiting.rows += rows(&pending);
        waiting.pending.push_back((pending, bytes));
        waiting.bytes += bytes;
        waiting.last = lsn;
    }

    /// The appends to apply next, of about `rows_max` rows.
    pub(super) fn next(&self, rows_max: usize) -> Vec<Arc<PendingAppend>> {
        let waiting = self.lock();
        let (mut taken, mut next) = (0, Vec::new());
        for (pending, _) in &waiting.pending {
            if taken > rows_max {
                break;
            }
            taken += rows(pending);
            next.push(Arc::clone(pending));
        }
        next
    }

    /// Notes that everything up to this append is in SQLite.
    pub(super) fn mark_applied(&self, upto: Lsn) {
        let mut waiting = self.lock();
        while waiting.pending.front().is_some_and(|(pending, _)| pending.lsn <= upto)
            && let Some((pending, bytes)) = waiting.pending.pop_front()
        {
            waiting.bytes -= bytes;
            waiting.rows -= rows(&pending);
            let batch = &pending.batch;
            let operations = batch.operations.iter().map(|operation| operation.seq);
            let results = batch.results.iter().map(|result| result.seq);
            for seq in operations.chain(results).chain(batch.reopened.iter().copied()) {
                if waiting.latest.get(&seq).is_some_and(|newest| newest.lsn <= upto) {
                    waiting.latest.remove(&seq);
                }
            }
        }
        if waiting.pending.is_empty() && waiting.latest.capacity() > 64 * PLACES_KEPT {
            waiting.latest.shrink_to(PLACES_KEPT);
            waiting.pending.shrink_to(PLACES_KEPT);
        }
        drop(waiting);
        self.failure.send_replace(None);
        self.applied.send_replace(upto);
    }

    /// Records why applying has stalled; `None` when it works.
    pub(super) fn set_failure(&self, trouble: Option<(StoreErrorKind, String)>) {
        self.failure.send_replace(trouble);
    }

    /// Returns whether more may be appended now; the error says why not.
    pub(super) fn check(&self) -> Result<()> {
        if let Some((kind, message)) = self.failure.borrow().clone() {
            return Err(Error::new(kind, message));
        }
        Ok(())
    }

    /// Returns whether so much is pending that appends must wait.
    pub(super) fn is_full(&self) -> bool {
        self.lock().bytes > BYTES_MAX
    }

    /// Returns whether nothing is pending.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().pending.is_empty()
    }

    /// Returns whether to apply now: enough rows are pending, or a caller waits.
    pub(super) fn is_due(&self, rows: usize) -> bool {
        let waiting = self.lock();
        let first = waiting.pending.front().map(|(pending, _)| pending.lsn);
        waiting.rows >= rows || first.is_some_and(|first| first <= waiting.wanted)
    }

    /// Requests that everything acknowledged so far is applied without delay; returns the last
    /// append of it.
    pub(super) fn request_all(&self) -> Lsn {
        let mut waiting = self.lock();
        waiting.wanted = waiting.last;
        waiting.last
    }

    /// The newest known state of each operation.
    pub(super) fn latest(&self, seqs: &[Seq]) -> Vec<Option<LatestOperation>> {
        let waiting = self.lock();
        seqs.iter().map(|seq| waiting.latest.get(seq).cloned()).collect()
    }

    /// The operations in the tail as they were accepted.
    pub(super) fn operations(&self, seqs: &[Seq]) -> Vec<Option<StoredOperation>> {
        let waiting = self.lock();
        let find = |seq| waiting.latest.get(seq)?.operation().cloned();
        seqs.iter().map(find).collect()
    }

    /// The attempts of these operations in the tail, oldest first.
    pub(super) fn attempts(&self, seqs: &[Seq]) -> Vec<StoredAttempt> {
        let waiting = self.lock();
        let attempts = waiting.pending.iter().flat_map(|(pending, _)| &pending.batch.attempts);
        attempts.filter(|attempt| seqs.contains(&attempt.seq)).cloned().collect()
    }

    /// The appends that may not be in SQLite yet.
    pub(super) fn pending(&self) -> Vec<Arc<PendingAppend>> {
        self.lock().pending.iter().map(|(pending, _)| Arc::clone(pending)).collect()
    }

    /// Waits a moment for applying to recover, if it has stalled.
    pub(super) async fn recover(&self, most: std::time::Duration) -> Result<()> {
        let mut trouble = self.failure.subscribe();
        // Recovered or not by then: it is checked again.
        let _ = tokio::time::timeout(most, trouble.wait_for(Option::is_none)).await;
        self.check()
    }

    /// Waits until everything up to this append is in SQLite; fails if applying has stalled.
    pub(super) async fn wait_until_applied(&self, last: Lsn) -> Result<()> {
        let (mut filled, mut trouble) = (self.applied.subscribe(), self.failure.subscribe());
        tokio::select! {
            biased;
            _ = filled.wait_for(|upto| *upto >= last) => Ok(()),
            _ = trouble.wait_for(Option::is_some) => self.check(),
        }
    }
}
