//! The log of a partition on SQLite: an append is one row of facts, the new operations and the
//! results, in one transaction. Snapshots and clean-up run in small steps between the appends.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::OptionalExtension;
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::{
    Batch, Lsn, Ownership, PartitionOwner, Replay, Retention, StoredEntry, StoredOperation, StoredPage,
    StoredQuery,
};
use tidegate_store::{Costs, Log, Result, StoreFuture};
use tokio::sync::mpsc;

use super::partition::PartitionFile;
use super::sweep::{self, ExpiryScan};
use super::tail::{LatestOperation, PendingAppend};
use super::writer::{StepContext, StepResult};
use super::{EmbeddedStore, attempts, blocking, costs, history, listing, rows, snapshot};
use crate::checks;

/// The appends that one transaction removes after a snapshot.
const TRIMMED_AT_ONCE: u64 = 128;
/// The lists of facts that are read ahead of their consumer.
const READ_AHEAD: usize = 16;

impl Log for EmbeddedStore {
    fn acquire_partition(
        &self,
        partition: Partition,
        node: &str,
        ttl: Duration,
    ) -> StoreFuture<'_, Ownership> {
        let node: Arc<str> = node.into();
        Box::pin(async move {
            let file = self.partition(partition).await?;
            file.write(1, move |desk| Ok(desk.meta.lease.own(partition, &node, desk.now, ttl))).await
        })
    }

    fn renew(&self, owner: Ownership, ttl: Duration) -> StoreFuture<'_, Ownership> {
        Box::pin(async move {
            let file = self.partition(owner.partition).await?;
            file.write(0, move |desk| Ok(desk.meta.lease.renew(owner, desk.now, ttl))).await
        })
    }

    fn release(&self, owner: Ownership) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let file = self.partition(owner.partition).await?;
            file.write(0, move |desk| {
                desk.meta.lease.release(owner);
                Ok(Ok(()))
            })
            .await
        })
    }

    fn partition_owners(&self) -> StoreFuture<'_, Vec<PartitionOwner>> {
        Box::pin(async move {
            let now = self.files.options.clock.now();
            let mut owners: Vec<_> = self
                .files
                .map()
                .values()
                .filter_map(|file| file.counts.current_owner(file.partition, now))
                .collect();
            owners.sort_by_key(|owner| owner.partition);
            Ok(owners)
        })
    }

    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> StoreFuture<'a, Lsn> {
        Box::pin(async move {
            let Some(file) = self.existing(partition) else { return Ok(Lsn(0)) };
            let turn = Arc::clone(&file.snapshots).lock_owned().await;
            // Read before SQLite is, so that nothing falls between the two.
            let pending = file.wal.tail.pending();
            let (hand, mut handed) = mpsc::channel(READ_AHEAD);
            let reading = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                history::replay(&file, &pending, |facts| hand.blocking_send(facts).is_ok())
            });
            while let Some(facts) = handed.recv().await {
                replay(facts);
            }
            reading.await.unwrap_or_else(|cause| Err(blocking::join_error(cause)))
        })
    }

    fn append(&self, owner: Ownership, batch: Batch) -> StoreFuture<'_, Lsn> {
        Box::pin(async move {
            let file = self.partition(owner.partition).await?;
            checks::batch(&batch)?;
            file.wal.append(owner, batch).await
        })
    }

    fn max_concurrent_appends(&self) -> usize {
        2
    }

    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> StoreFuture<'_, Vec<Option<StoredEntry>>> {
        Box::pin(async move {
            let Some(file) = self.existing(partition) else { return Ok(vec![None; seqs.len()]) };
            let newest = file.wal.tail.latest(&seqs);
            if newest.iter().all(|newest| newest.as_ref().is_some_and(LatestOperation::is_whole)) {
                return Ok(newest.into_iter().map(|newest| newest?.to_stored()).collect());
            }
            let stored = file.read(move |sql| {
                let mut whole = sql.prepare_cached(rows::WHOLE)?;
                let mut find = |seq: &Seq| whole.query_row([seq.0.cast_signed()], rows::stored).optional();
                seqs.iter().map(&mut find).collect::<rusqlite::Result<Vec<_>>>()
            });
            let stored = stored.await?.into_iter().zip(newest);
            Ok(stored.map(|(stored, newest)| merge(stored, newest)).collect())
        })
    }

    fn load_operations(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Option<StoredOperation>>> {
        Box::pin(async move {
            let Some(file) = self.existing(partition) else { return Ok(vec![None; seqs.len()]) };
            // Read before SQLite is, so that nothing falls between the two.
            let mut found = file.wal.tail.operations(&seqs);
            let missing = seqs.iter().enumerate().filter(|(place, _)| found[*place].is_none());
            let mut missing: Vec<(Seq, usize)> = missing.map(|(place, seq)| (*seq, place)).collect();
            if missing.is_empty() {
                return Ok(found);
            }
            // In the order of the file, where neighbours share pages.
            missing.sort_unstable();
            let read = file.read(move |sql| {
                let mut accepted = sql.prepare_cached(rows::ACCEPTED)?;
                let mut find = |(seq, place): (Seq, usize)| {
                    let found = accepted.query_row([seq.0.cast_signed()], rows::operation).optional()?;
                    Ok(found.map(|operation| (place, operation)))
                };
                missing
                    .into_iter()
                    .filter_map(|one| find(one).transpose())
                    .collect::<rusqlite::Result<Vec<_>>>()
            });
            for (place, operation) in read.await? {
                found[place] = Some(operation);
            }
            Ok(found)
        })
    }

    fn read_attempts(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Vec<StoredAttempt>>> {
        Box::pin(async move {
            let Some(file) = self.existing(partition) else { return Ok(vec![Vec::new(); seqs.len()]) };
            // Read before SQLite is, so that nothing falls between the two.
            let newer = file.wal.tail.attempts(&seqs);
            file.read(move |sql| attempts::read(sql, &seqs, &newer)).await
        })
    }

    fn list(&self, partition: Partition, query: StoredQuery) -> StoreFuture<'_, StoredPage> {
        Box::pin(async move {
            let Some(file) = self.existing(partition) else { return Ok(StoredPage::default()) };
            // If applying the log has stalled, the current rows are better than nothing.
            let _ = file.wal.wait_until_applied().await;
            file.read(move |sql| listing::page(sql, &query)).await
        })
    }

    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> StoreFuture<'_, ()> {
        Box::pin(
            async move { write_snapshot(self.partition(owner.partition).await?, owner, upto, parts).await },
        )
    }

    fn sweep(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize> {
        Box::pin(
            async move { sweep_partition(&*self.partition(owner.partition).await?, owner, retention).await },
        )
    }

    fn costs(&self) -> Option<&dyn Costs> {
        Some(self)
    }
}

