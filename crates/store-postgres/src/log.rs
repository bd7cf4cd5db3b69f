//! The log of a partition on PostgreSQL: each verb is one step in the server, which checks the
//! owner itself.

use std::time::Duration;

use bytes::Bytes;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tidegate_core::Seq;
use tidegate_core::id::Partition;
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::log::{
    Batch, Epoch, Lsn, Ownership, PartitionOwner, Replay, Retention, StoredEntry, StoredOperation,
    StoredPage, StoredQuery,
};
use tidegate_store::{Costs, Error, Log, Result, StoreErrorKind, StoreFuture};

use crate::errors::{nothing_changed, unreadable, unsure};
use crate::session::{RetrySafety, Statement};
use crate::{PostgresStore, checks, rows};

const OWN: &str = "SELECT verdict, epoch, until, holder, time_left FROM own($1, $2, $3, $4)";
const MAKE_ROOM: &str = "SELECT make_room($1, last_seq($1) + 1)";
/// Reads the format too: an owner of an older version must not continue in a newer one.
const RENEW: &str = "SELECT verdict, number, (SELECT value FROM meta WHERE name = 'format')
    FROM renew($1, $2, $3, $4)";
const RELEASE: &str = "UPDATE partitions SET node = NULL WHERE partition = $1 AND epoch = $2";
const OWNERS: &str = "SELECT partition, node, epoch, until FROM partitions
    WHERE node IS NOT NULL AND unsigned(until) > moment($1) ORDER BY partition";
/// `OFFSET 0` pins the plan: each row is found by its key, whatever the statistics of the tables
/// are.
const READ: &str = "
SELECT asked.place, o.seq, o.at, o.grp, o.kind, o.key, o.envelope, o.payload,
    r.at AS ended_at, r.state, r.attempt, r.fault_class, r.fault, r.body
FROM unnest($2::bigint[]) WITH ORDINALITY AS asked (seq, place)
    CROSS JOIN LATERAL (SELECT * FROM operations WHERE partition = $1 AND seq = asked.seq OFFSET 0) AS o
    LEFT JOIN LATERAL (SELECT * FROM results WHERE partition = $1 AND seq = asked.seq OFFSET 0) AS r ON true";
/// Reads operations without results.
const OPERATIONS: &str = "
SELECT asked.place, o.seq, o.at, o.grp, o.kind, o.key, o.envelope, o.payload
FROM unnest($2::bigint[]) WITH ORDINALITY AS asked (seq, place)
    CROSS JOIN LATERAL (SELECT * FROM operations WHERE partition = $1 AND seq = asked.seq OFFSET 0) AS o";

impl PostgresStore {
    async fn acquire_ownership(&self, partition: Partition, node: &str, ttl: Duration) -> Result<Ownership> {
        checks::name_can_be_kept(node)?;
        let clock = self.clock();
        // A node that asks again takes over from itself, so sending this twice is harmless.
        let row = self
            .sessions
            .row(RetrySafety::Harmless, OWN, |own| {
                own.bind(i32::from(partition)).bind(node).bind(rows::span(ttl)).bind(clock)
            })
            .await?;
        if self.sessions.column::<&str>(&row, 0)? != "ok" {
            let holder: &str = self.sessions.column(&row, 3)?;
            let left = self.sessions.column::<i64>(&row, 4)? / 1_000;
            let message = format!("partition {partition} is owned by {holder} for another {left} ms");
            return Err(Error::new(StoreErrorKind::Held, message));
        }
        // Creates the tables that are needed next; if that fails, the append that needs them
        // creates them.
        drop(self.sessions.rows(RetrySafety::Harmless, MAKE_ROOM, |q| q.bind(i32::from(partition))).await);
        Ok(Ownership {
            partition,
            epoch: Epoch(self.sessions.column::<i64>(&row, 1)?.cast_unsigned()),
            until: rows::time(self.sessions.column(&row, 2)?),
        })
    }

    async fn renew_ownership(&self, owner: Ownership, ttl: Duration) -> Result<Ownership> {
        let (partition, epoch, clock) =
            (i32::from(owner.partition), owner.epoch.0.cast_signed(), self.clock());
        let row = self
            .sessions
            .row(RetrySafety::Harmless, RENEW, |renew| {
                renew.bind(partition).bind(epoch).bind(rows::span(ttl)).bind(clock)
            })
            .await?;
        self.check_not_newer(self.sessions.column::<Option<i64>>(&row, 2)?)?;
        let number = self.sessions.column(&row, 1)?;
        match self.sessions.column(&row, 0)? {
            "ok" => Ok(Ownership { until: rows::time(number), ..owner }),
            refused => Err(checks::refusal(owner, refused, number)),
        }
    }

