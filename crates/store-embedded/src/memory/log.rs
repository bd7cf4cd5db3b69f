//! The log in maps. Facts are kept in encoded form, as in the other stores, so that what a
//! simulation replays has gone through the codec.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::bounds::LIST_SCANNED_MAX;
use tidegate_core::id::Partition;
use tidegate_core::{Fence, Seq};
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::costs::{Cost, LimitSnapshot};
use tidegate_store::log::{
    Batch, Lsn, Ownership, PartitionOwner, Replay, Retention, StoredEntry, StoredOperation, StoredPage,
    StoredQuery, StoredResult,
};
use tidegate_store::upkeep::StoreStats;
use tidegate_store::{Costs, Log, Result, StoreFuture, codec};

use super::{MemoryStore, ready};
use crate::epoch_lease::EpochLease;
use crate::query_filter::{matches_end_state, matches_group_and_kind};
use crate::{checks, query_filter};

/// Every partition that was ever used.
pub(super) type Partitions = BTreeMap<Partition, MemoryPartition>;

/// The state of a partition.
#[derive(Default)]
pub(super) struct MemoryPartition {
    pub(super) lease: EpochLease,
    last: Lsn,
    /// The appends after the snapshot, in order.
    log: BTreeMap<Lsn, Bytes>,
    snapshot: Vec<Bytes>,
    snapshot_upto: Lsn,
    operations: BTreeMap<Seq, Arc<StoredOperation>>,
    results: BTreeMap<Seq, StoredResult>,
    attempts: BTreeMap<(Seq, Fence), StoredAttempt>,
    pub(super) costs: Vec<Cost>,
    pub(super) standings: BTreeMap<Arc<str>, LimitSnapshot>,
}

impl MemoryPartition {
    fn append(&mut self, owner: Ownership, batch: Batch) -> Result<Lsn> {
        self.lease.check(owner)?;
        checks::batch(&batch)?;
        checks::follows(&batch, self.last)?;
        if let Some(taken) = batch.operations.iter().find(|new| self.operations.contains_key(&new.seq)) {
            return Err(checks::seq_taken(taken.seq));
        }
        self.last = Lsn(self.last.0 + 1);
        self.log.insert(self.last, codec::encode(&batch.facts));
        for seq in batch.reopened {
            self.results.remove(&seq);
        }
        self.operations.extend(batch.operations.into_iter().map(|operation| (operation.seq, operation)));
        self.results.extend(batch.results.into_iter().map(|result| (result.seq, result)));
        for attempt in batch.attempts {
            let claim = (attempt.seq, attempt.fence);
            let merged = match self.attempts.remove(&claim) {
                Some(earlier) => earlier.merge(attempt),
                None => attempt,
            };
            self.attempts.insert(claim, merged);
        }
        self.costs.extend(batch.costs);
        Ok(self.last)
    }

    fn stored(&self, operation: &StoredOperation) -> StoredEntry {
        StoredEntry { operation: operation.clone(), result: self.results.get(&operation.seq).cloned() }
    }

    fn attempts_of(&self, seq: Seq) -> Vec<StoredAttempt> {
        let own = self.attempts.range((seq, Fence(0))..=(seq, Fence(u64::MAX)));
        own.map(|(_, attempt)| attempt.clone()).collect()
    }

    fn list(&self, query: &StoredQuery) -> StoredPage {
        let before = query.before.unwrap_or(Seq(u64::MAX));
        let mut page = StoredPage::default();
        let mut looked_at = None;
        for (scanned, operation) in self.operations.range(..before).rev().map(|(_, kept)| kept).enumerate() {
            if page.items.len() >= query.limit || scanned >= LIST_SCANNED_MAX {
                page.next = looked_at;
                break;
            }
            looked_at = Some(operation.seq);
            let ended = self.results.get(&operation.seq).map(|result| result.state);
            if matches_group_and_kind(query, &operation.group, &operation.kind)
                && matches_end_state(query, ended)
            {
                page.items.push(query_filter::without_bodies(self.stored(operation)));
            }
        }
        page
    }

    fn sweep(&mut self, owner: Ownership, retention: Retention) -> Result<usize> {
        self.lease.check(owner)?;
        let old = self.results.values().filter(|result| result.at < retention.ended_before);
        let swept: Vec<Seq> = old.map(|result| result.seq).take(retention.most).collect();
        for seq in &swept {
            self.results.remove(seq);
            self.operations.remove(seq);
        }
        let gone: BTreeSet<Seq> = swept.iter().copied().collect();
        self.attempts.retain(|(seq, _), _| !gone.contains(seq));
        Ok(swept.len())
    }

