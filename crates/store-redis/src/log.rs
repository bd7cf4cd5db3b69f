//! The log on Redis: who owns a partition, and the verbs, each of which is in a file of its own.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use redis::cmd;
use tidegate_core::id::Partition;
use tidegate_core::{Seq, Time};
use tidegate_store::log::{
    Batch, Epoch, Lsn, Ownership, Page, Query, Replay, Retention, Stored, StoredOperation, Tenancy,
};
use tidegate_store::{Answer, Error, Kind, Log, Result, Trail};

use crate::scripts::{self, Call};
use crate::tail::SLOTS;
use crate::trouble::{undecided, unusable};
use crate::{Redis, reply, span};

impl Redis {
    async fn own_partition(&self, partition: Partition, node: &str, ttl: Duration) -> Result<Ownership> {
        // Only so that they can be counted: one too many does no harm.
        let known = self.link.send(cmd("SADD").arg(self.keys.partitions()).arg(partition)).await;
        known.map_err(|failed| unusable(self.link.name(), failed))?;
        // Appends under way at once stay in order when the server knows the script already.
        let loaded = self.link.send_to(&self.keys.head(partition), scripts::APPEND.load()).await;
        loaded.map_err(|failed| unusable(self.link.name(), failed))?;
        let call = Call::new(&scripts::OWN, [self.keys.head(partition)])
            .with(self.now())
            .with(node)
            .with(span(ttl))
            .with(self.keys.batches(partition))
            .with(self.keys.snapshots(partition))
            .with(SLOTS);
        let answer = call.send(&self.link).await;
        let answer = answer.map_err(|failed| {
            undecided(self.link.name(), &format!("give partition {partition} to {node}"), failed)
        })?;
        let (word, mut parts) = reply::said(answer)?;
        if word == "held" {
            let (holder, left): (String, u64) = (reply::at(&mut parts, 0)?, reply::at(&mut parts, 1)?);
            let left = Duration::from_micros(left).as_millis();
            let message = format!("partition {partition} is owned by {holder} for another {left} ms");
            return Err(Error::new(Kind::Held, message));
        }
        let (epoch, until) = (Epoch(reply::at(&mut parts, 0)?), reply::time_at(&mut parts, 1)?);
        let owner = Ownership { partition, epoch, until };
        self.tails.begin(owner, Lsn(reply::at(&mut parts, 2)?));
        self.look_for_trail(partition).await;
        Ok(owner)
    }

    async fn renew_ownership(&self, owner: Ownership, ttl: Duration) -> Result<Ownership> {
        // An owner of an older version must not go on in a newer layout. In a cluster it may be out of reach when the
        // partition is not: then it is looked at the next time.
        if let Err(error) = self.look_at_format().await
            && error.kind() == Kind::Unreadable
        {
            return Err(error);
        }
        let tail = self.tails.of(owner);
        let call = Call::new(&scripts::RENEW, [self.keys.head(owner.partition)])
            .with(self.now())
            .with(owner.epoch.0)
            .with(span(ttl))
            .with(tail.last().0);
        let answer = call.send(&self.link).await;
        let doing = format!("renew the ownership of partition {}", owner.partition);
        let (word, mut parts) =
            reply::said(answer.map_err(|failed| undecided(self.link.name(), &doing, failed))?)?;
        let what: String = reply::at(&mut parts, 0)?;
        match word.as_str() {
            "ok" => {
                let until = what.parse().map(Time::from_micros).map_err(|_| reply::odd("a time"))?;
                Ok(Ownership { until, ..owner })
            }
            "released" => Err(ended(owner, &what, "it was released")),
            "lost" => Err(lost(owner, tail.last(), &what)),
            _ => Err(fenced(owner, &what)),
        }
    }