    async fn current_owners(&self) -> Result<Vec<PartitionOwner>> {
        let clock = self.clock();
        let found = self.sessions.rows(RetrySafety::Harmless, OWNERS, |q| q.bind(clock)).await?;
        let tenancy = |row| {
            let number: i32 = self.sessions.column(row, 0)?;
            let strange = |_| unreadable(&self.sessions.place, "holds a partition with an impossible number");
            Ok(PartitionOwner {
                partition: Partition::try_from(number).map_err(strange)?,
                node: self.sessions.column(row, 1)?,
                epoch: Epoch(self.sessions.column::<i64>(row, 2)?.cast_unsigned()),
                until: rows::time(self.sessions.column(row, 3)?),
            })
        };
        found.iter().map(tenancy).collect()
    }

    /// The row that a statement finds for each seq, in the requested order.
    async fn read_by_seq<T: Clone>(
        &self,
        statement: &'static str,
        partition: Partition,
        seqs: Vec<Seq>,
        kept: fn(&PgRow) -> sqlx::Result<T>,
    ) -> Result<Vec<Option<T>>> {
        let mut found = vec![None; seqs.len()];
        if seqs.is_empty() {
            return Ok(found);
        }
        let asked: Vec<i64> = seqs.iter().map(|seq| seq.0.cast_signed()).collect();
        let read = |read: Statement<'static>| read.bind(i32::from(partition)).bind(asked.clone());
        for row in self.sessions.rows(RetrySafety::Harmless, statement, read).await? {
            let wrong = |cause| nothing_changed(&self.sessions.place, &cause);
            let place = row.try_get::<i64, _>("place").map_err(wrong)?.cast_unsigned() as usize;
            if let Some(slot) = place.checked_sub(1).and_then(|place| found.get_mut(place)) {
                *slot = Some(kept(&row).map_err(wrong)?);
            }
        }
        Ok(found)
    }
}

impl Log for PostgresStore {
    fn acquire_partition(
        &self,
        partition: Partition,
        node: &str,
        ttl: Duration,
    ) -> StoreFuture<'_, Ownership> {
        let node = node.to_owned();
        Box::pin(async move { self.acquire_ownership(partition, &node, ttl).await })
    }

    fn renew(&self, owner: Ownership, ttl: Duration) -> StoreFuture<'_, Ownership> {
        Box::pin(self.renew_ownership(owner, ttl))
    }

    fn release(&self, owner: Ownership) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let (partition, epoch) = (i32::from(owner.partition), owner.epoch.0.cast_signed());
            let release = |release: Statement<'static>| release.bind(partition).bind(epoch);
            self.sessions.rows(RetrySafety::Harmless, RELEASE, release).await.map(drop)
        })
    }

    fn partition_owners(&self) -> StoreFuture<'_, Vec<PartitionOwner>> {
        Box::pin(self.current_owners())
    }

    fn load<'a>(&'a self, partition: Partition, replay: Replay<'a>) -> StoreFuture<'a, Lsn> {
        Box::pin(self.replay_partition(partition, replay))
    }

    fn append(&self, owner: Ownership, batch: Batch) -> StoreFuture<'_, Lsn> {
        // Submitted now, so that appends reach the server in the order of the calls.
        let answered = self.appenders.append(owner, batch);
        Box::pin(async move {
            let gone = || unsure(&self.sessions.place, "the appending task has ended");
            answered.await.unwrap_or_else(|_| Err(gone()))
        })
    }

    fn max_concurrent_appends(&self) -> usize {
        1
    }

    fn read(&self, partition: Partition, seqs: Vec<Seq>) -> StoreFuture<'_, Vec<Option<StoredEntry>>> {
        Box::pin(self.read_by_seq(READ, partition, seqs, rows::stored))
    }

    fn load_operations(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Option<StoredOperation>>> {
        Box::pin(self.read_by_seq(OPERATIONS, partition, seqs, rows::operation))
    }

    fn read_attempts(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> StoreFuture<'_, Vec<Vec<StoredAttempt>>> {
        Box::pin(self.attempts_of(partition, seqs))
    }

    fn list(&self, partition: Partition, query: StoredQuery) -> StoreFuture<'_, StoredPage> {
        Box::pin(async move { self.page(partition, &query).await })
    }

    fn snapshot(&self, owner: Ownership, upto: Lsn, parts: Vec<Bytes>) -> StoreFuture<'_, ()> {
        Box::pin(self.write_snapshot(owner, upto, parts))
    }

    fn sweep(&self, owner: Ownership, retention: Retention) -> StoreFuture<'_, usize> {
        Box::pin(self.sweep_results(owner, retention))
    }

    fn costs(&self) -> Option<&dyn Costs> {
        Some(self)
    }
}
