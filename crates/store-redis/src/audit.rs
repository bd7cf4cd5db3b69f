//! The audit log: a sorted set of entries, each its id and JSON, in the order of their bytes. An
//! entry is added by one script, which also removes old ones; a page is one command.

use std::borrow::Cow;
use std::sync::Arc;

use redis::cmd;
use serde::{Deserialize, Serialize};
use tidegate_store::audit::{AuditEntry, AuditId, AuditPage, AuditRetention, check_entry};
use tidegate_store::{AuditLog, Error, Result, StoreErrorKind, StoreFuture};

use crate::errors::{unreadable, unusable};
use crate::scripts::{self, ScriptCall};
use crate::{RedisStore, reply};

#[derive(Serialize, Deserialize)]
struct AuditLine<'a> {
    #[serde(borrow)]
    node: Cow<'a, str>,
    #[serde(borrow)]
    by: Cow<'a, str>,
    #[serde(borrow)]
    action: Cow<'a, str>,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    subject: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    detail: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    status: u16,
}

fn encode_entry(entry: &AuditEntry) -> Result<String> {
    let line = AuditLine {
        node: Cow::Borrowed(&entry.node),
        by: Cow::Borrowed(&entry.by),
        action: Cow::Borrowed(&entry.action),
        kind: Cow::Borrowed(&entry.kind),
        subject: Cow::Borrowed(&entry.subject),
        detail: entry.detail.as_deref().map(Cow::Borrowed),
        reason: entry.reason.as_deref().map(Cow::Borrowed),
        status: entry.status,
    };
    let json = serde_json::to_string(&line).map_err(|cause| {
        Error::new(StoreErrorKind::Invalid, "an entry of the audit log cannot be written").with_source(cause)
    })?;
    Ok(format!("{} {json}", entry.id))
}

fn decode_entry(text: &str) -> Result<AuditEntry> {
    let wrong = || unreadable("the audit log in Redis holds an entry that this program did not write");
    let (id, json) = text.split_once(' ').ok_or_else(wrong)?;
    let line: AuditLine<'_> = serde_json::from_str(json).map_err(|_| wrong())?;
    Ok(AuditEntry {
        id: AuditId::parse(id).ok_or_else(wrong)?,
        node: line.node.into(),
        by: line.by.into(),
        action: line.action.into(),
        kind: line.kind.into(),
        subject: line.subject.into(),
        detail: line.detail.map(Arc::from),
        reason: line.reason.map(Arc::from),
        status: line.status,
    })
}

impl RedisStore {
    async fn write_audit_entry(&self, entry: &AuditEntry, retention: AuditRetention) -> Result<()> {
        check_entry(entry)?;
        let call = ScriptCall::new(&scripts::AUDIT_ADD, [self.keys.audit()])
            .with_arg(encode_entry(entry)?)
            .with_arg(retention.entries)
            .with_arg(AuditId { at: retention.since, tie: 0 }.to_string());
        self.run_script("add to the audit log", &call).await?;
        self.wait_for_replicas(&self.keys.audit(), || "the entry of the audit log".to_owned()).await
    }

    async fn read_audit_page(&self, before: Option<AuditId>, most: usize) -> Result<AuditPage> {
        let from = before.map_or_else(|| "+".to_owned(), |id| format!("({id}"));
        let limit = i64::try_from(most.saturating_add(1)).unwrap_or(i64::MAX);
        let mut ask = cmd("ZREVRANGEBYLEX");
        ask.arg(self.keys.audit()).arg(from).arg("-").arg("LIMIT").arg(0).arg(limit);
        let answer =
            self.connection.send(&ask).await.map_err(|failed| unusable(self.connection.name(), failed))?;
        let lines: Vec<String> = reply::parsed(answer)?;
        let entries = lines.iter().map(|line| decode_entry(line)).collect::<Result<_>>()?;
        Ok(AuditPage::cut(entries, most))
    }
}

impl AuditLog for RedisStore {
    fn add_audit_entry(&self, entry: AuditEntry, retention: AuditRetention) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.write_audit_entry(&entry, retention).await })
    }

    fn audit_entries(&self, before: Option<AuditId>, most: usize) -> StoreFuture<'_, AuditPage> {
        Box::pin(self.read_audit_page(before, most))
    }
}