/// Merges what the write-ahead log has of an operation over what SQLite has.
fn merge(stored: Option<StoredEntry>, newest: Option<LatestOperation>) -> Option<StoredEntry> {
    match (newest, stored) {
        (Some(newest), _) if newest.is_whole() => newest.to_stored(),
        (Some(newest), Some(stored)) => Some(newest.merge_onto(stored)),
        (_, stored) => stored,
    }
}

/// Applies appends that are durable in the write-ahead log to SQLite.
pub(super) fn apply_appends(
    desk: &mut StepContext<'_>,
    appends: &[Arc<PendingAppend>],
) -> rusqlite::Result<()> {
    let mut log = desk.sql.prepare_cached("INSERT INTO log (lsn, facts, sum) VALUES (?1, ?2, ?3)")?;
    let mut operations = rows::OperationInserter::new(desk.sql)?;
    let mut results = rows::ResultInserter::new(desk.sql)?;
    for append in appends {
        let PendingAppend { lsn, facts, batch } = &**append;
        log.execute((lsn.0.cast_signed(), &facts[..], history::sum_of_append(*lsn).finish(facts)))?;
        for operation in &batch.operations {
            operations.insert(operation)?;
        }
        for seq in &batch.reopened {
            desk.sql.prepare_cached("DELETE FROM results WHERE seq = ?1")?.execute([seq.0.cast_signed()])?;
        }
        for result in &batch.results {
            results.insert(result)?;
        }
        if !batch.costs.is_empty() {
            costs::insert(desk.sql, &batch.costs)?;
        }
        if !batch.attempts.is_empty() {
            attempts::insert(desk.sql, &batch.attempts)?;
        }
        desk.meta.last = *lsn;
        desk.meta.operations += batch.operations.len() as u64;
    }
    Ok(())
}

