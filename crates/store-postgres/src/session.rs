//! Connections: their setup, a bounded pool of them, and running statements so that a server that
//! is stuck, restarted or gone yields a result in bounded time. This module does not know what a
//! statement means.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::{ConnectOptions, Connection, Row, Transaction};
use tidegate_store::{Error, Result, StoreErrorKind};
use tokio::time::timeout;

use crate::address::Address;
use crate::errors::{
    StatementOutcome, nothing_changed, server_message, statement_outcome, unreachable, unreadable, unsure,
};

/// The oldest server version that was tested, as it numbers itself.
const SERVER_VERSION_MIN: i32 = 150_000;
/// The server's timeout for a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);
/// The server's timeout for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// The server's timeout for a transaction that its process left open.
const IDLE_TRANSACTION_TIMEOUT: Duration = Duration::from_secs(60);
/// The client's timeout for a response: after this, the server or the network is dead.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// The timeout for a connection, after which the server counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The connections for everything but appends.
const POOL_MAX: u32 = 8;
/// A connection that was idle for longer is tested before it is used.
pub(crate) const TRUSTED_FOR: Duration = Duration::from_secs(1);

/// A statement and its bound arguments.
pub(crate) type Statement<'q> = sqlx::query::Query<'q, sqlx::Postgres, PgArguments>;

/// Whether a statement may be run again when it is unknown whether it was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetrySafety {
    /// The statement is idempotent, or only reads.
    Harmless,
    /// The statement must not be executed twice.
    Unsafe,
}

/// The connections to one schema.
#[derive(Clone)]
pub(crate) struct Sessions {
    pool: PgPool,
    options: PgConnectOptions,
    pub(crate) schema: Arc<str>,
    pub(crate) place: Arc<str>,
}

impl Sessions {
    /// Connects and checks that the server is new enough.
    pub(crate) async fn open(url: &str, schema: &str) -> Result<Self> {
        let sessions = Self::lazy(url, schema)?;
        sessions.check_version().await?;
        Ok(sessions)
    }

    /// Connects when it is first used.
    pub(crate) fn lazy(url: &str, schema: &str) -> Result<Self> {
        let address = Address::parse(url, schema)?;
        let place: Arc<str> = address.describe().into();
        let options = set_up(address.options, &address.schema);
        let pool = PgPoolOptions::new()
            .max_connections(POOL_MAX)
            .acquire_timeout(CONNECT_TIMEOUT)
            .test_before_acquire(false)
            .before_acquire(|connection, meta| {
                Box::pin(async move { Ok(meta.idle_for < TRUSTED_FOR || connection.ping().await.is_ok()) })
            })
            .after_connect(|connection, _| Box::pin(insist_on_durability(connection)))
            .connect_lazy_with(options.clone());
        Ok(Self { pool, options, schema: address.schema.into(), place })
    }

    /// Rejects a server that is too old.
    pub(crate) async fn check_version(&self) -> Result<()> {
        let version = "SELECT current_setting('server_version_num')::int";
        let version: i32 = self.column(&self.row(RetrySafety::Harmless, version, |q| q).await?, 0)?;
        if version < SERVER_VERSION_MIN {
            let (is, least) = (version / 10_000, SERVER_VERSION_MIN / 10_000);
            let message = format!("{} is PostgreSQL {is}; at least {least} is needed", self.place);
            return Err(Error::new(StoreErrorKind::Invalid, message));
        }
        Ok(())
    }

