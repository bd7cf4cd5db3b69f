//! The service while memory is watched: it answers as the example does, and keeps nothing but how many there were. The
//! example keeps every item, which would be all that grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// How many items there were.
pub(super) type Count = Arc<AtomicUsize>;

pub(super) fn forgotten(count: Count) -> Router {
    Router::new().route("/api/v1/items", post(take_in)).with_state(count)
}

async fn take_in(State(count): State<Count>, Json(new): Json<Value>) -> (StatusCode, Json<Value>) {
    let id = count.fetch_add(1, Ordering::Relaxed) + 1;
    (StatusCode::CREATED, Json(json!({ "id": id, "sku": new["sku"], "title": new["title"] })))
}
