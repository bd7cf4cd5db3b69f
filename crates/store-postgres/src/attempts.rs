//! Attempts whose job ends elsewhere, as a table for queries in SQL. They arrive with appends.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tidegate_core::id::Partition;
use tidegate_core::{Fence, Seq};
use tidegate_store::Result;
use tidegate_store::attempt::{AttemptState, StoredAttempt};

use crate::costs::Columns;
use crate::errors::nothing_changed;
use crate::session::{RetrySafety, Statement};
use crate::{PostgresStore, rows};

const READ: &str = "
SELECT seq, fence, number, at, ended_at, state, external_id, cost, memo FROM attempts
WHERE partition = $1 AND seq = ANY ($2) ORDER BY seq, fence";

/// Merges the rows of each claim: one statement writes a row once.
fn merge_rows(attempts: &[StoredAttempt]) -> Vec<StoredAttempt> {
    let mut merged: BTreeMap<_, StoredAttempt> = BTreeMap::new();
    for attempt in attempts {
        let claim = (attempt.seq, attempt.fence);
        let row = match merged.remove(&claim) {
            Some(earlier) => earlier.merge(attempt.clone()),
            None => attempt.clone(),
        };
        merged.insert(claim, row);
    }
    merged.into_values().collect()
}

/// Binds attempts as the columns of an append.
pub(crate) fn bind_attempts<'q>(append: Statement<'q>, attempts: &[StoredAttempt]) -> Statement<'q> {
    let attempts = merge_rows(attempts);
    let column = Columns(&attempts);
    append
        .bind(column.of(|attempt| attempt.seq.0.cast_signed()))
        .bind(column.of(|attempt| attempt.fence.0.cast_signed()))
        .bind(column.of(|attempt| i32::from(attempt.number)))
        .bind(column.of(|attempt| rows::micros(attempt.at)))
        .bind(column.of(|attempt| attempt.ended_at.map(rows::micros)))
        .bind(column.of(|attempt| attempt.state.as_str()))
        .bind(column.of(|attempt| attempt.external_id.as_deref().map(rows::storable)))
        .bind(column.of(|attempt| attempt.cost.map(u64::cast_signed)))
        .bind(column.of(|attempt| attempt.memo.to_vec()))
}

impl PostgresStore {
    pub(crate) async fn attempts_of(
        &self,
        partition: Partition,
        seqs: Vec<Seq>,
    ) -> Result<Vec<Vec<StoredAttempt>>> {
        let asked: Vec<i64> = seqs.iter().map(|seq| seq.0.cast_signed()).collect();
        let read = |read: Statement<'static>| read.bind(i32::from(partition)).bind(asked.clone());
        let mut found: BTreeMap<Seq, Vec<StoredAttempt>> = BTreeMap::new();
        for row in self.sessions.rows(RetrySafety::Harmless, READ, read).await? {
            let attempt = attempt(&row).map_err(|cause| nothing_changed(&self.sessions.place, &cause))?;
            found.entry(attempt.seq).or_default().push(attempt);
        }
        for attempts in found.values_mut() {
            attempts.sort_unstable_by_key(|attempt| attempt.fence);
        }
        Ok(seqs.iter().map(|seq| found.get(seq).cloned().unwrap_or_default()).collect())
    }
}

fn attempt(row: &PgRow) -> sqlx::Result<StoredAttempt> {
    let state = AttemptState::parse(row.try_get("state")?);
    let unknown = || sqlx::Error::Decode("an attempt has an unknown state".into());
    Ok(StoredAttempt {
        seq: Seq(row.try_get::<i64, _>("seq")?.cast_unsigned()),
        fence: Fence(row.try_get::<i64, _>("fence")?.cast_unsigned()),
        number: u16::try_from(row.try_get::<i32, _>("number")?).unwrap_or(u16::MAX),
        at: rows::time(row.try_get("at")?),
        ended_at: row.try_get::<Option<i64>, _>("ended_at")?.map(rows::time),
        state: state.ok_or_else(unknown)?,
        external_id: row.try_get::<Option<&str>, _>("external_id")?.map(Arc::from),
        cost: row.try_get::<Option<i64>, _>("cost")?.map(i64::cast_unsigned),
        memo: Bytes::from(row.try_get::<Vec<u8>, _>("memo")?),
    })
}