    fn snapshot(&mut self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> Result<()> {
        self.lease.check(owner)?;
        checks::snapshot_fits(upto, self.last, self.snapshot_upto)?;
        checks::check_snapshot_parts(&parts)?;
        self.log = self.log.split_off(&Lsn(upto.0 + 1));
        self.snapshot = parts;
        self.snapshot_upto = upto;
        Ok(())
    }

    /// All facts of the partition, in order, and the number of the last append.
    fn history(&self) -> (Vec<Bytes>, Lsn) {
        (self.snapshot.iter().chain(self.log.values()).cloned().collect(), self.last)
    }

    pub(super) fn count_into(&self, stats: &mut StoreStats) {
        let facts = self.snapshot.iter().chain(self.log.values()).map(Bytes::len).sum::<usize>();
        let payloads = self.operations.values().map(|kept| kept.payload.len() + kept.envelope.len());
        let bodies = self.results.values().map(|result| result.body.len());
        stats.bytes += (facts + payloads.chain(bodies).sum::<usize>()) as u64;
        stats.operations += self.operations.len() as u64;
        stats.appends += self.log.len() as u64;
    }
}

impl Log for MemoryStore {
    fn acquire_partition(
        &self,
        partition: Partition,
        node: &str,
        ttl: Duration,
    ) -> StoreFuture<'_, Ownership> {
        let node: Arc<str> = node.into();
        ready(move || {
            let now = self.clock.now();
            self.partitions().entry(partition).or_default().lease.own(partition, &node, now, ttl)
        })
    }

    fn renew(&self, owner: Ownership, ttl: Duration) -> StoreFuture<'_, Ownership> {
        ready(move || {
            let now = self.clock.now();
            self.partitions().entry(owner.partition).or_default().lease.renew(owner, now, ttl)
        })
    }

    fn release(&self, owner: Ownership) -> StoreFuture<'_, ()> {
        ready(move || {
            self.partitions().entry(owner.partition).or_default().lease.release(owner);
            Ok(())
        })
    }

    fn partition_owners(&self) -> StoreFuture<'_, Vec<PartitionOwner>> {
        ready(move || {
            let now = self.clock.now();
            let partitions = self.partitions();
            Ok(partitions
                .iter()
                .filter_map(|(partition, kept)| kept.lease.current_owner(*partition, now))
                .collect())
        })
    }

    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> StoreFuture<'a, Lsn> {
        ready(move || {
            let (parts, last) =
                self.partitions().get(&partition).map(MemoryPartition::history).unwrap_or_default();
            for part in parts {
                replay(codec::decode(&part)?);
            }
            Ok(last)
        })
    }

    fn append(&self, owner: Ownership, batch: Batch) -> StoreFuture<'_, Lsn> {
        ready(move || self.partitions().entry(owner.partition).or_default().append(owner, batch))
    }

    fn max_concurrent_appends(&self) -> usize {
        2
    }

    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> StoreFuture<'_, Vec<Option<StoredEntry>>> {
        ready(move || {
            let partitions = self.partitions();
            let Some(kept) = partitions.get(&partition) else { return Ok(vec![None; seqs.len()]) };
            Ok(seqs.iter().map(|seq| kept.operations.get(seq).map(|found| kept.stored(found))).collect())
        })
    }

    fn load_operations(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Option<StoredOperation>>> {
        ready(move || {
            let partitions = self.partitions();
            let Some(kept) = partitions.get(&partition) else { return Ok(vec![None; seqs.len()]) };
            Ok(seqs.iter().map(|seq| kept.operations.get(seq).map(|found| (**found).clone())).collect())
        })
    }

    fn read_attempts(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Vec<StoredAttempt>>> {
        ready(move || {
            let partitions = self.partitions();
            let Some(kept) = partitions.get(&partition) else { return Ok(vec![Vec::new(); seqs.len()]) };
            Ok(seqs.iter().map(|seq| kept.attempts_of(*seq)).collect())
        })
    }

    fn list(&self, partition: Partition, query: StoredQuery) -> StoreFuture<'_, StoredPage> {
        ready(move || Ok(self.partitions().get(&partition).map(|kept| kept.list(&query)).unwrap_or_default()))
    }

    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> StoreFuture<'_, ()> {
        ready(move || self.partitions().entry(owner.partition).or_default().snapshot(owner, upto, parts))
    }

    fn sweep(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize> {
        ready(move || self.partitions().entry(owner.partition).or_default().sweep(owner, retention))
    }

    fn costs(&self) -> Option<&dyn Costs> {
        Some(self)
    }
}
