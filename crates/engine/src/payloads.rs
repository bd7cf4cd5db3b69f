//! Payloads of operations that were accepted a moment ago and may run at once: a bounded memory in front of the
//! store, so that the usual case reads nothing back. What is not here is read when it is taken.

use std::sync::Mutex;

use rustc_hash::FxHashMap;
use tidegate_core::Seq;
use tidegate_store::log::StoredOperation;

#[derive(Debug)]
pub(crate) struct Payloads {
    kept: Mutex<Kept>,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    operations: FxHashMap<Seq, StoredOperation>,
    bytes: usize,
}

/// What an operation weighs beside its payload, roughly.
const OVERHEAD: usize = 256;

fn weight(operation: &StoredOperation) -> usize {
    operation.payload.len() + operation.envelope.len() + OVERHEAD
}

impl Payloads {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { kept: Mutex::default(), bytes_max }
    }

    /// Keeps one, if there is room.
    pub(crate) fn keep(&self, operation: &StoredOperation) {
        let Ok(mut kept) = self.kept.lock() else { return };
        let weight = weight(operation);
        if kept.bytes + weight <= self.bytes_max {
            kept.bytes += weight;
            kept.operations.insert(operation.seq, operation.clone());
        }
    }

    /// A copy of one; it stays, because an attempt may be repeated.
    pub(crate) fn get(&self, seq: Seq) -> Option<StoredOperation> {
        self.kept.lock().ok()?.operations.get(&seq).cloned()
    }

    /// Forgets one that ended.
    pub(crate) fn forget(&self, seq: Seq) {
        let Ok(mut kept) = self.kept.lock() else { return };
        if let Some(operation) = kept.operations.remove(&seq) {
            kept.bytes -= weight(&operation);
        }
    }
}
