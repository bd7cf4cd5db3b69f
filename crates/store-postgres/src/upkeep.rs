//! Migration, health checks and statistics of a schema.

use std::collections::BTreeMap;

use sqlx::postgres::PgRow;
use tidegate_core::bounds::RECORDS_COUNTED_MAX;
use tidegate_core::id::Partition;
use tidegate_store::upkeep::{SECRET_LEN, StoreStats};
use tidegate_store::{Error, Outbox, Result, StoreErrorKind, StoreFuture, Upkeep};

use crate::errors::unreadable;
use crate::schema::Layout;
use crate::session::{RetrySafety, Statement};
use crate::{PostgresStore, checks};

/// The layout of a store; what each format adds to the one before it.
const LAYOUT: Layout = Layout {
    name: "format",
    what: "Tidegate's",
    steps: &[
        concat!(
            include_str!("sql/tables.sql"),
            include_str!("sql/ranges.sql"),
            include_str!("sql/log.sql"),
            include_str!("sql/shared.sql"),
            include_str!("sql/buckets.sql"),
            include_str!("sql/outbox.sql")
        ),
        include_str!("sql/records.sql"),
        include_str!("sql/costs.sql"),
        include_str!("sql/journal.sql"),
        include_str!("sql/submissions.sql"),
        include_str!("sql/record_end.sql"),
        concat!(include_str!("sql/attempts.sql"), include_str!("sql/completions.sql")),
        include_str!("sql/node_records.sql"),
        include_str!("sql/cost_rates.sql"),
        include_str!("sql/journal_events.sql"),
        include_str!("sql/audit_log.sql"),
        include_str!("sql/submission_types.sql"),
    ],
};
/// The number up to which operations are counted; above, the server's own estimate is good enough.
const COUNTED_MAX: i64 = 100_000;

/// Reads the format too, so that a missing schema is reported.
const HEALTH: &str = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',
    (SELECT value FROM meta WHERE name = 'format')";
/// The first caller writes the number; for later ones, an update that changes nothing returns it.
const PARTITIONS: &str = "INSERT INTO meta VALUES ('partitions', $1)
    ON CONFLICT (name) DO UPDATE SET value = meta.value RETURNING value";
const FIND_SECRET: &str = "SELECT name, value FROM meta WHERE name IN ('secret high', 'secret low')";
/// Both halves or none: a second caller waits at the first half, and gets the secret of the first
/// caller.
const KEEP_SECRET: &str = "INSERT INTO meta VALUES ('secret high', $1), ('secret low', $2)
    ON CONFLICT (name) DO UPDATE SET value = meta.value RETURNING name, value";
