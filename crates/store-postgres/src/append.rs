//! Appends: one task and one connection for each partition, so that they reach the server in the
//! order in which they were submitted, each in one round trip. A caller that goes away does not
//! break a connection; a broken connection is replaced for the next append.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection, Row};
use tidegate_core::id::Partition;
use tidegate_core::{Fault, State};
use tidegate_store::log::{Batch, Lsn, Ownership, StoredResult};
use tidegate_store::{Error, Result, StoreErrorKind, codec};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::errors::code_of;
use crate::session::{RetrySafety, Sessions, Statement, StatementFailure, TRUSTED_FOR};
use crate::{attempts, checks, costs, rows};

const APPEND: &str = "SELECT verdict, number
    FROM append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)";

/// An append with costs, which most appends do not have.
const APPEND_WITH_COSTS: &str = "SELECT verdict, number
    FROM append_with_costs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
        $21, $22, $23, $24, $25, $26, $27, $28, $29)";

/// An append with attempts, and with costs if there are any.
const APPEND_WITH_ATTEMPTS: &str = "SELECT verdict, number
    FROM append_with_attempts($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
        $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38)";

const MAKE_ROOM: &str = "SELECT make_room($1, $2)";
/// The number of seqs in one range, as in the schema.
const RANGE_LEN: u64 = 1_000_000;

/// A batch, its owner, and its caller.
type QueuedBatch = (Ownership, Batch, oneshot::Sender<Result<Lsn>>);

/// The appending tasks, one for each partition that was appended to.
pub(crate) struct Appenders {
    sessions: Sessions,
    queues: Mutex<HashMap<Partition, mpsc::UnboundedSender<QueuedBatch>>>,
}

impl Appenders {
    pub(crate) fn new(sessions: Sessions) -> Self {
        Self { sessions, queues: Mutex::default() }
    }

    /// Submits a batch at once; the receiver resolves when it is durable. The owner bounds the
    /// length of the queue.
    pub(crate) fn append(&self, owner: Ownership, batch: Batch) -> oneshot::Receiver<Result<Lsn>> {
        let (answer, answered) = oneshot::channel();
        let mut lines = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        let line = lines.entry(owner.partition).or_insert_with(|| {
            let (line, handed) = mpsc::unbounded_channel();
            let appender = Appender { sessions: self.sessions.clone(), connection: None, made: 0 };
            tokio::spawn(appender.serve(handed));
            line
        });
        // A task that is gone drops the sender, which the receiver notices.
        drop(line.send((owner, batch, answer)));
        answered
    }
}

struct Appender {
    sessions: Sessions,
    connection: Option<(PgConnection, Instant)>,
    /// The last range that was created ahead.
    made: u64,
}

impl Appender {
    async fn serve(mut self, mut handed: mpsc::UnboundedReceiver<QueuedBatch>) {
        while let Some((owner, batch, answer)) = handed.recv().await {
            drop(answer.send(self.append(owner, &batch).await));
            self.look_ahead(owner.partition, &batch).await;
        }
    }

    async fn append(&mut self, owner: Ownership, batch: &Batch) -> Result<Lsn> {
        checks::batch(batch)?;
        let facts = codec::encode(&batch.facts);
        let (mut has_room, mut earlier) = (false, EarlierResults::Absent);
        let row = loop {
            match self.send_batch(owner, batch, &facts, earlier).await? {
                Ok(row) => break row,
                // There is no table for some of these seqs yet, and nothing was written.
                Err(cause) if !has_room && code_of(&cause).as_deref() == Some("23514") => {
                    self.make_room(owner.partition, places(batch)).await?;
                    has_room = true;
                }
                Err(cause) if earlier == EarlierResults::Absent && is_ended_already(&cause) => {
                    earlier = EarlierResults::Replaced;
                }
                Err(cause) => return Err(batch_error(&self.sessions.place, batch, cause)),
            }
        };
        let number: i64 = self.sessions.column(&row, 1)?;
        match row.try_get::<&str, _>(0).unwrap_or_default() {
            "ok" => Ok(Lsn(number.cast_unsigned())),
            "follows" => Err(checks::not_following_error(
                batch.follows.unwrap_or_default(),
                Lsn(number.cast_unsigned()),
            )),
            "drained" => Err(checks::not_waiting(number, batch.drained.len())),
            other => Err(checks::refusal(owner, other, number)),
        }
    }

    /// Sends a batch; returns the batch too if the server rolled it back.
    async fn send_batch(
        &mut self,
        owner: Ownership,
        batch: &Batch,
        facts: &[u8],
        earlier: EarlierResults,
    ) -> Result<std::result::Result<PgRow, sqlx::Error>> {
        let mut connection = self.checked_connection().await?;
        let answer = self
            .sessions
            .with_timeout(bind_batch(owner, batch, facts, earlier).fetch_one(&mut connection))
            .await;
        let answer = match answer {
            Ok(row) => Ok(row),
            Err(StatementFailure::Undone(cause)) => Err(cause),
            // The connection is dropped: whatever still arrives on it belongs to no one.
            Err(failure) => return Err(failure.into_error(&self.sessions.place)),
        };
        self.connection = Some((connection, Instant::now()));
        Ok(answer)
    }

    /// Creates the tables of these ranges of seqs. This is idempotent.
    async fn make_room(&self, partition: Partition, places: BTreeSet<u64>) -> Result<()> {
        for place in places {
            let seq = (place * RANGE_LEN).cast_signed();
            self.sessions
                .rows(RetrySafety::Harmless, MAKE_ROOM, |q| q.bind(i32::from(partition)).bind(seq))
                .await?;
        }
        Ok(())
    }

