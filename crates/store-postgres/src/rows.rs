//! Operations and results as rows. 64-bit numbers are stored as bigint with the same bits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tidegate_core::{EndState, Fault, FaultClass, Seq, Time};
use tidegate_store::log::{StoredEntry, StoredOperation, StoredResult};

/// The stored form of a time.
pub(crate) const fn micros(time: Time) -> i64 {
    time.as_micros().cast_signed()
}

/// A duration as it is bound.
pub(crate) fn span(duration: Duration) -> i64 {
    tidegate_core::time::micros(duration).cast_signed()
}

/// Reads a stored time.
pub(crate) const fn time(bits: i64) -> Time {
    Time::from_micros(bits.cast_unsigned())
}

/// Makes a text storable in PostgreSQL, where it must not prevent the rest from being stored.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A number of rows or bytes as it is bound; saturates at the largest that fits.
pub(crate) fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Reads the operation of a row: place or seq, seq, at, group, kind, key, envelope, the result's
/// at, state, attempt, class and fault, and, where they were selected, payload and body.
pub(crate) fn stored(row: &PgRow) -> sqlx::Result<StoredEntry> {
    let operation = operation(row)?;
    let result = match row.try_get::<Option<&str>, _>("state")? {
        Some(word) => Some(result(row, operation.seq, word)?),
        None => None,
    };
    Ok(StoredEntry { operation, result })
}

/// Reads the operation of a row without its result, which need not be in the row.
pub(crate) fn operation(row: &PgRow) -> sqlx::Result<StoredOperation> {
    Ok(StoredOperation {
        seq: Seq(row.try_get::<i64, _>("seq")?.cast_unsigned()),
        at: time(row.try_get("at")?),
        group: text(row, "grp")?,
        kind: text(row, "kind")?,
        key: row.try_get::<Option<&str>, _>("key")?.map(Arc::from),
        envelope: bytes(row, "envelope")?,
        payload: bytes(row, "payload")?,
    })
}

fn result(row: &PgRow, seq: Seq, word: &str) -> sqlx::Result<StoredResult> {
    let fault = match row.try_get::<Option<&str>, _>("fault_class")? {
        Some(class) => {
            let class = FaultClass::parse(class).ok_or_else(not_a_word)?;
            Some(Fault::from_stored(class, row.try_get::<Option<String>, _>("fault")?.unwrap_or_default()))
        }
        None => None,
    };
    Ok(StoredResult {
        seq,
        at: time(row.try_get("ended_at")?),
        state: EndState::parse(word).ok_or_else(not_a_word)?,
        attempt: u16::try_from(row.try_get::<i32, _>("attempt")?).map_err(|_| not_a_word())?,
        fault,
        body: bytes(row, "body")?,
    })
}

fn text(row: &PgRow, column: &str) -> sqlx::Result<Arc<str>> {
    row.try_get::<&str, _>(column).map(Arc::from)
}

fn bytes(row: &PgRow, column: &str) -> sqlx::Result<Bytes> {
    row.try_get::<&[u8], _>(column).map(Bytes::copy_from_slice)
}

fn not_a_word() -> sqlx::Error {
    sqlx::Error::Decode("an unknown word".into())
}