    async fn owners_now(&self) -> Result<Vec<Tenancy>> {
        let known = self.known_partitions().await?;
        let found = try_join_all(known.into_iter().map(|partition| self.owner_now(partition))).await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn owner_now(&self, partition: Partition) -> Result<Option<Tenancy>> {
        let call = Call::new(&scripts::OWNER, [self.keys.head(partition)]).with(self.now());
        let answer = call.send(&self.link).await.map_err(|failed| unusable(self.link.name(), failed))?;
        let mut parts = reply::list(answer)?;
        if parts.is_empty() {
            return Ok(None);
        }
        let (node, epoch) = (reply::at(&mut parts, 0)?, Epoch(reply::at(&mut parts, 1)?));
        Ok(Some(Tenancy { partition, node, epoch, until: reply::time_at(&mut parts, 2)? }))
    }

    async fn release_ownership(&self, owner: Ownership) -> Result<()> {
        let call = Call::new(&scripts::RELEASE, [self.keys.head(owner.partition)]).with(owner.epoch.0);
        let doing = format!("release partition {}", owner.partition);
        call.send(&self.link).await.map_err(|failed| undecided(self.link.name(), &doing, failed))?;
        Ok(())
    }
}

/// Refused because a newer owner exists, or because the server no longer knows of any.
pub(crate) fn fenced(owner: Ownership, newest: &str) -> Error {
    if newest.is_empty() {
        let message = format!(
            "Redis no longer knows epoch {} of partition {}: it has lost its data",
            owner.epoch.0, owner.partition
        );
        return Error::new(Kind::Fenced, message);
    }
    ended(owner, newest, "a newer owner exists")
}

/// Refused because the server has forgotten appends that it had answered.
pub(crate) fn lost(owner: Ownership, known: Lsn, last: &str) -> Error {
    let message = format!(
        "Redis has lost appends of partition {}: it had {} and now ends at {last}; the owner must load it again",
        owner.partition, known.0
    );
    Error::new(Kind::Fenced, message)
}

fn ended(owner: Ownership, newest: &str, why: &str) -> Error {
    let (partition, epoch) = (owner.partition, owner.epoch.0);
    let message = format!("epoch {epoch} of partition {partition} has ended ({why}; the newest is {newest})");
    Error::new(Kind::Fenced, message)
}

impl Log for Redis {
    fn own(&self, partition: Partition, node: &str, ttl: Duration) -> Answer<'_, Ownership> {
        let node = node.to_owned();
        Box::pin(async move { self.own_partition(partition, &node, ttl).await })
    }

    fn renew(&self, owner: Ownership, ttl: Duration) -> Answer<'_, Ownership> {
        Box::pin(self.renew_ownership(owner, ttl))
    }

    fn release(&self, owner: Ownership) -> Answer<'_, ()> {
        Box::pin(self.release_ownership(owner))
    }

    fn owners(&self) -> Answer<'_, Vec<Tenancy>> {
        Box::pin(self.owners_now())
    }

    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> Answer<'a, Lsn> {
        Box::pin(self.replay(partition, replay))
    }

    fn append(&self, owner: Ownership, batch: Batch) -> Answer<'_, Lsn> {
        Box::pin(async move { self.append_batch(owner, &batch).await })
    }

    fn appends_at_once(&self) -> usize {
        2
    }

    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> Answer<'_, Vec<Option<Stored>>> {
        Box::pin(async move { self.read_all(partition, &seqs).await })
    }

    fn operations(&self, partition: Partition, seqs: Vec<Seq>) -> Answer<'_, Vec<Option<StoredOperation>>> {
        Box::pin(async move { self.read_operations(partition, &seqs).await })
    }

    fn list(&self, partition: Partition, query: Query) -> Answer<'_, Page> {
        Box::pin(async move { self.page(partition, &query).await })
    }

    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> Answer<'_, ()> {
        Box::pin(async move { self.keep_snapshot(owner, upto, &parts).await })
    }

    fn sweep(&self, owner: Ownership, retention: Retention) -> Answer<'_, usize> {
        Box::pin(self.sweep_results(owner, retention))
    }

    fn trail(&self) -> Option<&dyn Trail> {
        self.notes_ends.then_some(self as _)
    }
}