    /// Creates the next range's tables in time, so that no append has to wait for them.
    async fn look_ahead(&mut self, partition: Partition, batch: &Batch) {
        let Some(last) = batch.operations.last().map(|operation| operation.seq.0) else { return };
        let next = last / RANGE_LEN + 1;
        if last % RANGE_LEN > RANGE_LEN / 10 * 9 && next > self.made {
            // If this fails, the append that needs the table creates it.
            drop(self.make_room(partition, BTreeSet::from([next])).await);
            self.made = next;
        }
    }

    /// The connection, tested first if it has not been used for a while.
    async fn checked_connection(&mut self) -> Result<PgConnection> {
        if let Some((mut connection, used)) = self.connection.take()
            && (used.elapsed() < TRUSTED_FOR || self.sessions.with_timeout(connection.ping()).await.is_ok())
        {
            return Ok(connection);
        }
        self.sessions.connect().await
    }
}

/// How to handle results that the ended operations of a batch already have. An owner normally has
/// none, so they are looked for only when the server reports that there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlierResults {
    Absent,
    Replaced,
}

/// Returns whether the server found a result where a new one was to be inserted.
fn is_ended_already(cause: &sqlx::Error) -> bool {
    let table = cause.as_database_error().and_then(sqlx::error::DatabaseError::table);
    code_of(cause).as_deref() == Some("23505") && table.is_some_and(|table| table.starts_with("results"))
}

/// The ranges of the seqs of a batch.
fn places(batch: &Batch) -> BTreeSet<u64> {
    let ended = batch.results.iter().map(|result| result.seq);
    let seqs = batch.operations.iter().map(|operation| operation.seq).chain(ended);
    seqs.map(|seq| seq.0 / RANGE_LEN).collect()
}

/// The error for a batch that the server rolled back.
fn batch_error(place: &str, batch: &Batch, cause: sqlx::Error) -> Error {
    let said = cause.as_database_error();
    if code_of(&cause).as_deref() != Some("23505") {
        return StatementFailure::Undone(cause).into_error(place);
    }
    if said.and_then(sqlx::error::DatabaseError::table) == Some("log") {
        let message = format!("another append to {place} interfered: nothing was written");
        return Error::new(StoreErrorKind::Unavailable, message);
    }
    let first = batch.operations.first().map_or(0, |operation| operation.seq.0);
    let last = batch.operations.last().map_or(0, |operation| operation.seq.0);
    checks::invalid_error(format!(
        "one of the operations {first} to {last} already exists: a seq is used once"
    ))
}

fn bind_batch<'q>(
    owner: Ownership,
    batch: &'q Batch,
    facts: &'q [u8],
    earlier: EarlierResults,
) -> Statement<'q> {
    let operations = &batch.operations;
    // The last one counts when there are several; sorted, in the order of clean-up.
    let results: BTreeMap<_, _> = batch.results.iter().map(|result| (result.seq, result)).collect();
    let results: Vec<&StoredResult> = results.into_values().collect();
    let class = |fault: &Fault| fault.class.as_str();
    let given = results.iter().map(|result| result.seq).filter(|_| earlier == EarlierResults::Replaced);
    let gone: Vec<i64> = batch.reopened.iter().copied().chain(given).map(|seq| seq.0.cast_signed()).collect();
    let append = match (batch.costs.is_empty(), batch.attempts.is_empty()) {
        (_, false) => APPEND_WITH_ATTEMPTS,
        (false, true) => APPEND_WITH_COSTS,
        (true, true) => APPEND,
    };
    let append = sqlx::query(append)
        .bind(i32::from(owner.partition))
        .bind(owner.epoch.0.cast_signed())
        .bind(batch.follows.map(|lsn| lsn.0.cast_signed()))
        .bind(facts)
        .bind(collect_column(operations, |operation| operation.seq.0.cast_signed()))
        .bind(collect_column(operations, |operation| rows::micros(operation.at)))
        .bind(collect_column(operations, |operation| &*operation.group))
        .bind(collect_column(operations, |operation| &*operation.kind))
        .bind(collect_column(operations, |operation| operation.key.as_deref()))
        .bind(collect_column(operations, |operation| &*operation.envelope))
        .bind(collect_column(operations, |operation| &*operation.payload))
        .bind(collect_column(&results, |result| result.seq.0.cast_signed()))
        .bind(collect_column(&results, |result| rows::micros(result.at)))
        .bind(collect_column(&results, |result| State::from(result.state).as_str()))
        .bind(collect_column(&results, |result| i32::from(result.attempt)))
        .bind(collect_column(&results, |result| result.fault.as_ref().map(class)))
        .bind(collect_column(&results, |result| result.fault.as_ref().map(sentence)))
        .bind(collect_column(&results, |result| &*result.body))
        .bind(gone)
        .bind(collect_column(&batch.drained, |id| id.0.cast_signed()));
    if !batch.attempts.is_empty() {
        return attempts::bind_attempts(costs::bind_costs(append, &batch.costs), &batch.attempts);
    }
    if batch.costs.is_empty() { append } else { costs::bind_costs(append, &batch.costs) }
}

fn collect_column<'q, T, U>(list: &'q [T], column: impl Fn(&'q T) -> U) -> Vec<U> {
    list.iter().map(column).collect()
}

/// A fault's message. It may contain text of an upstream, and that must not prevent a result from
/// being stored.
fn sentence(fault: &Fault) -> String {
    rows::storable(&fault.stored_message())
}
