//! The audit log as JSON.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};

use super::HandlerResult;
use crate::audit::AuditEntry;
use crate::edge::query::Query;
use crate::state::SharedPartition;

/// Commands of operators, newest first.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct AuditOut {
    pub entries: Vec<AuditEntry>,
}

impl AuditOut {
    /// Merges what the owners of several partitions remember. A node that owns several says the
    /// same for each.
    pub(crate) fn merge(parts: Vec<Self>, limit: usize) -> Self {
        let mut entries: Vec<_> = parts.into_iter().flat_map(|part| part.entries).collect();
        entries.sort_unstable_by(|a, b| b.id.cmp(&a.id));
        entries.dedup_by(|a, b| a.id == b.id);
        entries.truncate(limit);
        Self { entries }
    }
}

pub(super) async fn list(State(app): State<SharedPartition>, mut query: Query) -> HandlerResult {
    let limit = query.limit();
    query.finish()?;
    Ok(Json(AuditOut { entries: app.server.audit.last(limit) }).into_response())
}
