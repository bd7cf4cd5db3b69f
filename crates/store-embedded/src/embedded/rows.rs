//! Operations and results as rows, each with a checksum that is verified on reading. 64-bit numbers
//! are stored as SQLite's signed ones with the same bits.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::types::Type;
use rusqlite::{CachedStatement, Connection, ErrorCode, Row};
use tidegate_core::{EndState, Fault, FaultClass, Seq, State, Time};
use tidegate_store::log::{StoredEntry, StoredOperation, StoredResult};

use super::row_checksum::RowChecksum;

/// Selects all columns of an operation.
pub(super) const WHOLE: &str = "
SELECT o.seq, o.at, o.grp, o.kind, o.key, o.envelope, r.at, r.state, r.attempt, r.fault_class, r.fault, o.payload,
    r.body, o.sum, r.sum
FROM operations o LEFT JOIN results r ON r.seq = o.seq WHERE o.seq = ?1";

/// Selects an operation without its payload and its response body.
pub(super) const OUTLINE: &str = "
SELECT o.seq, o.at, o.grp, o.kind, o.key, o.envelope, r.at, r.state, r.attempt, r.fault_class, r.fault, x'', x'',
    o.sum, r.sum
FROM operations o LEFT JOIN results r ON r.seq = o.seq WHERE o.seq = ?1";

/// Selects an operation as it was accepted.
pub(super) const ACCEPTED: &str =
    "SELECT seq, at, grp, kind, key, envelope, payload, sum FROM operations WHERE seq = ?1";

/// The stored form of a time.
pub(super) const fn micros(time: Time) -> i64 {
    time.as_micros().cast_signed()
}

/// Reads a time from a column.
pub(super) fn time(row: &Row<'_>, column: usize) -> rusqlite::Result<Time> {
    Ok(Time::from_micros(row.get::<_, i64>(column)?.cast_unsigned()))
}

/// Inserts operations, one after the other.
pub(super) struct OperationInserter<'a>(CachedStatement<'a>);

impl<'a> OperationInserter<'a> {
    pub(super) fn new(sql: &'a Connection) -> rusqlite::Result<Self> {
        let insert = "INSERT INTO operations (seq, at, grp, kind, key, envelope, payload, sum)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
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
            sum_of_operation(operation).finish(&operation.payload),
        );
        self.0.execute(row).map(drop)
    }
}

/// Inserts results, each replacing an earlier one. A statement that may replace a row keeps a copy
/// of every page it changes, in case it fails half-way; hardly any result has an earlier one, so
/// that is asked for only when there is one.
pub(super) struct ResultInserter<'a> {
    insert: CachedStatement<'a>,
    sql: &'a Connection,
}

impl<'a> ResultInserter<'a> {
    pub(super) fn new(sql: &'a Connection) -> rusqlite::Result<Self> {
        let insert = sql.prepare_cached(
            "INSERT INTO results (seq, at, state, attempt, fault_class, fault, body, sum)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        Ok(Self { insert, sql })
    }

    pub(super) fn insert(&mut self, result: &StoredResult) -> rusqlite::Result<()> {
        match self.insert_new(result) {
            Err(refused) if refused.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
                let mut delete = self.sql.prepare_cached("DELETE FROM results WHERE seq = ?1")?;
                if delete.execute([result.seq.0.cast_signed()])? == 0 {
                    return Err(refused);
                }
                self.insert_new(result)
            }
            inserted => inserted,
        }
    }

    fn insert_new(&mut self, result: &StoredResult) -> rusqlite::Result<()> {
        let row = (
            result.seq.0.cast_signed(),
            micros(result.at),
            State::from(result.state).as_str(),
            result.attempt,
            result.fault.as_ref().map(|fault| fault.class.as_str()),
            result.fault.as_ref().map(Fault::stored_message),
            &*result.body,
            sum_of_result(result).finish(&result.body),
        );
        self.insert.execute(row).map(drop)
    }
}

fn sum_of_operation(operation: &StoredOperation) -> RowChecksum {
    RowChecksum::of("operations")
        .number(operation.seq.0.cast_signed())
        .number(micros(operation.at))
        .text(&operation.group)
        .text(&operation.kind)
        .maybe_text(operation.key.as_deref())
        .bytes(&operation.envelope)
}

fn sum_of_result(result: &StoredResult) -> RowChecksum {
    RowChecksum::of("results")
        .number(result.seq.0.cast_signed())
        .number(micros(result.at))
        .text(State::from(result.state).as_str())
        .number(result.attempt.into())
        .maybe_text(result.fault.as_ref().map(|fault| fault.class.as_str()))
        .maybe_text(result.fault.as_ref().map(Fault::stored_message).as_deref())
}

