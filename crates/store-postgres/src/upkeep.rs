//! Looking after a schema.

use tidegate_core::id::Partition;
use tidegate_store::upkeep::Stats;
use tidegate_store::{Answer, Error, Kind, Result, Upkeep};

use crate::session::Twice;
use crate::trouble::unreadable;
use crate::{Postgres, checks};

/// Up to here operations are counted; above, the server's own estimate is good enough.
const COUNTED_MAX: i64 = 100_000;

/// Reads the layout too, so that a schema that is not there is said.
const HEALTH: &str = "SELECT pg_is_in_recovery(), current_setting('transaction_read_only') = 'on',
    (SELECT value FROM meta WHERE name = 'format')";
/// The first who asks writes the number; the update that changes nothing gives it back to whoever comes later.
const PARTITIONS: &str = "INSERT INTO meta VALUES ('partitions', $1)
    ON CONFLICT (name) DO UPDATE SET value = meta.value RETURNING value";
const STATS: &str = "
SELECT
    (SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
        WHERE relnamespace = to_regnamespace($1) AND relkind = 'r'),
    (SELECT count(*) FROM (SELECT FROM operations LIMIT $2 + 1) AS counted),
    (SELECT greatest(coalesce(sum(reltuples), 0), $2)::bigint FROM pg_class
        WHERE relnamespace = to_regnamespace($1) AND relkind = 'r' AND relname LIKE 'operations%'),
    (SELECT coalesce(sum(last_append(partition) - snapshot), 0)::bigint FROM partitions)";

impl Postgres {
    async fn is_well(&self) -> Result<()> {
        let row = self.sessions.row(Twice::Harmless, HEALTH, |q| q).await?;
        self.must_be_known(self.sessions.column::<Option<i64>>(&row, 2)?.unwrap_or_default())?;
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
        Box::pin(self.lay_out())
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

    fn is_shared(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        self.sessions.place.to_string()
    }
}
