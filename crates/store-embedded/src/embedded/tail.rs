//! Appends that are durable in the front and not yet in SQLite: kept in memory so that whoever reads sees everything
//! that was answered.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rustc_hash::FxHashMap;
use tidegate_core::Seq;
use tidegate_store::log::{Batch, Lsn, StoredEntry, StoredOperation, StoredResult};
use tidegate_store::{Error, Result, StoreErrorKind};
use tokio::sync::watch;

/// An append, with its facts as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingAppend {
    pub(super) lsn: Lsn,
    /// Its facts as bytes; the batch's own list is empty.
    pub(super) facts: Bytes,
    pub(super) batch: Batch,
}

/// Bytes that may wait before appends are held up.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Places that are kept when nothing waits; a rush leaves no more behind.
const PLACES_KEPT: usize = 1_024;

/// Rows that an append comes to.
fn rows(pending: &PendingAppend) -> usize {
    1 + pending.batch.operations.len() + pending.batch.results.len() + pending.batch.costs.len()
}

/// What waits to be filled in.
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
    /// Somebody waits for everything up to here.
    wanted: Lsn,
}

/// Where the newest that is known of an operation is: in which append, and at which place.
#[derive(Clone, Debug)]
pub(super) struct LatestOperation {
    lsn: Lsn,
    operation: Option<(Arc<PendingAppend>, usize)>,
    result: Option<LatestResult>,
}

/// How an operation ended, as far as these appends say.
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
    /// Whether all of the operation is here.
    pub(super) const fn is_whole(&self) -> bool {
        self.operation.is_some()
    }

    /// The operation as it was accepted, if that is here.
    fn operation(&self) -> Option<&StoredOperation> {
        let (pending, place) = self.operation.as_ref()?;
        pending.batch.operations.get(*place)
    }

    /// The whole operation, if that is here.
    pub(super) fn to_stored(&self) -> Option<StoredEntry> {
        let operation = self.operation()?.clone();
        Some(StoredEntry { operation, result: self.result.as_ref().and_then(LatestResult::result) })
    }

    /// What SQLite has, with what is newer here.
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

    /// Keeps an append that is about to be answered.
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

    /// Appends to fill in next, of about so many rows.
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

    /// Everything up to this append is in SQLite.
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

    /// Filling in does not go on, for this reason; `None` when it does.
    pub(super) fn set_failure(&self, trouble: Option<(StoreErrorKind, String)>) {
        self.failure.send_replace(trouble);
    }

    /// Whether more may be appended now; the error says why not.
    pub(super) fn check(&self) -> Result<()> {
        if let Some((kind, message)) = self.failure.borrow().clone() {
            return Err(Error::new(kind, message));
        }
        Ok(())
    }

    /// Whether so much waits that appends must wait too.
    pub(super) fn is_full(&self) -> bool {
        self.lock().bytes > BYTES_MAX
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.lock().pending.is_empty()
    }

    /// Whether to fill in now: so many rows wait, or somebody does.
    pub(super) fn is_due(&self, rows: usize) -> bool {
        let waiting = self.lock();
        let first = waiting.pending.front().map(|(pending, _)| pending.lsn);
        waiting.rows >= rows || first.is_some_and(|first| first <= waiting.wanted)
    }

    /// Has everything that was answered so far filled in without delay; answers the last of it.
    pub(super) fn request_all(&self) -> Lsn {
        let mut waiting = self.lock();
        waiting.wanted = waiting.last;
        waiting.last
    }

    /// The newest of each that is known here.
    pub(super) fn latest(&self, seqs: &[Seq]) -> Vec<Option<LatestOperation>> {
        let waiting = self.lock();
        seqs.iter().map(|seq| waiting.latest.get(seq).cloned()).collect()
    }

    /// The operations that are here as they were accepted.
    pub(super) fn operations(&self, seqs: &[Seq]) -> Vec<Option<StoredOperation>> {
        let waiting = self.lock();
        let find = |seq| waiting.latest.get(seq)?.operation().cloned();
        seqs.iter().map(find).collect()
    }

    /// Appends that may not be in SQLite yet.
    pub(super) fn pending(&self) -> Vec<Arc<PendingAppend>> {
        self.lock().pending.iter().map(|(pending, _)| Arc::clone(pending)).collect()
    }

    /// Waits a moment for filling in to go on again, if it does not.
    pub(super) async fn recover(&self, most: std::time::Duration) -> Result<()> {
        let mut trouble = self.failure.subscribe();
        // Gone or not by then: looked at once more.
        let _ = tokio::time::timeout(most, trouble.wait_for(Option::is_none)).await;
        self.check()
    }

    /// Waits until everything up to this append is in SQLite; fails when that does not go on.
    pub(super) async fn wait_until_applied(&self, last: Lsn) -> Result<()> {
        let (mut filled, mut trouble) = (self.applied.subscribe(), self.failure.subscribe());
        tokio::select! {
            biased;
            _ = filled.wait_for(|upto| *upto >= last) => Ok(()),
            _ = trouble.wait_for(Option::is_some) => self.check(),
        }
    }
}