/// Makes the snapshot durable first, then removes what it replaces in small steps.
async fn write_snapshot(
    file: Arc<PartitionFile>,
    owner: Ownership,
    upto: Lsn,
    parts: Vec<Bytes>,
) -> Result<()> {
    let turn = Arc::clone(&file.snapshots).lock_owned().await;
    file.wal.wait_until_applied().await?;
    file.write(0, move |desk| {
        Ok(desk
            .meta
            .lease
            .check(owner)
            .and_then(|()| checks::snapshot_fits(upto, desk.meta.last, desk.meta.snapshot)))
    })
    .await?;
    let here = Arc::clone(&file);
    let turn = blocking::run(move || {
        checks::check_snapshot_parts(&parts)?;
        snapshot::write(here.dir(), here.partition, upto, &parts)?;
        Ok(turn)
    })
    .await?;
    while file.write(TRIMMED_AT_ONCE as usize, move |desk| trim(desk, owner, upto)).await? {}
    blocking::run(move || {
        let _turn = turn;
        snapshot::remove_older(file.dir(), file.partition, upto)
    })
    .await
}

/// Removes a few appends that the snapshot has replaced; returns whether there are more.
fn trim(desk: &mut StepContext<'_>, owner: Ownership, upto: Lsn) -> StepResult<bool> {
    if let Err(refused) = desk.meta.lease.check(owner) {
        return Ok(Err(refused));
    }
    let to = Lsn(upto.0.min(desk.meta.trimmed.0 + TRIMMED_AT_ONCE));
    desk.sql.prepare_cached("DELETE FROM log WHERE lsn <= ?1")?.execute([to.0.cast_signed()])?;
    desk.meta.snapshot = desk.meta.snapshot.max(upto);
    desk.meta.trimmed = desk.meta.trimmed.max(to);
    Ok(Ok(to < upto))
}

/// Sweeps the oldest results, and then a stretch of the rest.
async fn sweep_partition(file: &PartitionFile, owner: Ownership, retention: Retention) -> Result<usize> {
    file.write(0, move |desk| Ok(desk.meta.lease.check(owner))).await?;
    file.wal.wait_until_applied().await?;
    let Retention { ended_before, most } = retention;
    let (_, front) = remove_scanned(file, ExpiryScan::from_start(ended_before), most).await?;
    let from = *file.swept_to.lock().unwrap_or_else(PoisonError::into_inner);
    let (walk, behind) =
        remove_scanned(file, ExpiryScan::resume_after(from, ended_before), most - front).await?;
    let next = if walk.at_end { Seq(0) } else { walk.after };
    *file.swept_to.lock().unwrap_or_else(PoisonError::into_inner) = next;
    Ok(front + behind)
}

/// Removes what a scan finds, in small steps; returns its position and how many operations were
/// removed.
async fn remove_scanned(
    file: &PartitionFile,
    mut walk: ExpiryScan,
    most: usize,
) -> Result<(ExpiryScan, usize)> {
    let mut removed = 0;
    while !walk.over && removed < most {
        let wanted = sweep::CHUNK.min(most - removed);
        let (next, old) = file.read(move |sql| walk.next(sql, wanted).map(|old| (walk, old))).await?;
        walk = next;
        if !old.is_empty() {
            removed += file.write(old.len() * 2, move |desk| sweep::remove(desk, &old)).await?;
        }
    }
    Ok((walk, removed))
}
