//! The audit log on SQLite, in the same file as the shared records. Each entry is one step of the
//! writer, durable before it returns.

use std::sync::Arc;

use rusqlite::{Connection, Row};
use tidegate_store::audit::{AuditEntry, AuditId, AuditPage, AuditRetention, check_entry};
use tidegate_store::{AuditLog, StoreFuture};

use super::row_checksum::RowChecksum;
use super::rows::{damaged, micros, time};
use super::writer::StepContext;
use super::{EmbeddedStore, SHARED_IN};

const ADD: &str = "INSERT OR IGNORE INTO audit_log
    (at, tie, node, who, action, kind, subject, detail, reason, status, sum)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
const DROP_OLD: &str = "DELETE FROM audit_log WHERE at < ?1";
const DROP_MORE: &str = "DELETE FROM audit_log WHERE (at, tie) <=
    (SELECT at, tie FROM audit_log ORDER BY at DESC, tie DESC LIMIT 1 OFFSET ?1)";
const PAGE: &str = "SELECT at, tie, node, who, action, kind, subject, detail, reason, status, sum
    FROM audit_log WHERE (at, tie) < (?1, ?2) ORDER BY at DESC, tie DESC LIMIT ?3";

impl AuditLog for EmbeddedStore {
    fn add_audit_entry(&self, entry: AuditEntry, retention: AuditRetention) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            check_entry(&entry)?;
            let file = self.partition(SHARED_IN).await?;
            let step = move |desk: &mut StepContext<'_>| add(desk.sql, &entry, retention).map(Ok);
            file.write_and_mark(1, step, |()| {}).await
        })
    }

    fn audit_entries(&self, before: Option<AuditId>, most: usize) -> StoreFuture<'_, AuditPage> {
        Box::pin(async move {
            let file = self.partition(SHARED_IN).await?;
            file.read(move |sql| page(sql, before, most)).await
        })
    }
}

fn add(sql: &Connection, entry: &AuditEntry, retention: AuditRetention) -> rusqlite::Result<()> {
    sql.prepare_cached(ADD)?.execute((
        micros(entry.id.at),
        entry.id.tie,
        &*entry.node,
        &*entry.by,
        &*entry.action,
        &*entry.kind,
        &*entry.subject,
        entry.detail.as_deref(),
        entry.reason.as_deref(),
        entry.status,
        sum_of_entry(entry).finish(&[]),
    ))?;
    sql.prepare_cached(DROP_OLD)?.execute([micros(retention.since)])?;
    sql.prepare_cached(DROP_MORE)?.execute([row_count(retention.entries)]).map(drop)
}

fn page(sql: &Connection, before: Option<AuditId>, most: usize) -> rusqlite::Result<AuditPage> {
    let (at, tie) = before.map_or((i64::MAX, i64::MAX), |id| (micros(id.at), id.tie.into()));
    let mut entries = sql.prepare_cached(PAGE)?;
    let found = entries.query_map((at, tie, row_count(most.saturating_add(1))), read_entry)?;
    Ok(AuditPage::cut(found.collect::<rusqlite::Result<_>>()?, most))
}

fn read_entry(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    let text = |column| row.get::<_, Arc<str>>(column);
    let entry = AuditEntry {
        id: AuditId { at: time(row, 0)?, tie: row.get(1)? },
        node: text(2)?,
        by: text(3)?,
        action: text(4)?,
        kind: text(5)?,
        subject: text(6)?,
        detail: row.get(7)?,
        reason: row.get(8)?,
        status: row.get(9)?,
    };
    if sum_of_entry(&entry).matches(row.get(10)?, Some(&[])) {
        return Ok(entry);
    }
    Err(damaged(format!("entry {} of the audit log is not what was written", entry.id)))
}

fn sum_of_entry(entry: &AuditEntry) -> RowChecksum {
    let AuditEntry { id, node, by, action, kind, subject, detail, reason, status } = entry;
    let numbers =
        RowChecksum::of("audit_log").number(micros(id.at)).number(id.tie.into()).number((*status).into());
    let texts = [node, by, action, kind, subject].into_iter().fold(numbers, |sum, text| sum.text(text));
    texts.maybe_text(detail.as_deref()).maybe_text(reason.as_deref())
}

fn row_count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
