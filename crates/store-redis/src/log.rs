//! The log on Redis: the ownership of partitions, and the verbs, each of which is in a file of its
//! own.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use redis::cmd;
use tidegate_core::id::Partition;
use tidegate_core::{Seq, Time};
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::{
    Batch, Epoch, Lsn, Ownership, PartitionOwner, Replay, Retention, StoredEntry, StoredOperation,
    StoredPage, StoredQuery,
};
use tidegate_store::{ArchiveQueue, Error, Log, Result, StoreErrorKind, StoreFuture};

use crate::errors::{undecided, unusable};
use crate::scripts::{self, ScriptCall};
use crate::tail::SLOTS;
use crate::{RedisStore, reply, span};

impl RedisStore {
    async fn own_partition(&self, partition: Partition, node: &str, ttl: Duration) -> Result<Ownership> {
        // Only for counting: one too many is harmless.
        let known = self.connection.send(cmd("SADD").arg(self.keys.partitions()).arg(partition)).await;
        known.map_err(|failed| unusable(self.connection.name(), failed))?;
        // Concurrent appends stay in order when the server already knows the script.
        let loaded = self.connection.send_to(&self.keys.head(partition), scripts::APPEND.load()).await;
        loaded.map_err(|failed| unusable(self.connection.name(), failed))?;
        let call = ScriptCall::new(&scripts::OWN, [self.keys.head(partition)])
            .with_arg(self.now())
            .with_arg(node)
            .with_arg(span(ttl))
            .with_arg(self.keys.batches(partition))
            .with_arg(self.keys.snapshots(partition))
            .with_arg(SLOTS);
        let answer = call.send(&self.connection).await;
        let answer = answer.map_err(|failed| {
            undecided(self.connection.name(), &format!("give partition {partition} to {node}"), failed)
        })?;
        let (word, mut parts) = reply::split_verdict(answer)?;
        if word == "held" {
            let (holder, left): (String, u64) =
                (reply::part_at(&mut parts, 0)?, reply::part_at(&mut parts, 1)?);
            let left = Duration::from_micros(left).as_millis();
            let message = format!("partition {partition} is owned by {holder} for another {left} ms");
            return Err(Error::new(StoreErrorKind::Held, message));
        }
        let (epoch, until) = (Epoch(reply::part_at(&mut parts, 0)?), reply::time_at(&mut parts, 1)?);
        let owner = Ownership { partition, epoch, until };
        self.tails.begin(owner, Lsn(reply::part_at(&mut parts, 2)?));
        self.warn_about_unarchived(partition).await;
        Ok(owner)
    }

    async fn renew_ownership(&self, owner: Ownership, ttl: Duration) -> Result<Ownership> {
        // An owner of an older version must not continue in a newer format. In a cluster the format
        // may be unreachable when the partition is not: then the next renewal checks it.
        if let Err(error) = self.look_at_format().await
            && error.kind() == StoreErrorKind::Unreadable
        {
            return Err(error);
        }
        let tail = self.tails.of(owner);
        let call = ScriptCall::new(&scripts::RENEW, [self.keys.head(owner.partition)])
            .with_arg(self.now())
            .with_arg(owner.epoch.0)
            .with_arg(span(ttl))
            .with_arg(tail.last().0);
        let answer = call.send(&self.connection).await;
        let doing = format!("renew the ownership of partition {}", owner.partition);
        let (word, mut parts) = reply::split_verdict(
            answer.map_err(|failed| undecided(self.connection.name(), &doing, failed))?,
        )?;
        let what: String = reply::part_at(&mut parts, 0)?;
        match word.as_str() {
            "ok" => {
                let until =
                    what.parse().map(Time::from_micros).map_err(|_| reply::unexpected_reply("a time"))?;
                Ok(Ownership { until, ..owner })
            }
            "released" => Err(ownership_ended(owner, &what, "it was released")),
            "lost" => Err(lost(owner, tail.last(), &what)),
            _ => Err(fenced(owner, &what)),
        }
    }

