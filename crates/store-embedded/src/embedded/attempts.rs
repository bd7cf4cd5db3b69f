//! Attempts whose job ends elsewhere, as rows: each is written as a whole, and verified on reading.

use std::collections::BTreeMap;

use rusqlite::Connection;
use tidegate_core::{Fence, Seq};
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::codec;

use super::row_checksum::RowChecksum;
use super::rows;

/// Inserts attempts, each merged onto an earlier row of the same claim.
pub(super) fn insert(sql: &Connection, attempts: &[StoredAttempt]) -> rusqlite::Result<()> {
    let mut insert = sql
        .prepare_cached("INSERT OR REPLACE INTO attempts (seq, fence, body, sum) VALUES (?1, ?2, ?3, ?4)")?;
    for attempt in attempts {
        // One that is damaged must not hold up the log: nothing is decided by it.
        let earlier = stored(sql, attempt.seq)?.remove(&attempt.fence).and_then(Result::ok);
        let merged = earlier.map(|earlier| earlier.merge(attempt.clone()));
        let body = codec::encode_attempt(merged.as_ref().unwrap_or(attempt));
        let (seq, fence) = (attempt.seq.0.cast_signed(), attempt.fence.0.cast_signed());
        insert.execute((seq, fence, &body[..], sum(seq, fence).finish(&body)))?;
    }
    Ok(())
}

/// Returns the attempts of each operation, by fence; those in `newer` are merged onto what SQLite
/// has.
pub(super) fn read(
    sql: &Connection,
    seqs: &[Seq],
    newer: &[StoredAttempt],
) -> rusqlite::Result<Vec<Vec<StoredAttempt>>> {
    let mut found = Vec::with_capacity(seqs.len());
    for seq in seqs {
        let own = stored(sql, *seq)?.into_iter();
        let own = own.map(|(fence, row)| row.map(|row| (fence, row)));
        let mut own = own.collect::<rusqlite::Result<BTreeMap<_, _>>>()?;
        for attempt in newer.iter().filter(|attempt| attempt.seq == *seq) {
            let merged = match own.remove(&attempt.fence) {
                Some(earlier) => earlier.merge(attempt.clone()),
                None => attempt.clone(),
            };
            own.insert(attempt.fence, merged);
        }
        found.push(own.into_values().collect());
    }
    Ok(found)
}

/// A row, or the error when it is damaged.
type CheckedRow = rusqlite::Result<StoredAttempt>;

/// The attempts of an operation in SQLite.
fn stored(sql: &Connection, seq: Seq) -> rusqlite::Result<BTreeMap<Fence, CheckedRow>> {
    let mut find = sql.prepare_cached("SELECT fence, body, sum FROM attempts WHERE seq = ?1")?;
    let mut found = BTreeMap::new();
    let mut walk = find.query([seq.0.cast_signed()])?;
    while let Some(row) = walk.next()? {
        let (fence, body): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let is_whole = sum(seq.0.cast_signed(), fence).matches(row.get(2)?, Some(&body));
        let fence = Fence(fence.cast_unsigned());
        let attempt = codec::decode_attempt(seq, fence, &body).ok().filter(|_| is_whole);
        let damaged = || rows::damaged(format!("an attempt of operation {} is not what was written", seq.0));
        found.insert(fence, attempt.ok_or_else(damaged));
    }
    Ok(found)
}

fn sum(seq: i64, fence: i64) -> RowChecksum {
    RowChecksum::of("attempts").number(seq).number(fence)
}
