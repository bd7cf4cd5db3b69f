//! Whether it lives, whether it can work, and its figures.

use axum::Json;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate::{Code, Error};

use super::Answer;
use crate::app::Shared;
use crate::telemetry;

#[derive(Serialize)]
struct Word {
    status: &'static str,
}

pub(super) async fn live() -> Json<impl Serialize> {
    Json(Word { status: "ok" })
}

pub(super) async fn ready(State(app): State<Shared>) -> Answer {
    if app.house.stopping.is_cancelled() {
        return Err(Error::new(Code::Stopping, "The server is about to stop.").into());
    }
    app.engine.health().await?;
    Ok(Json(Word { status: "ready" }).into_response())
}

pub(super) async fn metrics(State(app): State<Shared>) -> Answer {
    telemetry::refresh(&app.house, std::slice::from_ref(&app.engine)).await;
    let text = app.house.metrics.render();
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}
