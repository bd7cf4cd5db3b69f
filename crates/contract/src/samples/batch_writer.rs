//! Writes batches as an owner would: sequence numbers grow, only active operations end, and only
//! ended ones are reopened.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::{Seq, Time};
use tidegate_store::log::{Batch, StoredOperation, StoredResult};

use super::{end_state, fact, fault, maybe, name, some};
use crate::rng::TestRng;

/// Writes batches that a log must accept.
#[derive(Debug)]
pub struct BatchWriter {
    /// Its source of randomness.
    pub rng: TestRng,
    next: Seq,
    pending: Vec<Seq>,
    ended: Vec<Seq>,
}

impl BatchWriter {
    /// Creates a writer that has written nothing.
    #[must_use]
    pub const fn new(rng: TestRng) -> Self {
        Self { rng, next: Seq(1), pending: Vec::new(), ended: Vec::new() }
    }

    /// Creates a batch: a few facts, operations, results, and some reruns.
    pub fn batch(&mut self, at: Time) -> Batch {
        let facts = some(&mut self.rng, 5, fact);
        let reopened = self.reopen();
        let accepted = self.rng.below(4);
        let operations: Vec<_> = (0..accepted).map(|_| Arc::new(self.operation(at))).collect();
        let results = self.results(at, &reopened);
        Batch { facts, operations, results, reopened, ..Batch::default() }
    }

    /// Creates a batch with at least one fact and exactly this many operations, of which every
    /// third has ended.
    pub fn sized_batch(&mut self, operations: usize, at: Time) -> Batch {
        let mut facts = some(&mut self.rng, 3, fact);
        facts.push(fact(&mut self.rng));
        let operations: Vec<_> = (0..operations).map(|_| Arc::new(self.operation(at))).collect();
        let ended: Vec<Seq> = operations.iter().step_by(3).map(|operation| operation.seq).collect();
        let results = ended.into_iter().map(|seq| self.result(seq, at)).collect();
        Batch { facts, operations, results, ..Batch::default() }
    }

    /// Creates some facts, at least one.
    pub fn facts(&mut self) -> Vec<tidegate_core::Fact> {
        let mut facts = some(&mut self.rng, 5, fact);
        facts.push(fact(&mut self.rng));
        facts
    }

    /// Forgets operations that the log no longer keeps.
    pub fn forget(&mut self, is_gone: impl Fn(Seq) -> bool) {
        self.ended.retain(|seq| !is_gone(*seq));
    }

    /// Creates an operation with the next sequence number.
    pub fn operation(&mut self, at: Time) -> StoredOperation {
        let seq = self.next;
        self.next = Seq(seq.0 + 1);
        self.pending.push(seq);
        let rng = &mut self.rng;
        StoredOperation {
            seq,
            at,
            group: name(rng),
            kind: name(rng),
            key: maybe(rng, name),
            envelope: bytes(rng),
            payload: bytes(rng),
        }
    }

    /// Creates a result for an operation that had none.
    pub fn result(&mut self, seq: Seq, at: Time) -> StoredResult {
        self.pending.retain(|other| *other != seq);
        self.ended.push(seq);
        let rng = &mut self.rng;
        StoredResult {
            seq,
            at,
            state: end_state(rng),
            attempt: rng.below(1_001) as u16,
            fault: fault(rng),
            body: bytes(rng),
        }
    }

    fn results(&mut self, at: Time, except: &[Seq]) -> Vec<StoredResult> {
        let count = self.rng.below(4).min(self.pending.len() as u64);
        let mut results = Vec::new();
        for _ in 0..count {
            let seq = *self.rng.pick(&self.pending);
            if !except.contains(&seq) {
                results.push(self.result(seq, at));
            }
        }
        results
    }

    fn reopen(&mut self) -> Vec<Seq> {
        if self.ended.is_empty() || !self.rng.percent(25) {
            return Vec::new();
        }
        let seq = *self.rng.pick(&self.ended);
        self.ended.retain(|other| *other != seq);
        self.pending.push(seq);
        vec![seq]
    }
}

/// Random bytes: none, a few, or more than a page of a file.
fn bytes(rng: &mut TestRng) -> Bytes {
    let len = match rng.below(20) {
        0..=4 => 0,
        5..=18 => rng.below(600),
        _ => rng.within(60_000..80_000),
    };
    Bytes::from(rng.bytes(len as usize))
}
