//! Operations and results as rows. Numbers of 64 bits lie as SQLite's signed ones with the same bits.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::types::Type;
use rusqlite::{CachedStatement, Connection, Row};
use tidegate_core::{EndState, Fault, FaultClass, Seq, State, Time};
use tidegate_store::log::{Stored, StoredOperation, StoredResult};

/// Everything of one operation.
pub(super) const WHOLE: &str = "
SELECT o.seq, o.at, o.grp, o.kind, o.key, o.envelope, r.at, r.state, r.attempt, r.fault_class, r.fault, o.payload,
    r.body
FROM operations o LEFT JOIN results r ON r.seq = o.seq WHERE o.seq = ?1";

/// The same without what was sent and what came back.
pub(super) const OUTLINE: &str = "
SELECT o.seq, o.at, o.grp, o.kind, o.key, o.envelope, r.at, r.state, r.attempt, r.fault_class, r.fault, x'', x''
FROM operations o LEFT JOIN results r ON r.seq = o.seq WHERE o.seq = ?1";

/// One operation as it was accepted.
pub(super) const ACCEPTED: &str =
    "SELECT seq, at, grp, kind, key, envelope, payload FROM operations WHERE seq = ?1";

/// A time as it lies.
pub(super) const fn micros(time: Time) -> i64 {
    time.as_micros().cast_signed()
}

/// A time that lies in a column.
pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    Ok(Time::from_micros(row.get::<_, i64>(column)?.cast_unsigned()))
}

/// Adds operations, one after the other.
pub(super) struct Operations<'a>(CachedStatement<'a>);

impl<'a> Operations<'a> {
    pub(super) fn new(sql: &'a Connection) -> rusqlite::Result<Self> {
        let insert = "INSERT INTO operations (seq, at, grp, kind, key, envelope, payload)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        sql.prepare_cached(insert).map(Self)
    }

    pub(super) fn insert(&mut self, operation: &StoredOperation) -> rusqlite::Result<()> {
        let row = (
            operation.seq.0.cast_signed(),
            micros(operation.at),
            &*operation.group,
            &*operation.kind,
            operation.key.as_deref(),
            &*operation.envelope,
            &*operation.payload,
        );
        self.0.execute(row).map(drop)
    }
}

/// Adds results, each in place of an earlier one.
pub(super) struct Results<'a>(CachedStatement<'a>);

impl<'a> Results<'a> {
    pub(super) fn new(sql: &'a Connection) -> rusqlite::Result<Self> {
        let insert = "INSERT OR REPLACE INTO results (seq, at, state, attempt, fault_class, fault, body)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        sql.prepare_cached(insert).map(Self)
    }

    pub(super) fn insert(&mut self, result: &StoredResult) -> rusqlite::Result<()> {
        let row = (
            result.seq.0.cast_signed(),
            micros(result.at),
            State::from(result.state).as_str(),
            result.attempt,
            result.fault.as_ref().map(|fault| fault.class.as_str()),
            result.fault.as_ref().map(|fault| fault.message.as_str()),
            &*result.body,
        );
        self.0.execute(row).map(drop)
    }
}

/// The operation of a row of `ACCEPTED`.
pub(super) fn operation(row: &Row<'_>) -> rusqlite::Result<StoredOperation> {
    Ok(StoredOperation {
        seq: Seq(row.get::<_, i64>(0)?.cast_unsigned()),
        at: time(row, 1)?,
        group: row.get::<_, Arc<str>>(2)?,
        kind: row.get::<_, Arc<str>>(3)?,
        key: row.get::<_, Option<Arc<str>>>(4)?,
        envelope: bytes(row, 5)?,
        payload: bytes(row, 6)?,
    })
}

/// The operation of a row of `WHOLE` or `OUTLINE`.
pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<Stored> {
    let seq = Seq(row.get::<_, i64>(0)?.cast_unsigned());
    let operation = StoredOperation {
        seq,
        at: time(row, 1)?,
        group: row.get::<_, Arc<str>>(2)?,
        kind: row.get::<_, Arc<str>>(3)?,
        key: row.get::<_, Option<Arc<str>>>(4)?,
        envelope: bytes(row, 5)?,
        payload: bytes(row, 11)?,
    };
    let result = if row.get_ref(6)?.data_type() == Type::Null { None } else { Some(result(row, seq)?) };
    Ok(Stored { operation, result })
}

fn result(row: &Row<'_>, seq: Seq) -> rusqlite::Result<StoredResult> {
    let fault = match row.get::<_, Option<String>>(9)? {
        Some(word) => {
            let class = FaultClass::parse(&word).ok_or_else(|| not_a_word(9))?;
            Some(Fault { class, message: row.get::<_, Option<String>>(10)?.unwrap_or_default() })
        }
        None => None,
    };
    Ok(StoredResult {
        seq,
        at: time(row, 6)?,
        state: end_state(row.get_ref(7)?.as_str()?).ok_or_else(|| not_a_word(7))?,
        attempt: row.get(8)?,
        fault,
        body: bytes(row, 12)?,
    })
}

/// How an operation ended, by its stable word.
fn end_state(word: &str) -> Option<EndState> {
    match State::parse(word)? {
        State::Succeeded => Some(EndState::Succeeded),
        State::Failed => Some(EndState::Failed),
        State::Canceled => Some(EndState::Canceled),
        State::Queued | State::Waiting | State::Running | State::Unknown => None,
    }
}

/// Bytes that lie in a column.
pub(super) fn bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<Bytes> {
    row.get::<_, Vec<u8>>(column).map(Bytes::from)
}

/// A word that this program does not write.
pub(super) fn not_a_word(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, "a word that is not known".into(), Type::Text)
}
