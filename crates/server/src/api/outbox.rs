//! The rows that wait in the store's outbox, and those that were moved aside because they cannot be
//! accepted. Their content is not shown: it may contain secrets, and those who may read the table
//! find it there.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_store::outbox::OutboxId;

use super::HandlerResult;
use crate::edge::query::Query;
use crate::error::{Error, ErrorCode};
use crate::state::ServerState;
use crate::wire::cursor;
use crate::wire::time::Timestamp;

/// The list that its cursors belong to.
const LIST: &str = "outbox";

#[derive(Serialize)]
struct OutboxOut {
    waiting: u64,
    oldest_at: Option<Timestamp>,
    refused: Vec<RefusedRowOut>,
    /// The cursor of the next page.
    next_cursor: Option<String>,
    /// The same, by the name it had before there were cursors.
    next: Option<u64>,
}

#[derive(Serialize)]
struct RefusedRowOut {
    id: u64,
    at: Timestamp,
    refused_at: Timestamp,
    code: String,
    problem: String,
}

pub(super) async fn show(State(server): State<Arc<ServerState>>, mut query: Query) -> HandlerResult {
    let limit = query.limit();
    let below = query.integer("below", 1..=u64::MAX);
    let cursor =
        query.read("cursor", |text| cursor::read_text(text, LIST)?.parse().map_err(|_| cursor::bad_cursor()));
    query.finish()?;
    let below = cursor.or(below).map(OutboxId);
    let outbox = server.store.outbox().ok_or_else(|| {
        Error::new(ErrorCode::NoRoute, "This store has no outbox: only one on PostgreSQL has.")
    })?;
    let seen = outbox.status(below, limit).await.map_err(Error::from)?;
    let next = seen.refused.last().filter(|_| seen.refused.len() == limit).map(|last| last.id.0);
    let refused = seen.refused.into_iter().map(|row| RefusedRowOut {
        id: row.id.0,
        at: Timestamp(row.at),
        refused_at: Timestamp(row.refused_at),
        code: row.code,
        problem: row.problem,
    });
    let next_cursor = next.map(|next| cursor::write_text(&next.to_string(), LIST));
    let (waiting, oldest_at) = (seen.waiting, seen.oldest.map(Timestamp));
    let out = OutboxOut { waiting, oldest_at, refused: refused.collect(), next_cursor, next };
    Ok(Json(out).into_response())
}
