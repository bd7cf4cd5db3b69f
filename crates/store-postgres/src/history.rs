//! Replays a partition: the newest snapshot and the appends after it, read in pages inside one
//! transaction, so that concurrent appends and snapshots do not change what is seen. Nothing is
//! skipped silently: a missing append makes the partition unreadable.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use tidegate_core::Fact;
use tidegate_core::id::Partition;
use tidegate_store::log::{Lsn, Replay};
use tidegate_store::{Error, Result, StoreErrorKind, codec};

use crate::PostgresStore;
use crate::errors::unreadable;

/// The parts of a snapshot that are read at once.
const PARTS_AT_ONCE: i64 = 16;
/// The appends that are read at once.
const APPENDS_AT_ONCE: i64 = 512;

const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const START: &str = "SELECT snapshot, version FROM partitions WHERE partition = $1";
const PARTS: &str = "SELECT part::bigint, facts FROM snapshots
    WHERE partition = $1 AND version = $2 AND part > $3 ORDER BY part LIMIT $4";
const APPENDS: &str = "SELECT lsn, facts FROM log WHERE partition = $1 AND lsn > $2 ORDER BY lsn LIMIT $3";

impl PostgresStore {
    /// Passes on the snapshot's parts and every later append, in order; returns the number of the
    /// last append.
    pub(crate) async fn replay_partition(&self, partition: Partition, replay: Replay<'_>) -> Result<Lsn> {
        // Never closed, so there is always a permit to come.
        let _turn = self.loads.acquire().await.ok();
        let mut transaction = self.sessions.begin(BEGIN).await?;
        let walked = self.replay_pages(&mut transaction, partition, replay).await;
        // An abandoned transaction is rolled back before its connection is used again.
        drop(self.run_query(transaction.rollback()).await);
        walked
    }

    async fn replay_pages(
        &self,
        sql: &mut PgConnection,
        partition: Partition,
        replay: Replay<'_>,
    ) -> Result<Lsn> {
        let number = i32::from(partition);
        let start = self.run_query(sqlx::query(START).bind(number).fetch_optional(&mut *sql)).await?;
        let Some(start) = start else { return Ok(Lsn(0)) };
        let (upto, version): (i64, i64) =
            (self.sessions.column(&start, 0)?, self.sessions.column(&start, 1)?);
        let mut part = -1_i64;
        loop {
            let page = sqlx::query(PARTS).bind(number).bind(version).bind(part).bind(PARTS_AT_ONCE);
            let page = self.run_query(page.fetch_all(&mut *sql)).await?;
            for row in &page {
                self.check_sequence(row, &mut part, || {
                    format!("a part of the snapshot of partition {partition}")
                })?;
                replay(self.facts(row, || format!("part {part} of the snapshot of partition {partition}"))?);
            }
            if (page.len() as i64) < PARTS_AT_ONCE {
                break;
            }
        }
        let mut last = upto;
        loop {
            let page = sqlx::query(APPENDS).bind(number).bind(last).bind(APPENDS_AT_ONCE);
            let page = self.run_query(page.fetch_all(&mut *sql)).await?;
            for row in &page {
                self.check_sequence(row, &mut last, || format!("an append of partition {partition}"))?;
                replay(self.facts(row, || format!("append {last} of partition {partition}"))?);
            }
            if (page.len() as i64) < APPENDS_AT_ONCE {
                return Ok(Lsn(last.cast_unsigned()));
            }
        }
    }

    async fn run_query<T>(&self, work: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
        self.sessions
            .with_timeout(work)
            .await
            .map_err(|failure| failure.into_harmless_error(&self.sessions.place))
    }

    /// Advances to the row's number, which must be the next one.
    fn check_sequence(&self, row: &PgRow, last: &mut i64, what: impl Fn() -> String) -> Result<()> {
        let number: i64 = self.sessions.column(row, 0)?;
        if number != *last + 1 {
            let what = format!("is damaged: {} is missing, number {}", what(), *last + 1);
            return Err(unreadable(&self.sessions.place, &what));
        }
        *last = number;
        Ok(())
    }

    fn facts(&self, row: &PgRow, what: impl Fn() -> String) -> Result<Vec<Fact>> {
        let facts = row.try_get::<&[u8], _>(1);
        let facts = facts.map_err(|cause| crate::errors::nothing_changed(&self.sessions.place, &cause))?;
        codec::decode(facts).map_err(|cause| {
            let message = format!("{} in {} cannot be read", what(), self.sessions.place);
            Error::new(StoreErrorKind::Unreadable, message).with_source(cause)
        })
    }
}
