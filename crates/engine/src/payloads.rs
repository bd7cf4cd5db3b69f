//! Operations whose calls may be sent soon: a bounded cache in front of the store, so that most
//! calls need no read. It holds operations that became durable recently and those that were read
//! ahead; any other is read when it is taken. Nothing enters it before its append is durable.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tidegate_core::Seq;
use tidegate_core::model::Claim;
use tidegate_store::log::StoredOperation;

#[derive(Debug)]
pub(crate) struct Payloads {
    /// Recently accepted; they stay until they end, because an attempt may be retried.
    recent: Cache,
    /// Read ahead; each is removed when it is taken, to make room for the next ones.
    ahead: Cache,
}

/// A cache of operations, bounded in bytes.
#[derive(Debug)]
struct Cache {
    operations: FxHashMap<Seq, Arc<StoredOperation>>,
    bytes: usize,
    bytes_max: usize,
}

/// The approximate weight of an operation in addition to its payload.
const OVERHEAD: usize = 256;
/// The fraction of the memory reserved for read-ahead: new operations would fill all of it, and
/// with a long queue their payloads are needed last.
const AHEAD_PART: usize = 4;

/// The approximate size of an operation, in bytes.
pub(crate) fn weight(operation: &StoredOperation) -> usize {
    operation.payload.len() + operation.envelope.len() + OVERHEAD
}

impl Payloads {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let ahead = bytes_max / AHEAD_PART;
        Self { recent: Cache::new(bytes_max - ahead), ahead: Cache::new(ahead) }
    }

    /// Keeps a durable operation, if there is room.
    pub(crate) fn keep(&mut self, operation: Arc<StoredOperation>) {
        self.recent.keep(operation);
    }

    /// Keeps an operation that was read ahead, if there is room.
    pub(crate) fn keep_ahead(&mut self, operation: Arc<StoredOperation>) {
        self.ahead.keep(operation);
    }

    /// Returns the operation of a claim.
    pub(crate) fn get_for_claim(&mut self, claim: &Claim) -> Option<Arc<StoredOperation>> {
        let recent = self.recent.operations.get(&claim.seq).cloned();
        recent.or_else(|| self.ahead.remove(claim.seq)).filter(|operation| matches_claim(claim, operation))
    }

    /// Returns the operation with this sequence number.
    pub(crate) fn get(&self, seq: Seq) -> Option<&StoredOperation> {
        self.recent.operations.get(&seq).or_else(|| self.ahead.operations.get(&seq)).map(|found| &**found)
    }

    /// The number of operations in the cache.
    pub(crate) fn len(&self) -> usize {
        self.recent.operations.len() + self.ahead.operations.len()
    }

    /// The number of operations that were read ahead.
    pub(crate) fn ahead_len(&self) -> usize {
        self.ahead.operations.len()
    }

    /// The maximum number of bytes that may be read ahead.
    pub(crate) const fn ahead_bytes_max(&self) -> usize {
        self.ahead.bytes_max
    }

    /// The number of further bytes that may be read ahead now.
    pub(crate) const fn ahead_room(&self) -> usize {
        self.ahead.bytes_max - self.ahead.bytes
    }

    /// Drops operations that were read ahead and are not among the next ones.
    pub(crate) fn retain_ahead(&mut self, next: &[Seq]) {
        let next: rustc_hash::FxHashSet<Seq> = next.iter().copied().collect();
        let Cache { operations, bytes, .. } = &mut self.ahead;
        operations.retain(|seq, operation| {
            let stays = next.contains(seq);
            *bytes -= if stays { 0 } else { weight(operation) };
            stays
        });
    }

    /// Removes an operation that ended.
    pub(crate) fn forget(&mut self, seq: Seq) {
        drop((self.recent.remove(seq), self.ahead.remove(seq)));
    }

    /// Removes everything: a replayed log may not contain it.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
        self.ahead.clear();
    }
}

impl Cache {
    fn new(bytes_max: usize) -> Self {
        Self { operations: FxHashMap::default(), bytes: 0, bytes_max }
    }

    fn keep(&mut self, operation: Arc<StoredOperation>) {
        drop(self.remove(operation.seq));
        let weight = weight(&operation);
        if self.bytes + weight <= self.bytes_max {
            self.bytes += weight;
            self.operations.insert(operation.seq, operation);
        }
    }

    fn remove(&mut self, seq: Seq) -> Option<Arc<StoredOperation>> {
        let operation = self.operations.remove(&seq)?;
        self.bytes -= weight(&operation);
        Some(operation)
    }

    fn clear(&mut self) {
        (self.operations, self.bytes) = (FxHashMap::default(), 0);
    }
}

/// Whether a stored operation is the claimed one: the last check before it is sent.
pub(crate) fn matches_claim(claim: &Claim, operation: &StoredOperation) -> bool {
    operation.seq == claim.seq
        && operation.at == claim.accepted_at
        && operation.group == claim.group
        && operation.kind == claim.kind
}