    /// Runs one statement on a connection of the pool; returns its rows.
    pub(crate) async fn rows<'q>(
        &self,
        twice: RetrySafety,
        sql: &'static str,
        bind: impl Fn(Statement<'q>) -> Statement<'q>,
    ) -> Result<Vec<PgRow>> {
        let mut tries_left = if twice == RetrySafety::Harmless { POOL_MAX + 1 } else { 1 };
        loop {
            tries_left -= 1;
            let mut connection = self.acquire().await?;
            let work = bind(sqlx::query(sql)).fetch_all(&mut *connection);
            let failure = match self.with_timeout(work).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => failure,
            };
            if matches!(failure, StatementFailure::Undone(_)) {
                return Err(failure.into_error(&self.place));
            }
            // It must not return to the pool in the middle of a response.
            drop(connection.detach());
            if twice == RetrySafety::Unsafe {
                return Err(failure.into_error(&self.place));
            }
            if tries_left == 0 || matches!(failure, StatementFailure::TimedOut) {
                return Err(failure.into_harmless_error(&self.place));
            }
        }
    }

    /// Runs a statement that returns one row.
    pub(crate) async fn row<'q>(
        &self,
        twice: RetrySafety,
        sql: &'static str,
        bind: impl Fn(Statement<'q>) -> Statement<'q>,
    ) -> Result<PgRow> {
        let mut rows = self.rows(twice, sql, bind).await?;
        rows.pop().ok_or_else(|| unreadable(&self.place, "returned no row where one was expected"))
    }

    /// Reads a column.
    pub(crate) fn column<'r, T>(&self, row: &'r PgRow, column: usize) -> Result<T>
    where
        T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        row.try_get(column).map_err(|cause| nothing_changed(&self.place, &cause))
    }

    /// Begins a transaction on a connection of the pool. Connections that have died meanwhile are
    /// skipped.
    pub(crate) async fn begin(&self, how: &'static str) -> Result<Transaction<'static, sqlx::Postgres>> {
        let mut tries_left = POOL_MAX + 1;
        loop {
            tries_left -= 1;
            match self.with_timeout(self.pool.begin_with(how)).await {
                Ok(transaction) => return Ok(transaction),
                Err(StatementFailure::Unknown(_)) if tries_left > 0 => {}
                Err(failure) => return Err(failure.into_harmless_error(&self.place)),
            }
        }
    }

    async fn acquire(&self) -> Result<PoolConnection<sqlx::Postgres>> {
        self.pool.acquire().await.map_err(|cause| unreachable(&self.place, &cause))
    }

    /// Waits for a response, but not for ever.
    pub(crate) async fn with_timeout<T>(
        &self,
        work: impl Future<Output = sqlx::Result<T>>,
    ) -> std::result::Result<T, StatementFailure> {
        match timeout(ANSWER_TIMEOUT, work).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(cause)) if statement_outcome(&cause) == StatementOutcome::Undone => {
                Err(StatementFailure::Undone(cause))
            }
            Ok(Err(cause)) => Err(StatementFailure::Unknown(server_message(&cause))),
            Err(_) => Err(StatementFailure::TimedOut),
        }
    }

    /// Opens a connection outside of the pool.
    pub(crate) async fn connect(&self) -> Result<PgConnection> {
        let connecting = async {
            let mut connection = self.options.connect().await?;
            insist_on_durability(&mut connection).await?;
            Ok(connection)
        };
        let late = || sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
        let answer = timeout(CONNECT_TIMEOUT, connecting).await.unwrap_or_else(|_| Err(late()));
        answer.map_err(|cause| unreachable(&self.place, &cause))
    }

    /// A pool of one connection without idle timeouts, for a listener.
    pub(crate) fn listener_pool(&self) -> PgPool {
        PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(CONNECT_TIMEOUT)
            .connect_lazy_with(self.options.clone())
    }
}

/// The failure of a statement.
pub(crate) enum StatementFailure {
    /// The server rolled everything back.
    Undone(sqlx::Error),
    /// The connection broke, and the outcome is unknown; the cause.
    Unknown(String),
    /// No response came in time, and the outcome is unknown.
    TimedOut,
}

impl StatementFailure {
    /// Converts the failure to a store error.
    pub(crate) fn into_error(self, place: &str) -> Error {
        match self {
            Self::Undone(cause) => nothing_changed(place, &cause),
            Self::Unknown(_) | Self::TimedOut => unsure(place, &self.into_reason()),
        }
    }

    /// Converts the failure of an idempotent statement to a store error.
    pub(crate) fn into_harmless_error(self, place: &str) -> Error {
        match self {
            Self::Undone(cause) => nothing_changed(place, &cause),
            Self::Unknown(_) | Self::TimedOut => {
                Error::new(StoreErrorKind::Unavailable, format!("{place} does not respond"))
                    .with_source(self.into_reason())
            }
        }
    }

    fn into_reason(self) -> String {
        match self {
            Self::Undone(cause) => server_message(&cause),
            Self::Unknown(why) => why,
            Self::TimedOut => format!("no response came within {} s", ANSWER_TIMEOUT.as_secs()),
        }
    }
}

/// Sets up connections. Plans are pinned: every statement walks along a primary key, and the
/// planner would scan tables that were never analysed.
fn set_up(options: PgConnectOptions, schema: &str) -> PgConnectOptions {
    let millis = |time: Duration| time.as_millis().to_string();
    let options = options.options([
        ("search_path", schema.to_owned()),
        ("statement_timeout", millis(STATEMENT_TIMEOUT)),
        ("lock_timeout", millis(LOCK_TIMEOUT)),
        ("idle_in_transaction_session_timeout", millis(IDLE_TRANSACTION_TIMEOUT)),
        ("default_transaction_isolation", "read committed".to_owned()),
        ("plan_cache_mode", "force_generic_plan".to_owned()),
        ("enable_hashjoin", "off".to_owned()),
        ("enable_mergejoin", "off".to_owned()),
        ("enable_seqscan", "off".to_owned()),
        ("enable_bitmapscan", "off".to_owned()),
        ("jit", "off".to_owned()),
    ]);
    match options.get_application_name() {
        Some(_) => options,
        None => options.application_name("tidegate"),
    }
}

/// Makes commits durable before they return, even where the server's own settings ask for less.
async fn insist_on_durability(connection: &mut PgConnection) -> sqlx::Result<()> {
    let insist = "SELECT set_config('synchronous_commit', 'on', false)
        WHERE current_setting('synchronous_commit') IN ('off', 'local')";
    sqlx::query(insist).execute(connection).await.map(drop)
}
