//! The service while memory is watched: it responds as the example does, and only counts its items.
//! The example keeps every item, which would be all that grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};

/// The number of items.
pub(super) type ItemCount = Arc<AtomicUsize>;

pub(super) fn counting_service(count: ItemCount) -> Router {
    Router::new().route("/api/v1/items", post(create_item)).with_state(count)
}

async fn create_item(State(count): State<ItemCount>, Json(new): Json<Value>) -> (StatusCode, Json<Value>) {
    let id = count.fetch_add(1, Ordering::Relaxed) + 1;
    (StatusCode::CREATED, Json(json!({ "id": id, "sku": new["sku"], "title": new["title"] })))
}
