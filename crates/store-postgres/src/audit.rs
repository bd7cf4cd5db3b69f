//! The audit log as a table. An entry has an id of its own, so it may be sent again.

use std::sync::Arc;

use sqlx::postgres::PgRow;
use tidegate_store::audit::{AuditEntry, AuditId, AuditPage, AuditRetention, check_entry};
use tidegate_store::{AuditLog, Result, StoreFuture};

use crate::errors::unreadable;
use crate::session::{RetrySafety, Statement};
use crate::{PostgresStore, rows};

const ADD: &str = "SELECT add_audit_entry($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
const PAGE: &str = "SELECT at, tie, node, who, action, kind, subject, detail, reason, status
    FROM audit_log WHERE (at, tie) < ($1, $2) ORDER BY at DESC, tie DESC LIMIT $3";

impl PostgresStore {
    async fn write_audit_entry(&self, entry: &AuditEntry, retention: AuditRetention) -> Result<()> {
        check_entry(entry)?;
        let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
        let bind = |q: Statement<'static>| {
            q.bind(rows::micros(entry.id.at))
                .bind(i64::from(entry.id.tie))
                .bind(entry.node.to_string())
                .bind(entry.by.to_string())
                .bind(entry.action.to_string())
                .bind(entry.kind.to_string())
                .bind(entry.subject.to_string())
                .bind(text(&entry.detail))
                .bind(text(&entry.reason))
                .bind(i32::from(entry.status))
                .bind(rows::micros(retention.since))
                .bind(rows::count(retention.entries))
        };
        self.sessions.row(RetrySafety::Harmless, ADD, bind).await.map(drop)
    }

    async fn read_audit_page(&self, before: Option<AuditId>, most: usize) -> Result<AuditPage> {
        let (at, tie) = before.map_or((i64::MAX, i64::MAX), |id| (rows::micros(id.at), id.tie.into()));
        let limit = rows::count(most.saturating_add(1));
        let bind = |q: Statement<'static>| q.bind(at).bind(tie).bind(limit);
        let found = self.sessions.rows(RetrySafety::Harmless, PAGE, bind).await?;
        let entries = found.iter().map(|row| self.read_audit_entry(row)).collect::<Result<_>>()?;
        Ok(AuditPage::cut(entries, most))
    }

    fn read_audit_entry(&self, row: &PgRow) -> Result<AuditEntry> {
        let sessions = &self.sessions;
        let text = |column| sessions.column::<&str>(row, column).map(Arc::from);
        let some_text = |column| Ok(sessions.column::<Option<&str>>(row, column)?.map(Arc::from));
        let strange = |_| unreadable(&sessions.place, "holds an impossible number in the audit log");
        Ok(AuditEntry {
            id: AuditId {
                at: rows::time(sessions.column(row, 0)?),
                tie: u32::try_from(sessions.column::<i64>(row, 1)?).map_err(strange)?,
            },
            node: text(2)?,
            by: text(3)?,
            action: text(4)?,
            kind: text(5)?,
            subject: text(6)?,
            detail: some_text(7)?,
            reason: some_text(8)?,
            status: u16::try_from(sessions.column::<i32>(row, 9)?).map_err(strange)?,
        })
    }
}

impl AuditLog for PostgresStore {
    fn add_audit_entry(&self, entry: AuditEntry, retention: AuditRetention) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.write_audit_entry(&entry, retention).await })
    }

    fn audit_entries(&self, before: Option<AuditId>, most: usize) -> StoreFuture<'_, AuditPage> {
        Box::pin(self.read_audit_page(before, most))
    }
}
