//! Idempotency records as rows: each verb is one statement. A claim recognises itself by its token
//! and may be sent again; the other verbs would get another response the second time.

use std::time::Duration;

use bytes::Bytes;
use sqlx::postgres::PgRow;
use tidegate_core::shared::record::{
    self, ABANDONED_RETENTION, ForgetOutcome, ForgetTarget, HolderToken, OnLapse, Record, RecordClaim,
    RecordClaimOutcome, RecordStage,
};
use tidegate_store::{RecordPage, Result};

use crate::session::{RetrySafety, Statement};
use crate::{PostgresStore, checks, rows};

/// The fewest and the most rows that one page of a list scans, however few of them are live.
const LOOKED_AT: (usize, usize) = (100, 1_000);

const CLAIM: &str = "SELECT verdict, until, answer FROM claim_record($1, $2, $3, $4, $5, $6, $7)";
const COMPLETE: &str = "UPDATE records SET answer = $3, until = NULL
    WHERE key = $1 AND token = $2 AND answer IS NULL RETURNING 1";
const RELEASE: &str = "DELETE FROM records WHERE key = $1 AND token = $2 AND answer IS NULL RETURNING 1";
const RENEW: &str = "UPDATE records SET until = bits(later(moment($4), $3))
    WHERE key = $1 AND token = $2 AND answer IS NULL RETURNING 1";
const FORGET: &str = "SELECT forget_record($1, $2, $3)";
const LOOK: &str = "SELECT bits(moment($2)), fingerprint, token, created, expires, holds, until, answer
    FROM records WHERE key = $1";
const LIST: &str = "SELECT (SELECT bits(moment($3))), fingerprint, token, created, expires, holds, until,
    length(answer), key FROM records WHERE key > $1 ORDER BY key LIMIT $2";
/// The clock is read once, so that the index can be used.
const SWEEP: &str = "
WITH gone AS (
    DELETE FROM records WHERE key IN (
        SELECT key FROM records
        WHERE expires >= 0 AND expires < (SELECT bits(least(moment($1), 9223372036854775807)))
            AND (answer IS NOT NULL OR (unsigned(until) <= (SELECT moment($1))
                AND expires <= (SELECT bits(least(moment($1), 9223372036854775807))) - $3))
        ORDER BY expires LIMIT $2 FOR UPDATE SKIP LOCKED)
    RETURNING 1
) SELECT count(*) FROM gone";

impl PostgresStore {
    pub(super) async fn claim(&self, key: &str, claim: RecordClaim) -> Result<RecordClaimOutcome<Bytes>> {
        checks::name_can_be_kept(key)?;
        let clock = self.clock();
        let row = self
            .sessions
            .row(RetrySafety::Harmless, CLAIM, |q| {
                let q = q.bind(key).bind(claim.fingerprint).bind(claim.token.0);
                let q = q.bind(rows::span(claim.lease)).bind(rows::span(claim.ttl));
                q.bind(claim.on_lapse == OnLapse::Hold).bind(clock)
            })
            .await?;
        match self.sessions.column(&row, 0)? {
            "yours" => Ok(RecordClaimOutcome::Granted { taken_over: false }),
            "taken over" => Ok(RecordClaimOutcome::Granted { taken_over: true }),
            "processing" => {
                Ok(RecordClaimOutcome::Processing { until: rows::time(self.sessions.column(&row, 1)?) })
            }
            "completed" => {
                Ok(RecordClaimOutcome::Completed(Bytes::copy_from_slice(self.sessions.column(&row, 2)?)))
            }
            "unknown" => Ok(RecordClaimOutcome::Unknown),
            "conflict" => Ok(RecordClaimOutcome::Conflict),
            _ => Err(self.unexpected_reply("a claim")),
        }
    }

    pub(super) async fn complete(&self, key: &str, holder: HolderToken, answer: &[u8]) -> Result<bool> {
        self.affects_row(COMPLETE, |q| q.bind(key).bind(holder.0).bind(answer)).await
    }

    pub(super) async fn release_claim(&self, key: &str, holder: HolderToken) -> Result<bool> {
        self.affects_row(RELEASE, |q| q.bind(key).bind(holder.0)).await
    }

