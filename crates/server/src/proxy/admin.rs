//! What operators look at: whether the proxy lives, whether it can work, its figures. Never on the port that clients use, whose
//! paths all belong to the service behind.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use tidegate_idempotency::Keys;
use tidegate_store::Store;
use tokio_util::sync::CancellationToken;

use crate::api::keys_router;
use crate::edge::origin;

/// How long the store may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whom audit lines name: whoever has a shell on this machine.
const WHO: &str = "local";

/// What is looked at.
#[derive(Clone)]
pub(super) struct Admin {
    pub store: Arc<dyn Store>,
    pub metrics: PrometheusHandle,
    pub stopping: CancellationToken,
}

/// The routes of the admin port. Keys are looked into and freed there only when it is open to this machine alone, for nobody
/// says there who they are.
pub(super) fn router(admin: Admin, keys: Option<Keys>) -> Router {
    let mut paths = vec!["/healthz", "/readyz", "/metrics"];
    paths.extend(keys.is_some().then_some("/v1/keys"));
    let here = Json(json!({ "service": "tidegate proxy", "paths": paths }));
    let keys = keys.map(|keys| keys_router(keys, WHO).layer(middleware::from_fn(origin::local)));
    Router::new()
        .route("/", get(async move || here))
        .route("/healthz", get(async || Json(json!({ "status": "ok" }))))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(admin)
        .merge(keys.unwrap_or_default())
}

async fn ready(State(admin): State<Admin>) -> Response {
    let away = |why: String| {
        (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": "not ready", "detail": why })))
            .into_response()
    };
    if admin.stopping.is_cancelled() {
        return away("The proxy is about to stop.".into());
    }
    match tokio::time::timeout(PATIENCE, admin.store.health()).await {
        Ok(Ok(())) => Json(json!({ "status": "ready" })).into_response(),
        Ok(Err(error)) => away(format!("The store cannot be used: {error}")),
        Err(_) => away(format!("The store did not answer within {PATIENCE:?}.")),
    }
}

async fn metrics(State(admin): State<Admin>) -> Response {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], admin.metrics.render()).into_response()
}
