//! The audit log as JSON: what the store keeps, of all nodes; all of it, or the commands that
//! changed one operation.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_core::{OperationId, Time};
use tidegate_store::AuditLog;
use tidegate_store::audit::{AuditEntry, AuditId, AuditPage};

use super::HandlerResult;
use crate::audit::detail::changed_ids;
use crate::edge::query::{Query, bad_parameter};
use crate::error::{Error, Result};
use crate::state::ServerState;
use crate::wire::cursor;
use crate::wire::time::Timestamp;

/// The list that its cursors belong to.
const LIST: &str = "audit";
/// The entries that are read at once to find those about one operation, and how often one call does
/// that: the next page searches on.
const SEARCHED: usize = 200;
const SEARCHES_MAX: usize = 10;
/// How far the clock of the node that accepted an operation may be ahead of another one's.
const CLOCK_SLACK: Duration = Duration::from_secs(600);

/// A page of commands of operators, newest first.
#[derive(Serialize)]
struct AuditOut {
    entries: Vec<AuditEntryOut>,
    next_cursor: Option<String>,
}

/// One command.
#[derive(Serialize)]
struct AuditEntryOut {
    id: String,
    at: Timestamp,
    node: Arc<str>,
    by: Arc<str>,
    action: Arc<str>,
    kind: Arc<str>,
    subject: Arc<str>,
    detail: Option<Arc<str>>,
    reason: Option<Arc<str>>,
    status: u16,
}

impl From<AuditEntry> for AuditEntryOut {
    fn from(entry: AuditEntry) -> Self {
        let AuditEntry { id, node, by, action, kind, subject, detail, reason, status } = entry;
        let (id, at) = (id.to_string(), Timestamp(id.at));
        Self { id, at, node, by, action, kind, subject, detail, reason, status }
    }
}

pub(super) async fn list(State(server): State<Arc<ServerState>>, mut query: Query) -> HandlerResult {
    let limit = query.limit();
    let operation = query.read("operation", |text| {
        text.parse::<OperationId>().map_err(|_| bad_parameter("operation", "must be the id of an operation"))
    });
    let list = operation.map_or_else(|| LIST.to_owned(), |id| format!("{LIST} {id}"));
    let before = query.read("cursor", |text| {
        AuditId::parse(&cursor::read_text(text, &list)?).ok_or_else(cursor::bad_cursor)
    });
    query.finish()?;
    let page = match operation {
        Some(id) => find_about(&*server.store, id, before, limit).await?,
        None => server.store.audit_entries(before, limit).await.map_err(Error::from)?,
    };
    let next_cursor = page.next.map(|next| cursor::write_text(&next.to_string(), &list));
    let entries = page.entries.into_iter().map(AuditEntryOut::from).collect();
    Ok(Json(AuditOut { entries, next_cursor }).into_response())
}

/// Finds the entries about one operation, among those since it was accepted. The page may have
/// fewer than fit, and others follow.
async fn find_about(
    log: &(impl AuditLog + ?Sized),
    id: OperationId,
    mut before: Option<AuditId>,
    limit: usize,
) -> Result<AuditPage> {
    let accepted = Time::from_millis(id.accepted_at_millis()).before(CLOCK_SLACK);
    let name = id.to_string();
    let mut found = AuditPage::default();
    for _ in 0..SEARCHES_MAX {
        let page = log.audit_entries(before, SEARCHED).await?;
        for entry in page.entries {
            if entry.id.at < accepted {
                return Ok(AuditPage { next: None, ..found });
            }
            found.next = Some(entry.id);
            if is_about(&entry, &name) {
                found.entries.push(entry);
                if found.entries.len() == limit {
                    return Ok(found);
                }
            }
        }
        if page.next.is_none() {
            return Ok(AuditPage { next: None, ..found });
        }
        before = page.next;
    }
    Ok(found)
}

/// Whether an entry names an operation: it is about that one, or about several with that among
/// them.
fn is_about(entry: &AuditEntry, id: &str) -> bool {
    let detail = entry.detail.as_deref().unwrap_or_default();
    *entry.subject == *id || changed_ids(detail).1.contains(&id)
}
