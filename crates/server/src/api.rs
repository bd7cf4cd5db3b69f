//! The API under `/v1`: routes, and which scope each asks for.

pub(crate) mod events;
mod groups;
mod health;
mod limits;
mod operations;
mod orders;
mod submit;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use tidegate::{Code, Error, Result};
use tidegate_core::OperationId;

use crate::app::Shared;
use crate::config::Scope;
use crate::edge::{auth, origin, request_id};
use crate::page;
use crate::wire::failure::{Failure, wrong_method};
use crate::wire::object::shown;

/// What a handler answers.
type Answer = std::result::Result<Response, Failure>;

/// Everything that is served.
pub(crate) fn router(app: Shared) -> Router {
    let needs = |scope| from_fn_with_state(auth::Needs { app: app.clone(), scope }, auth::layer);
    let read = Router::new()
        .route("/v1/operations/{id}", get(operations::show))
        .route("/v1/operations/{id}/why", get(operations::why))
        .route("/v1/groups", get(groups::list))
        .route("/v1/groups/{group}", get(groups::show))
        .route("/v1/limits", get(limits::list))
        .route("/v1/events", get(events::stream))
        .route("/metrics", get(health::metrics))
        .merge(page::router())
        .route_layer(needs(Scope::Read));
    let list = Router::new().route("/v1/operations", get(operations::list)).route_layer(needs(Scope::Read));
    let write = Router::new()
        .route("/v1/operations", post(submit::one))
        .route("/v1/operations/batch", post(submit::batch))
        .route_layer(needs(Scope::Write));
    let operate = Router::new()
        .route("/v1/operations/{id}/cancel", post(orders::cancel))
        .route("/v1/operations/{id}/rerun", post(orders::rerun))
        .route("/v1/operations/{id}/resolve", post(orders::resolve))
        .route("/v1/groups/{group}/pause", post(groups::pause))
        .route("/v1/groups/{group}/resume", post(groups::resume))
        .route("/v1/limits/{*name}", put(limits::change))
        .route_layer(needs(Scope::Operate));
    Router::new()
        .merge(read)
        .merge(list)
        .merge(write)
        .merge(operate)
        .merge(page::assets())
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(app.clone(), origin::layer))
        .layer(from_fn_with_state(app.clone(), request_id::layer))
        .layer(from_fn(page::headers))
        .with_state(app)
}

async fn no_route(request: Request) -> Response {
    let message = format!("There is nothing at {}.", shown(request.uri().path()));
    Failure(Error::new(Code::NoRoute, message)).into_response()
}

async fn no_method(request: Request) -> Response {
    wrong_method(request.method())
}

/// The id in a path.
pub(crate) fn id(text: &str) -> Result<OperationId> {
    text.parse().map_err(|problem| {
        let message = format!("There is no operation {:?}: {problem}.", shown(text));
        Error::new(Code::NoOperation, message).field("id")
    })
}
