//! The API under `/v1`: routes, and which scope each asks for.

pub(crate) mod events;
mod groups;
mod health;
mod limits;
pub(crate) mod openapi;
mod operations;
mod orders;
pub(crate) mod route;
mod submit;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tidegate::{Code, Error, Result};
use tidegate_core::OperationId;

use crate::app::Shared;
use crate::config::Scope::{Operate, Read, Write};
use crate::edge::{auth, origin, request_id};
use crate::page;
use crate::wire::failure::{Failure, wrong_method};
use crate::wire::object::shown;
use route::{Route, get, post, put};

/// What a handler answers.
type Answer = std::result::Result<Response, Failure>;

/// Every call that is served.
fn routes() -> Vec<Route> {
    let mut routes = vec![
        get(Read, "/v1/operations", operations::list),
        post(Write, "/v1/operations", submit::one),
        post(Write, "/v1/operations/batch", submit::batch),
        get(Read, "/v1/operations/{id}", operations::show),
        get(Read, "/v1/operations/{id}/why", operations::why),
        post(Operate, "/v1/operations/{id}/cancel", orders::cancel),
        post(Operate, "/v1/operations/{id}/rerun", orders::rerun),
        post(Operate, "/v1/operations/{id}/resolve", orders::resolve),
        get(Read, "/v1/groups", groups::list),
        get(Read, "/v1/groups/{group}", groups::show),
        post(Operate, "/v1/groups/{group}/pause", groups::pause),
        post(Operate, "/v1/groups/{group}/resume", groups::resume),
        get(Read, "/v1/limits", limits::list),
        put(Operate, "/v1/limits/{*name}", limits::change),
        get(Read, "/v1/events", events::stream),
        get(Read, "/metrics", health::metrics),
        get(None, "/healthz", health::live),
        get(None, "/readyz", health::ready),
        get(None, "/openapi.json", openapi::document),
    ];
    routes.extend(page::routes());
    routes
}

/// Everything that is served.
pub(crate) fn router(app: Shared) -> Router {
    let mut router = Router::new();
    for route in routes() {
        let mut served = Router::new().route(route.path, route.call);
        if let Some(scope) = route.scope {
            served =
                served.route_layer(from_fn_with_state(auth::Needs { app: app.clone(), scope }, auth::layer));
        }
        router = router.merge(served);
    }
    router
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
