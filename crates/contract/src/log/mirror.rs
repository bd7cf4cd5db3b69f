//! The expected content of a partition, tracked by plain means, and the comparison with the actual
//! content.

use std::collections::BTreeMap;

use bytes::Bytes;
use tidegate_core::id::Partition;
use tidegate_core::{Fact, Seq};
use tidegate_store::Log;
use tidegate_store::log::{Batch, Lsn, StoredEntry, StoredQuery};

use crate::harness::ExpectValue;

/// The expected content of a partition.
#[derive(Clone, Debug, Default)]
pub(super) struct Mirror {
    base: Vec<Fact>,
    appends: BTreeMap<Lsn, Vec<Fact>>,
    pub(super) base_upto: Lsn,
    pub(super) last: Lsn,
    pub(super) stored: BTreeMap<Seq, StoredEntry>,
}

/// The actual content of a partition.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LoadedLog {
    pub(super) last: Lsn,
    pub(super) facts: Vec<Fact>,
}

impl LoadedLog {
    /// Replays the partition.
    pub(super) async fn load<L: Log + ?Sized>(log: &L, partition: Partition) -> Self {
        let mut facts = Vec::new();
        let last =
            log.load(partition, &mut |part| facts.extend(part)).await.expect_value("replay the partition");
        Self { last, facts }
    }
}

impl Mirror {
    /// Records that a batch was appended.
    pub(super) fn note(&mut self, batch: &Batch) {
        self.last = Lsn(self.last.0 + 1);
        self.appends.insert(self.last, batch.facts.clone());
        for seq in &batch.reopened {
            if let Some(stored) = self.stored.get_mut(seq) {
                stored.result = None;
            }
        }
        for operation in &batch.operations {
            self.stored.insert(operation.seq, StoredEntry { operation: (**operation).clone(), result: None });
        }
        for result in &batch.results {
            if let Some(stored) = self.stored.get_mut(&result.seq) {
                stored.result = Some(result.clone());
            }
        }
    }

    /// Records that everything up to `upto` was replaced.
    pub(super) fn snapshot(&mut self, upto: Lsn, facts: Vec<Fact>) {
        self.base = facts;
        self.base_upto = upto;
        self.appends.retain(|lsn, _| *lsn > upto);
    }

    /// The expected replay.
    pub(super) fn expected_load(&self) -> LoadedLog {
        let later = self.appends.values().flatten().cloned();
        LoadedLog { last: self.last, facts: self.base.iter().cloned().chain(later).collect() }
    }

    /// Compares replay and operations with the content of a log.
    pub(super) async fn check<L: Log + ?Sized>(&self, log: &L, partition: Partition, when: &str) {
        same(&LoadedLog::load(log, partition).await, &self.expected_load(), when);
        self.check_stored(log, partition, when).await;
    }

    /// Compares the operations only.
    pub(super) async fn check_stored<L: Log + ?Sized>(&self, log: &L, partition: Partition, when: &str) {
        let seqs: Vec<Seq> = self.stored.keys().copied().collect();
        let found = log.read(partition, seqs.clone()).await.expect_value("read operations");
        assert_eq!(found.len(), seqs.len(), "{when}: one answer for each operation that was asked for");
        for (seq, found) in seqs.iter().zip(found) {
            assert!(found.as_ref() == self.stored.get(seq), "{when}: operation {} reads back wrong", seq.0);
        }
        let found = log
            .load_operations(partition, seqs.clone())
            .await
            .expect_value("read operations without results");
        let wanted = self.stored.values().map(|stored| &stored.operation);
        assert_eq!(found.len(), seqs.len(), "{when}: one operation for each that was asked for");
        for (found, wanted) in found.iter().zip(wanted) {
            assert!(
                found.as_ref() == Some(wanted),
                "{when}: operation {} alone reads back wrong",
                wanted.seq.0
            );
        }
    }

    /// The expected list, newest first.
    pub(super) fn listed(&self, query: &StoredQuery) -> Vec<StoredEntry> {
        let fits = |stored: &&StoredEntry| {
            query.group.as_ref().is_none_or(|group| *group == stored.operation.group)
                && query.kind.as_ref().is_none_or(|kind| *kind == stored.operation.kind)
                && query.ended.is_none_or(|ended| stored.result.as_ref().is_some_and(|r| r.state == ended))
                && query.before.is_none_or(|before| stored.operation.seq < before)
        };
        self.stored.values().rev().filter(fits).map(without_bodies).collect()
    }
}

fn without_bodies(stored: &StoredEntry) -> StoredEntry {
    let mut stored = stored.clone();
    stored.operation.payload = Bytes::new();
    if let Some(result) = &mut stored.result {
        result.body = Bytes::new();
    }
    stored
}

/// Compares two replays and reports where they differ, without printing all of both.
#[track_caller]
pub(super) fn same(found: &LoadedLog, wanted: &LoadedLog, when: &str) {
    let parts = found.facts.iter().zip(&wanted.facts).position(|(found, wanted)| found != wanted);
    if let Some(at) = parts {
        assert_eq!(found.facts[at], wanted.facts[at], "{when}: fact {at} is another one");
    }
    assert_eq!(found.facts.len(), wanted.facts.len(), "{when}: number of facts");
    assert_eq!(found.last, wanted.last, "{when}: number of the last append");
}
