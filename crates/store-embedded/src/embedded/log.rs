//! The log of a partition on SQLite: an append is one row of facts, the new operations and the results, in one
//! transaction. Snapshots and clean-up go in small steps between the appends.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use rusqlite::OptionalExtension;
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::log::{
    Batch, Lsn, Ownership, Page, Query, Replay, Retention, Stored, StoredOperation, Tenancy,
};
use tidegate_store::{Answer, Costs, Log, Result};
use tokio::sync::mpsc;

use super::partition::PartitionFile;
use super::sweep::{self, Walk};
use super::tail::{Newest, Pending};
use super::writer::{Desk, Stepped};
use super::{Embedded, blocking, costs, history, listing, rows, snapshot};
use crate::checks;

/// Appends that one transaction removes after a snapshot.
const TRIMMED_AT_ONCE: u64 = 128;
/// Lists of facts that are read ahead of whoever absorbs them.
const READ_AHEAD: usize = 16;

impl Log for Embedded {
    fn own(&self, partition: Partition, node: &str, ttl: Duration) -> Answer<'_, Ownership> {
        let node: Arc<str> = node.into();
        Box::pin(async move {
            let file = self.partition(partition).await?;
            file.write(1, move |desk| Ok(desk.ledger.tenure.own(partition, &node, desk.now, ttl))).await
        })
    }

    fn renew(&self, owner: Ownership, ttl: Duration) -> Answer<'_, Ownership> {
        Box::pin(async move {
            let file = self.partition(owner.partition).await?;
            file.write(0, move |desk| Ok(desk.ledger.tenure.renew(owner, desk.now, ttl))).await
        })
    }

    fn release(&self, owner: Ownership) -> Answer<'_, ()> {
        Box::pin(async move {
            let file = self.partition(owner.partition).await?;
            file.write(0, move |desk| {
                desk.ledger.tenure.release(owner);
                Ok(Ok(()))
            })
            .await
        })
    }

    fn owners(&self) -> Answer<'_, Vec<Tenancy>> {
        Box::pin(async move {
            let now = self.files.options.clock.now();
            let mut owners: Vec<_> = self
                .files
                .map()
                .values()
                .filter_map(|file| file.counts.tenancy(file.partition, now))
                .collect();
            owners.sort_by_key(|owner| owner.partition);
            Ok(owners)
        })
    }

    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> Answer<'a, Lsn> {
        Box::pin(async move {
            let Some(file) = self.existing(partition) else { return Ok(Lsn(0)) };
            let turn = Arc::clone(&file.snapshots).lock_owned().await;
            // Taken before SQLite is read, so that nothing falls between the two.
            let pending = file.front.tail.pending();
            let (hand, mut handed) = mpsc::channel(READ_AHEAD);
            let reading = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                history::replay(&file, &pending, |facts| hand.blocking_send(facts).is_ok())
            });
            while let Some(facts) = handed.recv().await {
                replay(facts);
            }
            reading.await.unwrap_or_else(|cause| Err(blocking::cut_off(cause)))
        })
    }

    fn append(&self, owner: Ownership, batch: Batch) -> Answer<'_, Lsn> {
        Box::pin(async move {
            let file = self.partition(owner.partition).await?;
            checks::batch(&batch)?;
            file.front.append(owner, batch).await
        })
    }

    fn appends_at_once(&self) -> usize {
        2
    }

    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> Answer<'_, Vec<Option<Stored>>> {
        Box::pin(async move {
            let Some(file) = self.existing(partition) else { return Ok(vec![None; seqs.len()]) };
            let newest = file.front.tail.newest(&seqs);
            if newest.iter().all(|newest| newest.as_ref().is_some_and(Newest::is_whole)) {
                return Ok(newest.into_iter().map(|newest| newest?.whole()).collect());
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

    fn operations(&self, partition: Partition, seqs: Vec<Seq>) -> Answer<'_, Vec<Option<StoredOperation>>> {
        Box::pin(async move {
            let Some(file) = self.existing(partition) else { return Ok(vec![None; seqs.len()]) };
            // Looked at before SQLite is read, so that nothing falls between the two.
            let mut found = file.front.tail.operations(&seqs);
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

    fn list(&self, partition: Partition, query: Query) -> Answer<'_, Page> {
        Box::pin(async move {
            let Some(file) = self.existing(partition) else { return Ok(Page::default()) };
            // When filling in does not go on, what is there is better than nothing.
            let _ = file.front.settle().await;
            file.read(move |sql| listing::page(sql, &query)).await
        })
    }

    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> Answer<'_, ()> {
        Box::pin(async move { replace(self.partition(owner.partition).await?, owner, upto, parts).await })
    }

    fn sweep(&self, owner: Ownership, retention: Retention) -> Answer<'_, usize> {
        Box::pin(async move { clean_up(&*self.partition(owner.partition).await?, owner, retention).await })
    }

    fn costs(&self) -> Option<&dyn Costs> {
        Some(self)
    }
}

/// What the front has of an operation, over what SQLite has.
fn merge(stored: Option<Stored>, newest: Option<Newest>) -> Option<Stored> {
    match (newest, stored) {
        (Some(newest), _) if newest.is_whole() => newest.whole(),
        (Some(newest), Some(stored)) => Some(newest.over(stored)),
        (_, stored) => stored,
    }
}

/// Puts appends that are safe in the front where they can be found.
pub(super) fn fill(desk: &mut Desk<'_>, appends: &[Arc<Pending>]) -> rusqlite::Result<()> {
    let mut log = desk.sql.prepare_cached("INSERT INTO log (lsn, facts, sum) VALUES (?1, ?2, ?3)")?;
    let mut operations = rows::Operations::new(desk.sql)?;
    let mut results = rows::Results::new(desk.sql)?;
    for append in appends {
        let Pending { lsn, facts, batch } = &**append;
        log.execute((lsn.0.cast_signed(), &facts[..], history::sum_of_append(*lsn).with(facts)))?;
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
        desk.ledger.last = *lsn;
        desk.ledger.operations += batch.operations.len() as u64;
    }
    Ok(())
}

/// First the snapshot is on the disk, then what it replaces goes, a little at a time.
async fn replace(file: Arc<PartitionFile>, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> Result<()> {
    let turn = Arc::clone(&file.snapshots).lock_owned().await;
    file.front.settle().await?;
    file.write(0, move |desk| {
        Ok(desk
            .ledger
            .tenure
            .check(owner)
            .and_then(|()| checks::snapshot_fits(upto, desk.ledger.last, desk.ledger.snapshot)))
    })
    .await?;
    let here = Arc::clone(&file);
    let turn = blocking::run(move || {
        checks::parts_are_readable(&parts)?;
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

/// Removes a few appends that the snapshot has replaced; answers whether there are more.
fn trim(desk: &mut Desk<'_>, owner: Ownership, upto: Lsn) -> Stepped<bool> {
    if let Err(refused) = desk.ledger.tenure.check(owner) {
        return Ok(Err(refused));
    }
    let to = Lsn(upto.0.min(desk.ledger.trimmed.0 + TRIMMED_AT_ONCE));
    desk.sql.prepare_cached("DELETE FROM log WHERE lsn <= ?1")?.execute([to.0.cast_signed()])?;
    desk.ledger.snapshot = desk.ledger.snapshot.max(upto);
    desk.ledger.trimmed = desk.ledger.trimmed.max(to);
    Ok(Ok(to < upto))
}

/// The front, and then a stretch of what lies behind.
async fn clean_up(file: &PartitionFile, owner: Ownership, retention: Retention) -> Result<usize> {
    file.write(0, move |desk| Ok(desk.ledger.tenure.check(owner))).await?;
    file.front.settle().await?;
    let Retention { ended_before, most } = retention;
    let (_, front) = remove_along(file, Walk::front(ended_before), most).await?;
    let from = *file.swept_to.lock().unwrap_or_else(PoisonError::into_inner);
    let (walk, behind) = remove_along(file, Walk::rove(from, ended_before), most - front).await?;
    let next = if walk.at_end { Seq(0) } else { walk.after };
    *file.swept_to.lock().unwrap_or_else(PoisonError::into_inner) = next;
    Ok(front + behind)
}

/// Removes what a walk finds, a little at a time; answers where it has come to and how many went.
async fn remove_along(file: &PartitionFile, mut walk: Walk, most: usize) -> Result<(Walk, usize)> {
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
