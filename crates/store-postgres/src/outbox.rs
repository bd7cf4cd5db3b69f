//! The outbox on PostgreSQL: operations that applications submit with `enqueue`, inside their own
//! transactions. This module reads, rejects and counts them; accepted ones leave the outbox with an
//! append.

use std::time::Duration;

use bytes::Bytes;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;
use tidegate_core::id::Partition;
use tidegate_store::log::Ownership;
use tidegate_store::outbox::{OutboxRow, OutboxStatus, PublishedUpstream, RefusedOutboxRow};
use tidegate_store::{Outbox, Result, StoreFuture};

pub use tidegate_store::outbox::OutboxId;

use crate::session::RetrySafety;
use crate::{PostgresStore, address, checks, rows};

/// The bytes of operations after which a page ends.
const PAGE_LEN_MAX: i64 = 4 * 1024 * 1024;
/// The number up to which waiting rows are counted.
const COUNTED_MAX: i64 = 100_000;

const PUBLISH: &str = "SELECT publish($1, $2)";
const WAITING: &str = "
SELECT id, bits(greatest(moment($4) - unsigned(at), 0)), operation::text FROM (
    SELECT *, sum(len) OVER (ORDER BY id) - len AS before FROM (
        SELECT * FROM outbox WHERE partition = $1 ORDER BY id LIMIT $2
    ) AS first
) AS counted
WHERE before < $3 ORDER BY id";
const REFUSE: &str = "SELECT verdict, number FROM refuse_row($1, $2, $3, $4, $5, $6)";
const FIGURES: &str = "SELECT count(*), min(at) FROM (SELECT at FROM outbox LIMIT $1) AS counted";
const REFUSED: &str = "SELECT id, at, refused_at, code, problem FROM outbox_refused
    WHERE id < $1 ORDER BY id DESC LIMIT $2";

/// Submits an operation inside the caller's transaction. When that commits, the operation will be
/// accepted once; when it does not, nothing has happened. The operation is the body of `POST
/// /v1/operations`, as JSON. Returns its number in the outbox; without a `dedupe_key` of its own it
/// gets the key `outbox-` and that number.
///
/// ```no_run
/// # async fn example(pool: sqlx::PgPool) -> sqlx::Result<()> {
/// let mut transaction = pool.begin().await?;
/// sqlx::query("UPDATE orders SET state = 'paid' WHERE id = 7").execute(&mut *transaction).await?;
/// let operation = r#"{
///     "upstream": "shop", "group": "shop:1", "dedupe_key": "order-7",
///     "request": { "method": "POST", "path": "/orders/7/paid" }
/// }"#;
/// tidegate_store_postgres::outbox::enqueue(&mut transaction, "tidegate", operation).await?;
/// transaction.commit().await
/// # }
/// ```
///
/// # Errors
/// The server's error, with a message about what is wrong with the operation; the transaction can
/// only be rolled back then.
pub async fn enqueue(sql: &mut PgConnection, schema: &str, operation: &str) -> sqlx::Result<OutboxId> {
    if !address::is_plain(schema) {
        return Err(sqlx::Error::Configuration("this is not a valid name of a Tidegate schema".into()));
    }
    // The name consists of lower-case letters, digits and _ only.
    let enqueue = AssertSqlSafe(format!("SELECT {schema}.enqueue($1::json)"));
    let id: i64 = sqlx::query_scalar(enqueue).bind(operation).fetch_one(sql).await?;
    Ok(OutboxId(id.cast_unsigned()))
}

impl PostgresStore {
    async fn first_waiting(&self, partition: Partition, most: usize) -> Result<Vec<OutboxRow>> {
        let (clock, most) = (self.clock(), rows::count(most));
        let bind = |q: crate::session::Statement<'static>| {
            q.bind(i32::from(partition)).bind(most).bind(PAGE_LEN_MAX).bind(clock)
        };
        let found = self.sessions.rows(RetrySafety::Harmless, WAITING, bind).await?;
        let waiting = |row| {
            let waited: i64 = self.sessions.column(row, 1)?;
            Ok(OutboxRow {
                id: OutboxId(self.sessions.column::<i64>(row, 0)?.cast_unsigned()),
                waited: Duration::from_micros(waited.cast_unsigned()),
                operation: Bytes::from(self.sessions.column::<String>(row, 2)?),
            })
        };
        found.iter().map(waiting).collect()
    }

    async fn move_aside(&self, owner: Ownership, id: OutboxId, code: &str, problem: &str) -> Result<()> {
        let (partition, epoch, clock) =
            (i32::from(owner.partition), owner.epoch.0.cast_signed(), self.clock());
        // It may repeat what was submitted.
        let problem = problem.replace('\0', "\u{fffd}");
        let row = self
            .sessions
            .row(RetrySafety::Harmless, REFUSE, |q| {
                let q = q.bind(partition).bind(epoch).bind(id.0.cast_signed());
                q.bind(code).bind(&problem).bind(clock)
            })
            .await?;
        let number = self.sessions.column(&row, 1)?;
        match self.sessions.column(&row, 0)? {
            "ok" => Ok(()),
            refused => Err(checks::refusal(owner, refused, number)),
        }
    }

    async fn outlook(&self, below: Option<OutboxId>, most: usize) -> Result<OutboxStatus> {
        let figures = self.sessions.row(RetrySafety::Harmless, FIGURES, |q| q.bind(COUNTED_MAX)).await?;
        let below = below.map_or(i64::MAX, |below| i64::try_from(below.0).unwrap_or(i64::MAX));
        let aside = self
            .sessions
            .rows(RetrySafety::Harmless, REFUSED, |q| q.bind(below).bind(rows::count(most)))
            .await?;
        let refused = |row| {
            Ok(RefusedOutboxRow {
                id: OutboxId(self.sessions.column::<i64>(row, 0)?.cast_unsigned()),
                at: rows::time(self.sessions.column(row, 1)?),
                refused_at: rows::time(self.sessions.column(row, 2)?),
                code: self.sessions.column(row, 3)?,
                problem: self.sessions.column(row, 4)?,
            })
        };
        Ok(OutboxStatus {
            waiting: self.sessions.column::<i64>(&figures, 0)?.cast_unsigned(),
            oldest: self.sessions.column::<Option<i64>>(&figures, 1)?.map(rows::time),
            refused: aside.iter().map(refused).collect::<Result<_>>()?,
        })
    }
}

impl Outbox for PostgresStore {
    fn publish(&self, upstreams: Vec<PublishedUpstream>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let names: Vec<&str> = upstreams.iter().map(|upstream| &*upstream.name).collect();
            names.iter().try_for_each(|name| checks::name_can_be_kept(name))?;
            let spread: Vec<bool> = upstreams.iter().map(|upstream| upstream.is_spread).collect();
            self.sessions
                .rows(RetrySafety::Harmless, PUBLISH, |q| q.bind(&names).bind(&spread))
                .await
                .map(drop)
        })
    }

    fn waiting_rows(&self, partition: Partition, most: usize) -> StoreFuture<'_, Vec<OutboxRow>> {
        Box::pin(self.first_waiting(partition, most))
    }

    fn refuse(&self, owner: Ownership, id: OutboxId, code: &str, problem: &str) -> StoreFuture<'_, ()> {
        let (code, problem) = (code.to_owned(), problem.to_owned());
        Box::pin(async move { self.move_aside(owner, id, &code, &problem).await })
    }

    fn status(&self, below: Option<OutboxId>, most: usize) -> StoreFuture<'_, OutboxStatus> {
        Box::pin(self.outlook(below, most))
    }
}
