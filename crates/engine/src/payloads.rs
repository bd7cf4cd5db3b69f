//! Operations whose calls may leave soon: a bounded memory in front of the store, so that most calls
//! wait for no read. Those that became durable a moment ago are here, and those that were read ahead
//! of need; what is not here is read when it is taken. Nothing enters it before its append is durable.

use rustc_hash::FxHashMap;
use tidegate_core::Seq;
use tidegate_core::model::Claim;
use tidegate_store::log::StoredOperation;

#[derive(Debug)]
pub(crate) struct Payloads {
    /// Accepted a moment ago; they stay until they end, because an attempt may be repeated.
    recent: Cache,
    /// Read ahead of need; each goes when it is taken, so that the next ones have room.
    ahead: Cache,
}

/// Operations up to a number of bytes.
#[derive(Debug)]
struct Cache {
    operations: FxHashMap<Seq, StoredOperation>,
    bytes: usize,
    bytes_max: usize,
}

/// What an operation weighs beside its payload, roughly.
const OVERHEAD: usize = 256;
/// The part of the memory that is kept free for what is read ahead: new operations would fill all of
/// it, and with a long queue theirs are the payloads that are needed last.
const AHEAD_PART: usize = 4;

/// The bytes that an operation takes, roughly.
pub(crate) fn weight(operation: &StoredOperation) -> usize {
    operation.payload.len() + operation.envelope.len() + OVERHEAD
}

impl Payloads {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let ahead = bytes_max / AHEAD_PART;
        Self { recent: Cache::new(bytes_max - ahead), ahead: Cache::new(ahead) }
    }

    /// Keeps one that is durable, if there is room.
    pub(crate) fn keep(&mut self, operation: StoredOperation) {
        self.recent.keep(operation);
    }

    /// Keeps one that was read ahead, if there is room.
    pub(crate) fn keep_ahead(&mut self, operation: StoredOperation) {
        self.ahead.keep(operation);
    }

    /// The one that a claim is of.
    pub(crate) fn get_for_claim(&mut self, claim: &Claim) -> Option<StoredOperation> {
        let recent = self.recent.operations.get(&claim.seq).cloned();
        recent.or_else(|| self.ahead.remove(claim.seq)).filter(|operation| matches_claim(claim, operation))
    }

    /// The one at this place.
    pub(crate) fn get(&self, seq: Seq) -> Option<&StoredOperation> {
        self.recent.operations.get(&seq).or_else(|| self.ahead.operations.get(&seq))
    }

    /// How many are here.
    pub(crate) fn len(&self) -> usize {
        self.recent.operations.len() + self.ahead.operations.len()
    }

    /// How many of them were read ahead.
    pub(crate) fn ahead_len(&self) -> usize {
        self.ahead.operations.len()
    }

    /// The most bytes that may be read ahead.
    pub(crate) const fn ahead_bytes_max(&self) -> usize {
        self.ahead.bytes_max
    }

    /// How many bytes more may be read ahead now.
    pub(crate) const fn ahead_room(&self) -> usize {
        self.ahead.bytes_max - self.ahead.bytes
    }

    /// Drops what was read ahead and is not among these, which come next.
    pub(crate) fn retain_ahead(&mut self, next: &[Seq]) {
        let next: rustc_hash::FxHashSet<Seq> = next.iter().copied().collect();
        let Cache { operations, bytes, .. } = &mut self.ahead;
        operations.retain(|seq, operation| {
            let stays = next.contains(seq);
            *bytes -= if stays { 0 } else { weight(operation) };
            stays
        });
    }

    /// Forgets one that ended.
    pub(crate) fn forget(&mut self, seq: Seq) {
        drop((self.recent.remove(seq), self.ahead.remove(seq)));
    }

    /// Forgets all: a log that is read again may not have them.
    pub(crate) fn clear(&mut self) {
        self.recent.clear();
        self.ahead.clear();
    }
}

impl Cache {
    fn new(bytes_max: usize) -> Self {
        Self { operations: FxHashMap::default(), bytes: 0, bytes_max }
    }

    fn keep(&mut self, operation: StoredOperation) {
        drop(self.remove(operation.seq));
        let weight = weight(&operation);
        if self.bytes + weight <= self.bytes_max {
            self.bytes += weight;
            self.operations.insert(operation.seq, operation);
        }
    }

    fn remove(&mut self, seq: Seq) -> Option<StoredOperation> {
        let operation = self.operations.remove(&seq)?;
        self.bytes -= weight(&operation);
        Some(operation)
    }

    fn clear(&mut self) {
        (self.operations, self.bytes) = (FxHashMap::default(), 0);
    }
}

/// Whether a stored operation is the one that was claimed: the last check before it is sent.
pub(crate) fn matches_claim(claim: &Claim, operation: &StoredOperation) -> bool {
    operation.seq == claim.seq
        && operation.at == claim.accepted_at
        && operation.group == claim.group
        && operation.kind == claim.kind
}