    async fn owners_now(&self) -> Result<Vec<PartitionOwner>> {
        let known = self.known_partitions().await?;
        let found = try_join_all(known.into_iter().map(|partition| self.owner_now(partition))).await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn owner_now(&self, partition: Partition) -> Result<Option<PartitionOwner>> {
        let call = ScriptCall::new(&scripts::OWNER, [self.keys.head(partition)]).with_arg(self.now());
        let answer =
            call.send(&self.connection).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let mut parts = reply::list(answer)?;
        if parts.is_empty() {
            return Ok(None);
        }
        let (node, epoch) = (reply::part_at(&mut parts, 0)?, Epoch(reply::part_at(&mut parts, 1)?));
        Ok(Some(PartitionOwner { partition, node, epoch, until: reply::time_at(&mut parts, 2)? }))
    }

    async fn release_ownership(&self, owner: Ownership) -> Result<()> {
        let call =
            ScriptCall::new(&scripts::RELEASE, [self.keys.head(owner.partition)]).with_arg(owner.epoch.0);
        let doing = format!("release partition {}", owner.partition);
        call.send(&self.connection)
            .await
            .map_err(|failed| undecided(self.connection.name(), &doing, failed))?;
        Ok(())
    }
}

/// The error when a newer owner exists, or when the server no longer knows of any.
pub(crate) fn fenced(owner: Ownership, newest: &str) -> Error {
    if newest.is_empty() {
        let message = format!(
            "Redis no longer knows epoch {} of partition {}: it has lost its data",
            owner.epoch.0, owner.partition
        );
        return Error::new(StoreErrorKind::Fenced, message);
    }
    ownership_ended(owner, newest, "a newer owner exists")
}

/// The error when the server has lost appends that it had acknowledged.
pub(crate) fn lost(owner: Ownership, known: Lsn, last: &str) -> Error {
    let message = format!(
        "Redis has lost appends of partition {}: it had {} and now ends at {last}; the owner must load it again",
        owner.partition, known.0
    );
    Error::new(StoreErrorKind::Fenced, message)
}

fn ownership_ended(owner: Ownership, newest: &str, why: &str) -> Error {
    let (partition, epoch) = (owner.partition, owner.epoch.0);
    let message = format!("epoch {epoch} of partition {partition} has ended ({why}; the newest is {newest})");
    Error::new(StoreErrorKind::Fenced, message)
}

impl Log for RedisStore {
    fn acquire_partition(
        &self,
        partition: Partition,
        node: &str,
        ttl: Duration,
    ) -> StoreFuture<'_, Ownership> {
        let node = node.to_owned();
        Box::pin(async move { self.own_partition(partition, &node, ttl).await })
    }

    fn renew(&self, owner: Ownership, ttl: Duration) -> StoreFuture<'_, Ownership> {
        Box::pin(self.renew_ownership(owner, ttl))
    }

    fn release(&self, owner: Ownership) -> StoreFuture<'_, ()> {
        Box::pin(self.release_ownership(owner))
    }

    fn partition_owners(&self) -> StoreFuture<'_, Vec<PartitionOwner>> {
        Box::pin(self.owners_now())
    }

    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> StoreFuture<'a, Lsn> {
        Box::pin(self.replay(partition, replay))
    }

    fn append(&self, owner: Ownership, batch: Batch) -> StoreFuture<'_, Lsn> {
        Box::pin(async move { self.append_batch(owner, &batch).await })
    }

    fn max_concurrent_appends(&self) -> usize {
        2
    }

    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> StoreFuture<'_, Vec<Option<StoredEntry>>> {
        Box::pin(async move { self.read_all(partition, &seqs).await })
    }

    fn load_operations(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Option<StoredOperation>>> {
        Box::pin(async move { self.read_operations(partition, &seqs).await })
    }

    fn read_attempts(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Vec<StoredAttempt>>> {
        Box::pin(async move { self.attempts_of(partition, &seqs).await })
    }

    fn list(&self, partition: Partition, query: StoredQuery) -> StoreFuture<'_, StoredPage> {
        Box::pin(async move { self.page(partition, &query).await })
    }

    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.keep_snapshot(owner, upto, &parts).await })
    }

    fn sweep(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize> {
        Box::pin(self.sweep_results(owner, retention))
    }

    fn archive_queue(&self) -> Option<&dyn ArchiveQueue> {
        self.keeps_archive_queue.then_some(self as _)
    }
}
