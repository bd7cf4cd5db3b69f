//! Creates and migrates a schema: one transaction under one lock, so that any number of processes
//! may try at once. A schema that is newer than this program is not touched, nor are tables of
//! other programs.

use sqlx::Row;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};
use tidegate_store::{Error, Result, StoreErrorKind};

use crate::errors::unreadable;
use crate::session::{RetrySafety, Sessions};

/// The lock for changing the layout of this schema.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('tidegate layout of ' || $1, 0))";
const HAS_SCHEMA: &str = "SELECT to_regnamespace($1) IS NOT NULL";
const HAS_META: &str = "SELECT to_regclass('meta') IS NOT NULL";
const HAS_TABLES: &str = "SELECT EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace($1))";
const FIND_FORMAT: &str = "SELECT value FROM meta WHERE name = $1";
const SET_FORMAT: &str = "INSERT INTO meta VALUES ($1, $2)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value";

/// The layout of a schema.
pub(crate) struct Layout {
    /// The row of `meta` that holds the format.
    pub(crate) name: &'static str,
    /// What the tables belong to.
    pub(crate) what: &'static str,
    /// What each format adds to the one before it; their number is the format that this program
    /// writes.
    pub(crate) steps: &'static [&'static str],
}

impl Layout {
    /// Migrates the schema. An up-to-date one is not locked.
    pub(crate) async fn migrate(&self, sessions: &Sessions) -> Result<()> {
        match self.read_format(sessions).await {
            Ok(format) => {
                self.check_not_newer(sessions, format)?;
                if format == self.newest() {
                    return Ok(());
                }
            }
            // There is no schema yet, so there is no table to ask.
            Err(error) if error.kind() == StoreErrorKind::Unreadable => {}
            Err(error) => return Err(error),
        }
        let mut connection = sessions.connect().await?;
        run_layout_query(sessions, sqlx::raw_sql("BEGIN").execute(&mut connection)).await?;
        self.apply_steps(sessions, &mut connection).await?;
        run_layout_query(sessions, sqlx::raw_sql("COMMIT").execute(&mut connection)).await?;
        drop(connection.close().await);
        Ok(())
    }

    /// Rejects a schema that is missing or that a newer program has created. Takes no lock and
    /// changes nothing.
    pub(crate) async fn check_current(&self, sessions: &Sessions) -> Result<()> {
        self.check_not_newer(sessions, self.read_format(sessions).await?)
    }

    async fn read_format(&self, sessions: &Sessions) -> Result<i64> {
        let found = sessions.rows(RetrySafety::Harmless, FIND_FORMAT, |q| q.bind(self.name)).await?;
        found.first().map_or(Ok(0), |row| sessions.column(row, 0))
    }

    async fn apply_steps(&self, sessions: &Sessions, sql: &mut PgConnection) -> Result<()> {
        let schema = &*sessions.schema;
        run_layout_query(sessions, sqlx::query(LOCK).bind(schema).execute(&mut *sql)).await?;
        // Checked first, because creating it needs a privilege that is not needed where it exists.
        if !query_bool(sessions, sql, HAS_SCHEMA, Some(schema)).await? {
            // The name consists of lower-case letters, digits and _ only.
            let create = AssertSqlSafe(format!("CREATE SCHEMA {schema}"));
            run_layout_query(sessions, sqlx::raw_sql(create).execute(&mut *sql)).await?;
        }
        let there = self.format(sessions, sql).await?;
        self.check_not_newer(sessions, i64::try_from(there).unwrap_or(i64::MAX))?;
        if there == self.steps.len() {
            return Ok(());
        }
        for step in &self.steps[there..] {
            run_layout_query(sessions, sqlx::raw_sql(*step).execute(&mut *sql)).await?;
        }
        run_layout_query(
            sessions,
            sqlx::query(SET_FORMAT).bind(self.name).bind(self.newest()).execute(&mut *sql),
        )
        .await
        .map(drop)
    }

    /// The format that this program writes.
    fn newest(&self) -> i64 {
        i64::try_from(self.steps.len()).unwrap_or(i64::MAX)
    }

    /// Rejects a schema that a newer program has created.
    pub(crate) fn check_not_newer(&self, sessions: &Sessions, format: i64) -> Result<()> {
        let (place, newest) = (&sessions.place, self.newest());
        if format <= newest {
            return Ok(());
        }
        let message = format!("{place} has format {format}; this program reads format {newest}");
        Err(Error::new(StoreErrorKind::Unreadable, message))
    }

    /// The existing format; 0 when the schema is empty.
    async fn format(&self, sessions: &Sessions, sql: &mut PgConnection) -> Result<usize> {
        if !query_bool(sessions, sql, HAS_TABLES, Some(&*sessions.schema)).await? {
            return Ok(0);
        }
        let mut found: Option<i64> = None;
        if query_bool(sessions, sql, HAS_META, None).await? {
            let row = run_layout_query(
                sessions,
                sqlx::query(FIND_FORMAT).bind(self.name).fetch_optional(&mut *sql),
            )
            .await?;
            found = row.and_then(|row| row.try_get(0).ok());
        }
        found
            .and_then(|format| usize::try_from(format).ok())
            .ok_or_else(|| unreadable(&sessions.place, &format!("holds tables that are not {}", self.what)))
    }
}

async fn query_bool(
    sessions: &Sessions,
    sql: &mut PgConnection,
    question: &'static str,
    about: Option<&str>,
) -> Result<bool> {
    let mut asked = sqlx::query(question);
    if let Some(about) = about {
        asked = asked.bind(about);
    }
    let row = run_layout_query(sessions, asked.fetch_one(sql)).await?;
    sessions.column(&row, 0)
}

/// Migrating is idempotent, so an unknown outcome is harmless.
async fn run_layout_query<T>(sessions: &Sessions, work: impl Future<Output = sqlx::Result<T>>) -> Result<T> {
    sessions.with_timeout(work).await.map_err(|failure| failure.into_harmless_error(&sessions.place))
}
