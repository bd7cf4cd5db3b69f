//! Idempotency records as rows: reads, writes, lists and sweeps them. State transitions are decided
//! elsewhere.

use bytes::Bytes;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};
use tidegate_core::Time;
use tidegate_core::bounds::RECORDS_COUNTED_MAX;
use tidegate_core::shared::record::{self, HolderToken, OnLapse, Record, RecordStage};
use tidegate_store::RecordPage;

use super::row_checksum::RowChecksum;
use super::rows::{bytes, damaged, micros, time};

/// The rows that one page of a list scans, however few of them are live.
const LOOKED_AT_MAX: usize = 1_000;

fn sum_of<A>(key: &str, record: &Record<A>) -> RowChecksum {
    let until = match &record.stage {
        RecordStage::Processing { until } => Some(micros(*until)),
        RecordStage::Completed(_) => None,
    };
    RowChecksum::of("records")
        .text(key)
        .bytes(&record.fingerprint)
        .bytes(&record.token.0)
        .number(micros(record.created))
        .number(micros(record.expires))
        .number((record.on_lapse == OnLapse::Hold).into())
        .maybe_number(until)
}

fn checksum_mismatch() -> rusqlite::Error {
    damaged("an idempotency record is not what was written".into())
}

/// Reads a row of `fingerprint, token, created, expires, holds, until` and, last, a response.
fn read<A>(
    row: &Row<'_>,
    answer: impl FnOnce(&Row<'_>) -> rusqlite::Result<A>,
) -> rusqlite::Result<Record<A>> {
    let answered = row.get_ref(6)?.data_type() != Type::Null;
    Ok(Record {
        fingerprint: row.get(0)?,
        token: HolderToken(row.get(1)?),
        created: time(row, 2)?,
        expires: time(row, 3)?,
        on_lapse: if row.get(4)? { OnLapse::Hold } else { OnLapse::TakeOver },
        stage: if answered {
            RecordStage::Completed(answer(row)?)
        } else {
            RecordStage::Processing { until: time(row, 5)? }
        },
    })
}

fn length(row: &Row<'_>) -> rusqlite::Result<usize> {
    Ok(usize::try_from(row.get::<_, i64>(6)?).unwrap_or_default())
}

/// Counts the records, up to a bound.
pub(super) fn count_records(sql: &Connection) -> rusqlite::Result<u64> {
    sql.prepare_cached("SELECT count(*) FROM (SELECT 1 FROM records LIMIT ?1)")?
        .query_row([RECORDS_COUNTED_MAX], |row| row.get::<_, i64>(0))
        .map(i64::cast_unsigned)
}

/// Reads the record under a key.
pub(super) fn record(sql: &Connection, key: &str) -> rusqlite::Result<Option<Record<Bytes>>> {
    let checked = |row: &Row<'_>| {
        let record = read(row, |row| bytes(row, 6))?;
        let answer: &[u8] = match &record.stage {
            RecordStage::Completed(answer) => answer,
            RecordStage::Processing { .. } => &[],
        };
        let is_whole = sum_of(key, &record).matches(row.get(7)?, Some(answer));
        if is_whole { Ok(record) } else { Err(checksum_mismatch()) }
    };
    sql.prepare_cached(
        "SELECT fingerprint, token, created, expires, holds, until, answer, sum FROM records WHERE key = ?1",
    )?
    .query_row([key], checked)
    .optional()
}

/// Writes a record under its key; `None` removes it.
pub(super) fn keep_record(
    sql: &Connection,
    key: &str,
    record: Option<&Record<Bytes>>,
) -> rusqlite::Result<()> {
    let Some(record) = record else {
        return sql.prepare_cached("DELETE FROM records WHERE key = ?1")?.execute([key]).map(drop);
    };
    let (until, answer) = match &record.stage {
        RecordStage::Processing { until } => (Some(micros(*until)), None),
        RecordStage::Completed(answer) => (None, Some(&**answer)),
    };
    sql.prepare_cached(
        "INSERT INTO records (key, fingerprint, token, created, expires, holds, until, answer, sum)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT (key) DO UPDATE SET fingerprint = ?2, token = ?3, created = ?4, expires = ?5, holds = ?6,
             until = ?7, answer = ?8, sum = ?9",
    )?
    .execute((
        key,
        record.fingerprint,
        record.token.0,
        micros(record.created),
        micros(record.expires),
        record.on_lapse == OnLapse::Hold,
        until,
        answer,
        sum_of(key, record).finish(answer.unwrap_or_default()),
    ))
    .map(drop)
}

/// Lists a page of the live records, by key.
pub(super) fn list_records(
    sql: &Connection,
    after: Option<&str>,
    most: usize,
    now: Time,
) -> rusqlite::Result<RecordPage> {
    let mut some = sql.prepare_cached(
        "SELECT fingerprint, token, created, expires, holds, until, length(answer), key, sum FROM records
         WHERE key > ?1 ORDER BY key LIMIT ?2",
    )?;
    let mut rows = some.query((after.unwrap_or_default(), LOOKED_AT_MAX as i64))?;
    let (mut page, mut looked_at, mut last) = (RecordPage::default(), 0, None);
    while let Some(row) = rows.next()? {
        if page.records.len() == most {
            page.next = last;
            return Ok(page);
        }
        let (key, found) = (row.get::<_, String>(7)?, read(row, length)?);
        if !sum_of(&key, &found).matches(row.get(8)?, None) {
            return Err(checksum_mismatch());
        }
        looked_at += 1;
        last = Some(key.clone());
        if record::is_live(&found, now) {
            page.records.push((key, found));
        }
    }
    page.next = last.filter(|_| looked_at == LOOKED_AT_MAX);
    Ok(page)
}

/// Removes at most `most` expired records, as `record::is_swept` decides.
pub(super) fn remove_expired(sql: &Connection, now: Time, most: usize) -> rusqlite::Result<usize> {
    sql.prepare_cached(
        "DELETE FROM records WHERE rowid IN (
             SELECT rowid FROM records WHERE expires >= 0 AND expires < ?1
                 AND (answer IS NOT NULL OR (expires <= ?2 AND until <= ?1))
             ORDER BY expires LIMIT ?3)",
    )?
    .execute((
        micros(now),
        micros(now.before(record::ABANDONED_RETENTION)),
        i64::try_from(most).unwrap_or(i64::MAX),
    ))
}
