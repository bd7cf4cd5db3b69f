//! The admin API of the proxy: health, readiness, metrics and keys, and a page that lists the keys.
//! It is never on the port that clients use, because all paths there belong to the service behind
//! the proxy.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use tidegate_idempotency::KeyAdmin;
use tidegate_store::Store;
use tokio_util::sync::CancellationToken;

use crate::api::key_calls;
use crate::api::route::Access::Open;
use crate::api::route::QueryPolicy::AnyQuery;
use crate::api::route::{get, page as html};
use crate::config::TokenScope::Read;
use crate::edge::guard::{CallerPolicy, GuardedRouter, GuardedRouterBuilder};
use crate::page;

/// The timeout of the store's readiness check.
const PATIENCE: Duration = Duration::from_secs(2);

/// The state of the admin routes.
#[derive(Clone)]
pub(super) struct AdminState {
    pub store: Arc<dyn Store>,
    pub metrics: PrometheusHandle,
    pub stopping: CancellationToken,
}

/// The routes of the admin port. The routes about keys are only served on a loopback address,
/// because callers are not authenticated there.
pub(super) fn router(admin: &AdminState, keys: Option<&KeyAdmin>) -> GuardedRouter {
    let mut paths = vec!["/healthz", "/readyz", "/metrics"];
    paths.extend(keys.into_iter().flat_map(|_| ["/keys", "/v1/keys"]));
    let here = Json(json!({ "service": "tidegate proxy", "paths": paths }));
    let callers = if keys.is_some() { CallerPolicy::ThisMachine } else { CallerPolicy::Everybody };
    let spec = |path| get(path, Open, AnyQuery);
    let open = [
        spec("/").serve(async move || here, admin),
        spec("/healthz").serve(async || Json(json!({ "status": "ok" })), admin),
        spec("/readyz").serve(ready, admin),
        spec("/metrics").serve(metrics, admin),
        // Errors about keys link to their pages.
        spec("/docs/errors/{code}").serve(page::errors::show_in_proxy, admin),
        spec("/assets/page.css").serve(page::assets::style, admin),
        spec("/assets/icon.svg").serve(page::assets::icon, admin),
    ];
    let builder = GuardedRouterBuilder::new(callers, None);
    let keys = keys.into_iter().flat_map(|keys| {
        let page = html("/keys", Read).serve(page::keys::show_in_proxy, keys);
        key_calls(keys.clone()).chain([page])
    });
    open.into_iter().chain(keys).fold(builder, |builder, (spec, call)| builder.add_route(spec, call)).build()
}

async fn ready(State(admin): State<AdminState>) -> Response {
    let away = |why: String| {
        (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": "not ready", "detail": why })))
            .into_response()
    };
    if admin.stopping.is_cancelled() {
        return away("The proxy is shutting down.".into());
    }
    match tokio::time::timeout(PATIENCE, admin.store.health()).await {
        Ok(Ok(())) => Json(json!({ "status": "ready" })).into_response(),
        Ok(Err(error)) => away(format!("The store cannot be used: {error}")),
        Err(_) => away(format!("The store did not answer within {PATIENCE:?}.")),
    }
}

async fn metrics(State(admin): State<AdminState>) -> Response {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], admin.metrics.render()).into_response()
}
