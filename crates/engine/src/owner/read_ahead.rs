//! Read-ahead of payloads. With a long queue most payloads are not in memory; those of the
//! operations that are likely to be taken next are read before they are claimed, many in one read.
//! Only durable operations are read, and what was read under an earlier epoch is dropped.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::Partition;
use tidegate_core::{Model, Seq};
use tidegate_store::log::{Epoch, StoredOperation};
use tidegate_store::{Clock, Store};
use tokio::time::Instant;

use super::Owner;
use crate::calls::CallEvent;
use crate::payloads::weight;
use crate::seal;

/// The maximum number of operations to hold in memory; more are read when half of them are left.
const WINDOW: usize = 512;
/// Operations in the first read, whose size is unknown: large ones must not fill the memory.
const FIRST_READ: usize = 64;
/// The assumed weight of an operation before one was read.
const WEIGHT_AT_FIRST: usize = 64 * 1024;
/// The pause when there was nothing to read.
const PAUSE: Duration = Duration::from_millis(20);
/// For how long after a remote worker asked for work more is read ahead for the next one.
const REMOTE_DEMAND: Duration = Duration::from_secs(10);
/// The pause after a failed read: the store is unavailable, or one of the rows is damaged and stays
/// so until it is taken.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The outcome of a read.
pub(crate) struct ReadAheadOutcome {
    /// The epoch in which it began.
    epoch: Epoch,
    operations: Vec<Arc<StoredOperation>>,
    /// Whether some operations could not be read.
    has_failed: bool,
}

/// The state of read-ahead.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    is_under_way: bool,
    resume_at: Instant,
    /// The last operation that is certainly durable.
    durable: Seq,
    /// The weight of the largest operation of the last read.
    largest: usize,
}

impl ReadAhead {
    /// Creates the state for a model replayed from the log: everything in it is durable.
    pub(crate) fn for_model(model: &Model) -> Self {
        let durable = model.last_seq();
        Self { is_under_way: false, resume_at: Instant::now(), durable, largest: WEIGHT_AT_FIRST }
    }

    /// Records that these operations became durable.
    pub(super) fn became_durable(&mut self, operations: &[Arc<StoredOperation>]) {
        if let Some(last) = operations.last() {
            self.durable = self.durable.max(last.seq);
        }
    }
}

impl Owner {
    /// Starts a read when few of the next operations are in memory.
    pub(super) fn read_ahead(&mut self) {
        let bytes_max = self.payloads.ahead_bytes_max();
        if self.ahead.is_under_way || self.draining.is_some() || bytes_max == 0 {
            return;
        }
        let window = (bytes_max / self.ahead.largest).clamp(1, WINDOW);
        let is_enough = self.payloads.ahead_len() > window / 2;
        if is_enough || self.model.active_count() <= self.payloads.len() + self.calls.count() {
            return;
        }
        let now = Instant::now();
        if now < self.ahead.resume_at {
            return;
        }
        let mut seqs = self.model.upcoming(window, self.has_remote_demand());
        self.payloads.retain_ahead(&seqs);
        seqs.retain(|seq| *seq <= self.ahead.durable && self.payloads.get(*seq).is_none());
        if seqs.is_empty() {
            self.ahead.resume_at = now + PAUSE;
            return;
        }
        self.ahead.is_under_way = true;
        let (store, partition) = (Arc::clone(&self.store), self.options.partition);
        let (event, epoch) = (self.calls.event.clone(), self.ownership().epoch);
        let room = self.payloads.ahead_room();
        self.tasks.spawn(async move {
            let (operations, has_failed) = read(&*store, partition, &seqs, room).await;
            // The owner may have stopped.
            let _ = event.send(CallEvent::ReadAhead(ReadAheadOutcome { epoch, operations, has_failed }));
        });
    }

    /// Whether a remote worker has asked for work lately.
    fn has_remote_demand(&self) -> bool {
        let since = self.clock.now().before(REMOTE_DEMAND);
        self.asked.values().any(|asked| *asked >= since)
    }

    /// Keeps what was read, unless the log was replayed meanwhile.
    pub(super) fn keep_ahead(
        &mut self,
        ReadAheadOutcome { epoch, operations, has_failed }: ReadAheadOutcome,
    ) {
        if epoch != self.ownership().epoch {
            return;
        }
        self.ahead.is_under_way = false;
        self.ahead.largest =
            operations.iter().map(|operation| weight(operation)).max().unwrap_or(self.ahead.largest);
        for operation in operations {
            // It may have been taken, or have ended, while it was read.
            if self.model.is_waiting(operation.seq) {
                self.payloads.keep_ahead(operation);
            }
        }
        if has_failed {
            self.ahead.resume_at = Instant::now() + PAUSE_AFTER_FAILURE;
        } else if self.payloads.ahead_len() == 0 {
            self.ahead.resume_at = Instant::now() + PAUSE;
        }
    }
}

/// Reads operations while there is room for them, and returns whether a read failed. What cannot be
/// read is left to the take that needs it.
async fn read(
    store: &dyn Store,
    partition: Partition,
    seqs: &[Seq],
    room: usize,
) -> (Vec<Arc<StoredOperation>>, bool) {
    let (mut operations, mut room, mut most, mut rest) = (Vec::new(), room, FIRST_READ, seqs);
    let mut has_failed = false;
    while most > 0 && !rest.is_empty() {
        let (now, later) = rest.split_at(most.min(rest.len()));
        match store.load_operations(partition, now.to_vec()).await {
            Ok(found) => {
                let found = found.into_iter().flatten();
                let start = operations.len();
                let intact = found.filter(|operation| {
                    let is_damaged = seal::check(operation).is_err();
                    has_failed |= is_damaged;
                    !is_damaged
                });
                operations.extend(intact.map(Arc::new));
                let weights = operations[start..].iter().map(|operation| weight(operation));
                let largest = weights.clone().max().unwrap_or(1);
                room = room.saturating_sub(weights.sum());
                // As many as certainly fit, if the others are no larger.
                (most, rest) = (room / largest, later);
            }
            Err(error) => {
                tracing::debug!(%error, "payloads could not be read ahead");
                return (operations, true);
            }
        }
    }
    (operations, has_failed)
}
