//! The audit log as JSON: what the store keeps, of all nodes.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_store::audit::{AuditEntry, AuditId};

use super::HandlerResult;
use crate::edge::query::Query;
use crate::error::Error;
use crate::state::ServerState;
use crate::wire::cursor;
use crate::wire::time::Timestamp;

/// The list that its cursors belong to.
const LIST: &str = "audit";

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
    let before = query.read("cursor", |text| {
        AuditId::parse(&cursor::read_text(text, LIST)?).ok_or_else(cursor::bad_cursor)
    });
    query.finish()?;
    let page = server.store.audit_entries(before, limit).await.map_err(Error::from)?;
    let next_cursor = page.next.map(|next| cursor::write_text(&next.to_string(), LIST));
    let entries = page.entries.into_iter().map(AuditEntryOut::from).collect();
    Ok(Json(AuditOut { entries, next_cursor }).into_response())
}
