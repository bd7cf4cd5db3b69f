//! Operations that became durable a moment ago and may run at once: a bounded memory in front of
//! the store, so that most calls read nothing back. What is not here is read when it is taken.
//! Nothing enters it before its append is durable.

use rustc_hash::FxHashMap;
use tidegate_core::Seq;
use tidegate_core::model::Claim;
use tidegate_store::log::StoredOperation;

#[derive(Debug)]
pub(crate) struct Payloads {
    operations: FxHashMap<Seq, StoredOperation>,
    bytes: usize,
    bytes_max: usize,
}

/// What an operation weighs beside its payload, roughly.
const OVERHEAD: usize = 256;

fn weight(operation: &StoredOperation) -> usize {
    operation.payload.len() + operation.envelope.len() + OVERHEAD
}

impl Payloads {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { operations: FxHashMap::default(), bytes: 0, bytes_max }
    }

    /// Keeps one that is durable, if there is room.
    pub(crate) fn keep(&mut self, operation: StoredOperation) {
        self.forget(operation.seq);
        let weight = weight(&operation);
        if self.bytes + weight <= self.bytes_max {
            self.bytes += weight;
            self.operations.insert(operation.seq, operation);
        }
    }

    /// A copy of the one that a claim is of; it stays, because an attempt may be repeated.
    pub(crate) fn of(&self, claim: &Claim) -> Option<StoredOperation> {
        self.operations.get(&claim.seq).filter(|operation| is_of(claim, operation)).cloned()
    }

    /// The one at this place.
    pub(crate) fn at(&self, seq: Seq) -> Option<&StoredOperation> {
        self.operations.get(&seq)
    }

    /// Forgets one that ended.
    pub(crate) fn forget(&mut self, seq: Seq) {
        if let Some(operation) = self.operations.remove(&seq) {
            self.bytes -= weight(&operation);
        }
    }

    /// Forgets all: a log that is read again may not have them.
    pub(crate) fn clear(&mut self) {
        (self.operations, self.bytes) = (FxHashMap::default(), 0);
    }
}

/// Whether a stored operation is the one that was claimed: the last check before it is sent.
pub(crate) fn is_of(claim: &Claim, operation: &StoredOperation) -> bool {
    operation.seq == claim.seq
        && operation.at == claim.accepted_at
        && operation.group == claim.group
        && operation.kind == claim.kind
}