/// Reads the operation of a row of `ACCEPTED` and verifies it.
pub(super) fn operation(row: &Row<'_>) -> rusqlite::Result<StoredOperation> {
    let operation = StoredOperation {
        seq: Seq(row.get::<_, i64>(0)?.cast_unsigned()),
        at: time(row, 1)?,
        group: row.get::<_, Arc<str>>(2)?,
        kind: row.get::<_, Arc<str>>(3)?,
        key: row.get::<_, Option<Arc<str>>>(4)?,
        envelope: bytes(row, 5)?,
        payload: bytes(row, 6)?,
    };
    if sum_of_operation(&operation).matches(row.get(7)?, Some(&operation.payload[..])) {
        Ok(operation)
    } else {
        Err(damaged(format!("operation {} is not what was written", operation.seq.0)))
    }
}

/// Reads the operation of a row of `WHOLE`.
pub(super) fn stored(row: &Row<'_>) -> rusqlite::Result<StoredEntry> {
    checked(row, true)
}

/// Reads the operation of a row of `OUTLINE`.
pub(super) fn outline(row: &Row<'_>) -> rusqlite::Result<StoredEntry> {
    checked(row, false)
}

/// Reads the operation of a row and verifies it. The payload is verified where it was read.
fn checked(row: &Row<'_>, is_whole: bool) -> rusqlite::Result<StoredEntry> {
    let stored = read(row).map_err(|cause| match row.get::<_, i64>(0) {
        Ok(seq) => damaged(format!("operation {seq} cannot be read: {cause}")),
        Err(_) => cause,
    })?;
    let StoredEntry { operation, result } = &stored;
    let seq = operation.seq.0;
    if !sum_of_operation(operation).matches(row.get(13)?, is_whole.then_some(&operation.payload[..])) {
        return Err(damaged(format!("operation {seq} is not what was written")));
    }
    if let Some(result) = result
        && !sum_of_result(result).matches(row.get(14)?, is_whole.then_some(&result.body[..]))
    {
        return Err(damaged(format!("the result of operation {seq} is not what was written")));
    }
    Ok(stored)
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredEntry> {
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
    Ok(StoredEntry { operation, result })
}

fn result(row: &Row<'_>, seq: Seq) -> rusqlite::Result<StoredResult> {
    let fault = match row.get::<_, Option<String>>(9)? {
        Some(word) => {
            let class = FaultClass::parse(&word).ok_or_else(|| not_a_word(9))?;
            Some(Fault::from_stored(class, row.get::<_, Option<String>>(10)?.unwrap_or_default()))
        }
        None => None,
    };
    Ok(StoredResult {
        seq,
        at: time(row, 6)?,
        state: EndState::parse(row.get_ref(7)?.as_str()?).ok_or_else(|| not_a_word(7))?,
        attempt: row.get(8)?,
        fault,
        body: bytes(row, 12)?,
    })
}

/// Selects everything of a result but its body.
pub(super) const ENDED: &str =
    "SELECT seq, at, state, attempt, fault_class, fault, sum FROM results WHERE seq > ?1 ORDER BY seq";

/// The operation and time of a row of `ENDED`, and whether its checksum matches.
pub(super) fn ended(row: &Row<'_>) -> rusqlite::Result<(Seq, Time, bool)> {
    let text = |column| Ok::<_, rusqlite::Error>(row.get_ref(column)?.as_str_or_null()?.map(str::to_owned));
    let (seq, at): (i64, i64) = (row.get(0)?, row.get(1)?);
    let sum = RowChecksum::of("results")
        .number(seq)
        .number(at)
        .text(row.get_ref(2)?.as_str()?)
        .number(row.get(3)?)
        .maybe_text(text(4)?.as_deref())
        .maybe_text(text(5)?.as_deref());
    Ok((Seq(seq.cast_unsigned()), time(row, 1)?, sum.matches(row.get(6)?, None)))
}

/// Reads bytes from a column.
pub(super) fn bytes(row: &Row<'_>, column: usize) -> rusqlite::Result<Bytes> {
    row.get::<_, Vec<u8>>(column).map(Bytes::from)
}

/// The error for a row that is not what was written.
pub(super) fn damaged(what: String) -> rusqlite::Error {
    let cause = std::io::Error::new(std::io::ErrorKind::InvalidData, what);
    rusqlite::Error::FromSqlConversionFailure(0, Type::Blob, Box::new(cause))
}

/// The error for a word that this program does not write.
pub(super) fn not_a_word(column: usize) -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(column, "an unknown word".into(), Type::Text)
}
