//! Looking after a schema.

use std::collections::BTreeMap;

use sqlx::postgres::PgRow;
use tidegate_core::id::Partition;
use tidegate_store::upkeep::{SECRET_LEN, Stats};
use tidegate_store::{Answer, Error, Kind, Outbox, Result, Upkeep};

use crate::schema::Layout;
use crate::session::{Statement, Twice};
use crate::trouble::unreadable;
use crate::{Postgres, checks};

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
    ],
};
/// Up to here operations are counted; above, the server's own estimate is good enough.
const COUNTED_MAX: i64 = 100_000;

/// Reads the layout too, so that a schema that is not there is said.
const HEALTH: &str = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',
    (SELECT value FROM meta WHERE name = 'format')";
/// The first who asks writes the number; the update that changes nothing gives it back to whoever comes later.
const PARTITIONS: &str = "INSERT INTO meta VALUES ('partitions', $1)
    ON CONFLICT (name) DO UPDATE SET value = meta.value RETURNING value";
const FIND_SECRET: &str = "SELECT name, value FROM meta WHERE name IN ('secret high', 'secret low')";
/// Both halves or none: whoever comes second waits at the first half, and is given those of the first.
const KEEP_SECRET: &str = "INSERT INTO meta VALUES ('secret high', $1), ('secret low', $2)
    ON CONFLICT (name) DO UPDATE SET value = meta.value RETURNING name, value";
/// What any connection starts with: our own insist on more than the server may.
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
    (SELECT coalesce(sum(last_append(partition) - snapshot), 0)::bigint FROM partitions)";

impl Postgres {
    /// Refuses a layout that a newer program has made.
    pub(crate) fn must_be_known(&self, format: Option<i64>) -> Result<()> {
        LAYOUT.must_be_known(&self.sessions, format.unwrap_or_default())
    }

    async fn is_well(&self) -> Result<()> {
        let row = self.sessions.row(Twice::Harmless, HEALTH, |q| q).await?;
        self.must_be_known(self.sessions.column::<Option<i64>>(&row, 2)?)?;
        let why = if self.sessions.column(&row, 0)? {
            "is in recovery and takes no writes"
        } else if self.sessions.column(&row, 1)? {
            "is set to read only and takes no writes"
        } else {
            return Ok(());
        };
        Err(Error::new(Kind::Unavailable, format!("{} {why}", self.sessions.place)))
    }

    async fn fixed_partitions(&self, wanted: Partition) -> Result<Partition> {
        checks::some_partitions(wanted)?;
        let row = self.sessions.row(Twice::Harmless, PARTITIONS, |q| q.bind(i64::from(wanted))).await?;
        let number: i64 = self.sessions.column(&row, 0)?;
        let strange = |_| unreadable(&self.sessions.place, "holds an impossible number of partitions");
        Partition::try_from(number).map_err(strange)
    }

    async fn kept_secret(&self, offered: [u8; SECRET_LEN]) -> Result<[u8; SECRET_LEN]> {
        let found = self.sessions.rows(Twice::Harmless, FIND_SECRET, |q| q).await?;
        if !found.is_empty() {
            return self.secret_in(&found);
        }
        let whole = u128::from_be_bytes(offered);
        let (high, low) = ((whole >> 64) as u64, whole as u64);
        let bind = |q: Statement<'static>| q.bind(high.cast_signed()).bind(low.cast_signed());
        self.secret_in(&self.sessions.rows(Twice::Harmless, KEEP_SECRET, bind).await?)
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
        let rows = self.sessions.rows(Twice::Harmless, SERVER, |q| q).await?;
        rows.iter().map(|row| Ok((self.sessions.column(row, 0)?, self.sessions.column(row, 1)?))).collect()
    }

    async fn figures(&self) -> Result<Stats> {
        let schema = &*self.sessions.schema;
        let row = self.sessions.row(Twice::Harmless, STATS, |q| q.bind(schema).bind(COUNTED_MAX)).await?;
        let number = |column| Ok(self.sessions.column::<i64>(&row, column)?.cast_unsigned());
        let counted: u64 = number(1)?;
        let operations = if counted > COUNTED_MAX.cast_unsigned() { number(2)? } else { counted };
        Ok(Stats { bytes: number(0)?, operations, appends: number(3)? })
    }
}

impl Upkeep for Postgres {
    fn migrate(&self) -> Answer<'_, ()> {
        Box::pin(LAYOUT.bring_up_to_date(&self.sessions))
    }

    fn layout(&self) -> Answer<'_, ()> {
        Box::pin(LAYOUT.look(&self.sessions))
    }

    fn partitions(&self, wanted: Partition) -> Answer<'_, Partition> {
        Box::pin(self.fixed_partitions(wanted))
    }

    fn secret(&self, offered: [u8; SECRET_LEN]) -> Answer<'_, [u8; SECRET_LEN]> {
        Box::pin(self.kept_secret(offered))
    }

    fn health(&self) -> Answer<'_, ()> {
        Box::pin(self.is_well())
    }

    fn stats(&self) -> Answer<'_, Stats> {
        Box::pin(self.figures())
    }

    fn server(&self) -> Answer<'_, Vec<(String, String)>> {
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
