//! Health, readiness and metrics.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde::Serialize;

use super::HandlerResult;
use crate::error::{Error, ErrorCode};
use crate::state::SharedPartition;
use crate::telemetry;

#[derive(Serialize)]
struct StatusOut {
    status: &'static str,
}

pub(super) async fn live() -> Json<impl Serialize> {
    Json(StatusOut { status: "ok" })
}

pub(super) async fn ready(State(app): State<SharedPartition>) -> HandlerResult {
    if app.server.stopping.is_cancelled() {
        return Err(Error::new(ErrorCode::Stopping, "The server is shutting down.").into());
    }
    app.engine.health().await?;
    Ok(Json(StatusOut { status: "ready" }).into_response())
}

pub(super) async fn metrics(State(app): State<SharedPartition>) -> HandlerResult {
    telemetry::refresh(&app.server, std::slice::from_ref(&app.engine)).await;
    let text = app.server.metrics.render();
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
