//! Broken logs.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::{
    Batch, Epoch, Lsn, Ownership, PartitionOwner, Replay, Retention, StoredEntry, StoredOperation,
    StoredPage, StoredQuery,
};
use tidegate_store::{Costs, Log, StoreFuture};

use super::{BrokenStore, Quirk};

impl BrokenStore {
    /// The owner that the inner log accepts.
    fn owner(&self, owner: Ownership, ignores: Quirk) -> Ownership {
        let latest = self.notes.lock().unwrap().latest;
        if self.is(Quirk::OwnSameEpoch) || self.is(ignores) { latest.unwrap_or(owner) } else { owner }
    }
}

impl Log for BrokenStore {
    fn acquire_partition(
        &self,
        partition: Partition,
        node: &str,
        ttl: Duration,
    ) -> StoreFuture<'_, Ownership> {
        let node = node.to_owned();
        Box::pin(async move {
            let answer = self.inner.acquire_partition(partition, &node, ttl).await;
            let mut notes = self.notes.lock().unwrap();
            let answer = match (answer, notes.latest) {
                (Err(_), Some(latest)) if self.is(Quirk::OwnWhileHeld) => Ok(latest),
                (answer, _) => answer,
            };
            notes.latest = answer.as_ref().ok().copied().or(notes.latest);
            let epoch = |owner: Ownership| if self.is(Quirk::OwnSameEpoch) { Epoch(1) } else { owner.epoch };
            answer.map(|owner| Ownership { epoch: epoch(owner), ..owner })
        })
    }

    fn renew(&self, owner: Ownership, ttl: Duration) -> StoreFuture<'_, Ownership> {
        if self.is(Quirk::RenewDoesNothing) {
            return Box::pin(async move { Ok(owner) });
        }
        self.inner.renew(owner, ttl)
    }

    fn release(&self, owner: Ownership) -> StoreFuture<'_, ()> {
        self.inner.release(self.owner(owner, Quirk::ReleaseIgnoresEpoch))
    }

    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> StoreFuture<'a, Lsn> {
        Box::pin(async move {
            let mut parts = Vec::new();
            let last = self.inner.load(partition, &mut |part| parts.push(part)).await?;
            if self.is_in_image(Quirk::ImageLacksLastAppend) {
                parts.pop();
            }
            let mut facts: Vec<_> = parts.into_iter().flatten().collect();
            if self.is(Quirk::LoadDropsLastFact) {
                facts.pop();
            }
            if self.is(Quirk::LoadSwapsFacts) && facts.len() > 1 {
                facts.swap(0, 1);
            }
            if self.is_in_image(Quirk::ImageLacksHalfOfFacts) {
                facts.truncate(facts.len() / 2);
            }
            replay(facts);
            Ok(if self.is(Quirk::LoadForgetsNumber) { Lsn(1) } else { last })
        })
    }

    fn append(&self, owner: Ownership, batch: Batch) -> StoreFuture<'_, Lsn> {
        let owner = self.owner(owner, Quirk::AppendIgnoresEpoch);
        let mut batch = batch;
        if self.is(Quirk::AppendForgetsReopened) {
            batch.reopened.clear();
        }
        if self.is(Quirk::AppendForgetsDrained) {
            batch.drained.clear();
        }
        if self.is(Quirk::AppendForgetsCosts) {
            batch.costs.clear();
        }
        if self.is(Quirk::AppendDoublesCosts) {
            batch.costs.extend(batch.costs.clone());
        }
        if self.is(Quirk::AppendForgetsAttempts) {
            batch.attempts.clear();
        }
        if self.is(Quirk::AppendKeepsFirstAttempt) {
            let known = &self.notes.lock().unwrap().attempts;
            let is_known =
                |one: &StoredAttempt| known.iter().any(|old| (old.seq, old.fence) == (one.seq, one.fence));
            batch.attempts.retain(|attempt| !is_known(attempt));
        }
        self.notes.lock().unwrap().attempts.extend(batch.attempts.clone());
        let (costs, attempts) = (batch.costs.clone(), batch.attempts.clone());
        if self.is(Quirk::AppendIgnoresFollows) {
            batch.follows = None;
        }
        Box::pin(async move {
            if self.is(Quirk::AppendKeepsFirstResult) {
                let seqs = batch.results.iter().map(|result| result.seq).collect();
                let known = self.inner.read(owner.partition, seqs).await?;
                let is_open =
                    |stored: Option<StoredEntry>| stored.is_none_or(|stored| stored.result.is_none());
                let mut are_open = known.into_iter().map(is_open);
                batch.results.retain(|_| are_open.next().unwrap_or(true));
            }
            let half = Batch { facts: batch.facts.clone(), ..Batch::default() };
            let answer = self.inner.append(owner, batch).await;
            if answer.is_err() && self.is(Quirk::AppendKeepsHalfOfRefused) {
                self.inner.append(owner, half).await?;
            }
            if answer.is_err() && self.is(Quirk::AppendKeepsCostsOfRefused) {
                let latest = self.notes.lock().unwrap().latest.unwrap_or(owner);
                self.inner.append(latest, Batch { costs, ..Batch::default() }).await?;
            }
            if answer.is_err() && self.is(Quirk::AppendKeepsAttemptsOfRefused) {
                let latest = self.notes.lock().unwrap().latest.unwrap_or(owner);
                self.inner.append(latest, Batch { attempts, ..Batch::default() }).await?;
            }
            answer.map(|lsn| if self.is(Quirk::AppendNumbersSkip) { Lsn(lsn.0 * 2) } else { lsn })
        })
    }

    fn max_concurrent_appends(&self) -> usize {
        self.inner.max_concurrent_appends()
    }

    fn load_operations(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Option<StoredOperation>>> {
        let partition = if self.is(Quirk::OperationsMixPartitions) { 0 } else { partition };
        let mut seqs = seqs;
        if self.is(Quirk::OperationsSort) {
            seqs.sort();
        }
        let read = self.read(partition, seqs);
        Box::pin(async move {
            let mut found = read.await?;
            if self.is(Quirk::OperationsLackPayload) {
                found.iter_mut().flatten().for_each(|stored| stored.operation.payload.clear());
            }
            Ok(found.into_iter().map(|stored| stored.map(|stored| stored.operation)).collect())
        })
    }

    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> StoreFuture<'_, Vec<Option<StoredEntry>>> {
        let partition = if self.is(Quirk::ReadMixesPartitions) { 0 } else { partition };
        let mut seqs = seqs;
        if self.is(Quirk::ReadSorts) {
            seqs.sort();
        }
        Box::pin(async move {
            let mut found = self.inner.read(partition, seqs).await?;
            for stored in found.iter_mut().flatten() {
                if self.is(Quirk::ReadCutsPayload) {
                    stored.operation.payload.truncate(65_535);
                }
            }
            let is_lost = self.is_in_image(Quirk::ImageLacksOperation)
                || (self.is(Quirk::SweepTakesPending) && self.notes.lock().unwrap().calls > 0);
            if is_lost && let Some(last) = found.last_mut() {
                *last = None;
            }
            Ok(found)
        })
    }

    fn read_attempts(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Vec<StoredAttempt>>> {
        let mut seqs = seqs;
        if self.is(Quirk::AttemptsSort) {
            seqs.sort();
        }
        let is_lost = self.is(Quirk::SweepKeepsAttempts) && self.notes.lock().unwrap().calls > 0;
        let partition = if self.is(Quirk::AttemptsMixPartitions) { 0 } else { partition };
        let kept = self.notes.lock().unwrap().attempts.clone();
        Box::pin(async move {
            let mut found = self.inner.read_attempts(partition, seqs.clone()).await?;
            if is_lost {
                for (seq, found) in seqs.iter().zip(&mut found) {
                    *found = kept.iter().filter(|attempt| attempt.seq == *seq).cloned().collect();
                }
            }
            Ok(found)
        })
    }

    fn list(&self, partition: Partition, query: StoredQuery) -> StoreFuture<'_, StoredPage> {
        let mut query = query;
        match self.quirk {
            Quirk::ListIgnoresKind => query.kind = None,
            Quirk::ListIgnoresEnd => query.ended = None,
            Quirk::ListOverLimit => query.limit += 1,
            Quirk::ListSignedCursor if query.before.is_some_and(|before| before.0 > i64::MAX as u64) => {
                query.before = Some(Seq(0));
            }
            _ => {}
        }
        Box::pin(async move {
            let mut page = self.inner.list(partition, query).await?;
            page.next = match self.quirk {
                Quirk::ListRepeats => page.next.map(|next| Seq(next.0 + 1)),
                Quirk::ListSkips => page.next.map(|next| Seq(next.0 - 1)),
                _ => page.next,
            };
            Ok(page)
        })
    }

    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> StoreFuture<'_, ()> {
        let owner = self.owner(owner, Quirk::SnapshotIgnoresEpoch);
        Box::pin(async move {
            let last = self.inner.load(owner.partition, &mut |_| ()).await?;
            let more = if self.is(Quirk::SnapshotTakesOneMore) { 1 } else { 0 };
            self.inner.snapshot(owner, Lsn(upto.0 + more).min(last), parts).await
        })
    }

    fn partition_owners(&self) -> StoreFuture<'_, Vec<PartitionOwner>> {
        Box::pin(async move {
            let owners = self.inner.partition_owners().await?;
            let mut notes = self.notes.lock().unwrap();
            if self.is(Quirk::OwnersStay) {
                notes.owners.extend(owners);
                notes.owners.dedup_by_key(|owner| owner.partition);
                return Ok(notes.owners.clone());
            }
            Ok(owners)
        })
    }

    fn sweep(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize> {
        let owner = self.owner(owner, Quirk::SweepIgnoresEpoch);
        self.notes.lock().unwrap().calls += 1;
        let most = if self.is(Quirk::SweepUnbounded) { usize::MAX } else { retention.most };
        self.inner.sweep(owner, Retention { most, ..retention })
    }

    fn costs(&self) -> Option<&dyn Costs> {
        Some(self)
    }
}