    pub(super) async fn renew_claim(&self, key: &str, holder: HolderToken, ttl: Duration) -> Result<bool> {
        let clock = self.clock();
        self.affects_row(RENEW, |q| q.bind(key).bind(holder.0).bind(rows::span(ttl)).bind(clock)).await
    }

    pub(super) async fn forget(&self, key: &str, what: ForgetTarget) -> Result<ForgetOutcome> {
        checks::name_can_be_kept(key)?;
        let (is_answer, clock) = (what == ForgetTarget::Answer, self.clock());
        let row = self
            .sessions
            .row(RetrySafety::Unsafe, FORGET, |q| q.bind(key).bind(is_answer).bind(clock))
            .await?;
        match self.sessions.column(&row, 0)? {
            "gone" => Ok(ForgetOutcome::Gone),
            "absent" => Ok(ForgetOutcome::Absent),
            "otherwise" => Ok(ForgetOutcome::Mismatch),
            _ => Err(self.unexpected_reply("forgetting a record")),
        }
    }

    pub(super) async fn look_at_record(&self, key: &str) -> Result<Option<Record<Bytes>>> {
        checks::name_can_be_kept(key)?;
        let clock = self.clock();
        let found = self.sessions.rows(RetrySafety::Harmless, LOOK, |q| q.bind(key).bind(clock)).await?;
        let Some(row) = found.first() else { return Ok(None) };
        let answer: Option<&[u8]> = self.sessions.column(row, 7)?;
        self.read_live_record(row, answer.map(Bytes::copy_from_slice))
    }

    pub(super) async fn page_of_records(&self, after: &str, most: usize) -> Result<RecordPage> {
        checks::name_can_be_kept(after)?;
        let (limit, clock) = (most.clamp(LOOKED_AT.0, LOOKED_AT.1), self.clock());
        let found = self
            .sessions
            .rows(RetrySafety::Harmless, LIST, |q| q.bind(after).bind(rows::count(limit)).bind(clock))
            .await?;
        let (mut page, mut last) = (RecordPage::default(), None);
        for row in &found {
            if page.records.len() == most {
                page.next = last;
                return Ok(page);
            }
            let key: String = self.sessions.column(row, 8)?;
            last = Some(key.clone());
            let length: Option<i32> = self.sessions.column(row, 7)?;
            let length = length.map(|length| usize::try_from(length).unwrap_or_default());
            page.records.extend(self.read_live_record(row, length)?.map(|record| (key, record)));
        }
        page.next = last.filter(|_| found.len() == limit);
        Ok(page)
    }

    pub(super) async fn sweep_expired(&self, most: usize) -> Result<usize> {
        let (clock, most, left) = (self.clock(), rows::count(most), rows::span(ABANDONED_RETENTION));
        let row =
            self.sessions.row(RetrySafety::Harmless, SWEEP, |q| q.bind(clock).bind(most).bind(left)).await?;
        Ok(usize::try_from(self.sessions.column::<i64>(&row, 0)?).unwrap_or_default())
    }

    /// Reads the record of a row that begins with the store's time; `None` when it has expired.
    fn read_live_record<A>(&self, row: &PgRow, answer: Option<A>) -> Result<Option<Record<A>>> {
        let time = |column| Ok(rows::time(self.sessions.column(row, column)?));
        let stage = match answer {
            Some(answer) => RecordStage::Completed(answer),
            None => RecordStage::Processing { until: time(6)? },
        };
        let found = Record {
            fingerprint: self.sessions.column(row, 1)?,
            token: HolderToken(self.sessions.column(row, 2)?),
            created: time(3)?,
            expires: time(4)?,
            on_lapse: if self.sessions.column(row, 5)? { OnLapse::Hold } else { OnLapse::TakeOver },
            stage,
        };
        let now = time(0)?;
        Ok(Some(found).filter(|found| record::is_live(found, now)))
    }

    /// Returns whether a statement affected a row.
    async fn affects_row<'q>(
        &self,
        sql: &'static str,
        bind: impl Fn(Statement<'q>) -> Statement<'q>,
    ) -> Result<bool> {
        Ok(!self.sessions.rows(RetrySafety::Unsafe, sql, bind).await?.is_empty())
    }
}
