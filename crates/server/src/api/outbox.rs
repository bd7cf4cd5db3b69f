//! What waits in the store's outbox, and what was moved aside because it cannot be accepted. What was handed in is not
//! shown: it may hold secrets, and whoever may read the table finds it there.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate::{Code, Error};
use tidegate_store::outbox::OutboxId;

use super::Answer;
use super::operations::{PAGE_DEFAULT, PAGE_MAX};
use crate::app::House;
use crate::edge::query::Query;
use crate::wire::time::At;

#[derive(Serialize)]
struct Out {
    waiting: u64,
    oldest_at: Option<At>,
    refused: Vec<RefusedOut>,
    /// Where to go on.
    next: Option<u64>,
}

#[derive(Serialize)]
struct RefusedOut {
    id: u64,
    at: At,
    refused_at: At,
    code: String,
    problem: String,
}

pub(super) async fn show(State(house): State<Arc<House>>, mut query: Query) -> Answer {
    let limit = query.integer("limit", 1..=PAGE_MAX)?.unwrap_or(PAGE_DEFAULT);
    let below = query.integer("below", 1..=u64::MAX)?.map(OutboxId);
    query.finish()?;
    let outbox = house
        .store
        .outbox()
        .ok_or_else(|| Error::new(Code::NoRoute, "This store has no outbox: only one on PostgreSQL has."))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let seen = outbox.look(below, limit).await.map_err(Error::from)?;
    let next = seen.refused.last().filter(|_| seen.refused.len() == limit).map(|last| last.id.0);
    let refused = seen.refused.into_iter().map(|row| RefusedOut {
        id: row.id.0,
        at: At(row.at),
        refused_at: At(row.refused_at),
        code: row.code,
        problem: row.problem,
    });
    let out = Out { waiting: seen.waiting, oldest_at: seen.oldest.map(At), refused: refused.collect(), next };
    Ok(Json(out).into_response())
}
