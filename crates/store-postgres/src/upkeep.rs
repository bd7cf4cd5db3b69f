//! Looking after a schema.

use tidegate_core::id::Partition;
use tidegate_store::upkeep::Stats;
use tidegate_store::{Answer, Error, Kind, Outbox, Result, Upkeep};

use crate::schema::Layout;
use crate::session::Twice;
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