/// The defaults of any connection: our own connections insist on more.
const SERVER: &str = "
SELECT name, CASE unit WHEN '8kB' THEN pg_size_pretty(reset_val::bigint * 8192) ELSE reset_val END
FROM pg_settings WHERE name IN ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers')
ORDER BY name";
const STATS: &str = "
SELECT
    (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
        WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'),
    (SELECT count(*) FROM (SELECT FROM operations LIMIT $2 + 1) AS counted),
    (SELECT greatest(coalesce(sum(reltuples), 0), $2)::bigint FROM pg_class
        WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND relname LIKE 'operations%'),
    (SELECT coalesce(sum(last_append(partition) - snapshot), 0)::bigint FROM partitions),
    (SELECT count(*) FROM (SELECT FROM records LIMIT $3) AS counted)";

impl PostgresStore {
    /// Rejects a schema that a newer program has created.
    pub(crate) fn check_not_newer(&self, format: Option<i64>) -> Result<()> {
        LAYOUT.check_not_newer(&self.sessions, format.unwrap_or_default())
    }

    async fn check_health(&self) -> Result<()> {
        let row = self.sessions.row(RetrySafety::Harmless, HEALTH, |q| q).await?;
        self.check_not_newer(self.sessions.column::<Option<i64>>(&row, 2)?)?;
        let why = if self.sessions.column(&row, 0)? {
            "is in recovery and accepts no writes"
        } else if self.sessions.column(&row, 1)? {
            "is set to read only and accepts no writes"
        } else {
            return Ok(());
        };
        Err(Error::new(StoreErrorKind::Unavailable, format!("{} {why}", self.sessions.place)))
    }

    async fn fix_partition_count(&self, wanted: Partition) -> Result<Partition> {
        checks::check_partition_count(wanted)?;
        let row = self.sessions.row(RetrySafety::Harmless, PARTITIONS, |q| q.bind(i64::from(wanted))).await?;
        let number: i64 = self.sessions.column(&row, 0)?;
        let strange = |_| unreadable(&self.sessions.place, "holds an impossible number of partitions");
        Partition::try_from(number).map_err(strange)
    }

    async fn keep_secret(&self, offered: [u8; SECRET_LEN]) -> Result<[u8; SECRET_LEN]> {
        let found = self.sessions.rows(RetrySafety::Harmless, FIND_SECRET, |q| q).await?;
        if !found.is_empty() {
            return self.secret_in(&found);
        }
        let whole = u128::from_be_bytes(offered);
        let (high, low) = ((whole >> 64) as u64, whole as u64);
        let bind = |q: Statement<'static>| q.bind(high.cast_signed()).bind(low.cast_signed());
        self.secret_in(&self.sessions.rows(RetrySafety::Harmless, KEEP_SECRET, bind).await?)
    }

    fn secret_in(&self, rows: &[PgRow]) -> Result<[u8; SECRET_LEN]> {
        let mut halves = BTreeMap::new();
        for row in rows {
            let half: i64 = self.sessions.column(row, 1)?;
            halves.insert(self.sessions.column::<String>(row, 0)?, u128::from(half.cast_unsigned()));
        }
        match (halves.get("secret high"), halves.get("secret low")) {
            (Some(high), Some(low)) => Ok((high << 64 | low).to_be_bytes()),
            _ => Err(unreadable(&self.sessions.place, "holds half a secret")),
        }
    }

    async fn settings(&self) -> Result<Vec<(String, String)>> {
        let rows = self.sessions.rows(RetrySafety::Harmless, SERVER, |q| q).await?;
        rows.iter().map(|row| Ok((self.sessions.column(row, 0)?, self.sessions.column(row, 1)?))).collect()
    }

    async fn read_stats(&self) -> Result<StoreStats> {
        let schema = &*self.sessions.schema;
        let row = self
            .sessions
            .row(RetrySafety::Harmless, STATS, |q| {
                q.bind(schema).bind(COUNTED_MAX).bind(i64::from(RECORDS_COUNTED_MAX))
            })
            .await?;
        let number = |column| Ok(self.sessions.column::<i64>(&row, column)?.cast_unsigned());
        let counted: u64 = number(1)?;
        let operations = if counted > COUNTED_MAX.cast_unsigned() { number(2)? } else { counted };
        Ok(StoreStats { bytes: number(0)?, operations, appends: number(3)?, records: number(4)? })
    }
}

impl Upkeep for PostgresStore {
    fn migrate(&self) -> StoreFuture<'_, ()> {
        Box::pin(LAYOUT.migrate(&self.sessions))
    }

    fn check_layout(&self) -> StoreFuture<'_, ()> {
        Box::pin(LAYOUT.check_current(&self.sessions))
    }

    fn ensure_partitions(&self, wanted: Partition) -> StoreFuture<'_, Partition> {
        Box::pin(self.fix_partition_count(wanted))
    }

    fn ensure_secret(&self, offered: [u8; SECRET_LEN]) -> StoreFuture<'_, [u8; SECRET_LEN]> {
        Box::pin(self.keep_secret(offered))
    }

    fn health(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.check_health())
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        Box::pin(self.read_stats())
    }

    fn server_settings(&self) -> StoreFuture<'_, Vec<(String, String)>> {
        Box::pin(self.settings())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn outbox(&self) -> Option<&dyn Outbox> {
        Some(self)
    }

    fn describe(&self) -> String {
        self.sessions.place.to_string()
    }
}
