//! The layout of the schema, and how it is brought up to date: one transaction under one lock, so that any number of
//! processes may try at once. A layout that is newer than this program is not touched.

use sqlx::Row;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use tidegate_store::{Error, Kind, Result};

use crate::Postgres;
use crate::session::Twice;
use crate::trouble::unreadable;

/// The layout that this program writes, and the newest it reads.
const FORMAT: i64 = 1;

/// What each format adds to the one before it.
const STEPS: [&str; FORMAT as usize] = [concat!(
    include_str!("sql/tables.sql"),
    include_str!("sql/ranges.sql"),
    include_str!("sql/log.sql"),
    include_str!("sql/shared.sql"),
    include_str!("sql/buckets.sql")
)];

/// Whoever holds it changes the layout of this schema.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('tidegate layout of ' || $1, 0))";
const HAS_SCHEMA: &str = "SELECT to_regnamespace($1) IS NOT NULL";
const HAS_META: &str = "SELECT to_regclass('meta') IS NOT NULL";
const HAS_TABLES: &str = "SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace($1))";
const FIND_FORMAT: &str = "SELECT value FROM meta WHERE name = 'format'";
const SET_FORMAT: &str = "INSERT INTO meta VALUES ('format', $1)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

impl Postgres {
    /// Brings the schema up to date. One that is up to date is not locked.
    pub(crate) async fn lay_out(&self) -> Result<()> {
        match self.sessions.rows(Twice::Harmless, FIND_FORMAT, |q| q).await {
            Ok(found) => {
                let format: i64 = found.first().map_or(Ok(0), |row| self.sessions.column(row, 0))?;
                self.must_be_known(format)?;
                if format == FORMAT {
                    return Ok(());
                }
            }
            // Nothing is laid out yet, so there is no table to ask.
            Err(error) if error.kind() == Kind::Unreadable => {}
            Err(error) => return Err(error),
        }
        let mut connection = self.sessions.connect().await?;
        self.told(sqlx::raw_sql("BEGIN").execute(&mut connection)).await?;
        self.bring_up_to_date(&mut connection).await?;
        self.told(sqlx::raw_sql("COMMIT").execute(&mut connection)).await?;
        drop(connection.close().await);
        Ok(())
    }

    async fn bring_up_to_date(&self, sql: &mut PgConnection) -> Result<()> {
        let schema = &*self.sessions.schema;
        self.told(sqlx::query(LOCK).bind(schema).execute(&mut *sql)).await?;
        // Asked for first, because making it needs a right that is not needed where it is there.
        if !self.is(sql, HAS_SCHEMA, Some(schema)).await? {
            // The name is of small letters, digits and _ only.
            let create = AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
            self.told(sqlx::raw_sql(create).execute(&mut *sql)).await?;
        }
        let mut format = 0;
        if self.is(sql, HAS_META, None).await? {
            let row = self.told(sqlx::query(FIND_FORMAT).fetch_optional(&mut *sql)).await?;
            format = row.and_then(|row| row.try_get(0).ok()).unwrap_or(0);
        } else if self.is(sql, HAS_TABLES, Some(schema)).await? {
            return Err(unreadable(&self.sessions.place, "holds tables that are not Tidegate's"));
        }
        self.must_be_known(format)?;
        if format == FORMAT {
            return Ok(());
        }
        for step in &STEPS[usize::try_from(format).unwrap_or_default()..] {
            self.told(sqlx::raw_sql(*step).execute(&mut *sql)).await?;
        }
        self.told(sqlx::query(SET_FORMAT).bind(FORMAT).execute(&mut *sql)).await.map(drop)
    }

    /// Refuses a layout that a newer program has made.
    pub(crate) fn must_be_known(&self, format: i64) -> Result<()> {
        if format <= FORMAT {
            return Ok(());
        }
        let place = &self.sessions.place;
        let message = format!("{place} has format {format}; this program reads format {FORMAT}");
        Err(Error::new(Kind::Unreadable, message))
    }

    async fn is(&self, sql: &mut PgConnection, question: &'static str, about: Option<&str>) -> Result<bool> {
        let mut asked = sqlx::query(question);
        if let Some(about) = about {
            asked = asked.bind(about);
        }
        let row = self.told(asked.fetch_one(sql)).await?;
        self.sessions.column(&row, 0)
    }

    /// A layout that is done twice is done once, so not knowing does no harm.
    async fn told<T>(&self, work: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
        self.sessions.answer(work).await.map_err(|failure| failure.told_of_no_harm(&self.sessions.place))
    }
}
