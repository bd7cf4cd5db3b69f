//! The API under `/v1`: routes, and which scope each asks for.

mod buckets;
mod cluster;
mod costs;
pub(crate) mod deployments;
pub(crate) mod events;
mod groups;
mod health;
mod keys;
mod leases;
mod limits;
pub(crate) mod openapi;
pub(crate) mod operations;
mod orders;
mod outbox;
mod pass;
pub(crate) mod route;
mod submit;

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodFilter;
use axum::{Extension, Router};
use tidegate::{Code, Error, Result};
use tidegate_core::OperationId;
use tidegate_idempotency::Keys;

use crate::app::{House, Shared};
use crate::config::Scope::{Operate, Read, Write};
use crate::edge::once;
use crate::edge::{auth, origin, request_id};
use crate::page;
use crate::wire::failure::{Failure, wrong_method};
use crate::wire::object::shown;
use route::{Route, any, get, post, put};

/// What a handler answers.
type Answer = std::result::Result<Response, Failure>;

/// Where calls are passed on from: everything below an upstream's name, and the name alone.
pub(crate) const PROXY: [&str; 3] = ["/proxy/{upstream}/{*path}", "/proxy/{upstream}/", "/proxy/{upstream}"];

/// Every call that a partition serves.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = vec![
        get(Read, "/v1/operations", operations::list),
        post(Write, "/v1/operations", submit::one),
        post(Write, "/v1/operations/batch", submit::batch),
        get(Read, "/v1/operations/{id}", operations::show),
        get(Read, "/v1/operations/{id}/why", operations::why),
        post(Operate, "/v1/operations/{id}/cancel", orders::cancel),
        post(Operate, "/v1/operations/{id}/rerun", orders::rerun),
        post(Operate, "/v1/operations/{id}/resolve", orders::resolve),
        post(Write, "/v1/deployments", deployments::begin),
        get(Read, "/v1/groups", groups::list),
        get(Read, "/v1/groups/{group}", groups::show),
        post(Operate, "/v1/groups/{group}/pause", groups::pause),
        post(Operate, "/v1/groups/{group}/resume", groups::resume),
        get(Read, "/v1/limits", limits::list),
        put(Operate, "/v1/limits/{*name}", limits::change),
        get(Read, "/v1/events", events::stream),
        get(Read, "/metrics", health::metrics),
        get(Read, "/v1/cluster", cluster::alone),
        get(None, "/readyz", health::ready),
    ];
    routes.extend(PROXY.map(|path| any(Write, path, pass::on)));
    routes.extend(page::routes());
    routes
}

/// What belongs to no partition and is asked of the store itself, by any node.
fn store_calls() -> Vec<Route<Arc<House>>> {
    vec![
        post(Write, "/v1/limits/{*name}", buckets::reserve),
        post(Write, "/v1/leases/{name}/acquire", leases::acquire),
        post(Write, "/v1/leases/{name}/renew", leases::renew),
        post(Write, "/v1/leases/{name}/release", leases::release),
        get(Read, "/v1/outbox", outbox::show),
        get(Read, "/v1/costs", costs::show),
        get(Read, "/v1/deployments", deployments::list),
        get(Read, "/v1/deployments/{id}", deployments::show),
        get(Read, "/deployments/{id}", page::deployments::show),
    ]
}

/// What operators see of idempotency keys, and what they may do with them.
fn key_calls() -> Vec<Route<Keys>> {
    vec![
        get(Read, "/v1/keys", keys::list),
        get(Read, "/v1/keys/{key}", keys::show),
        post(Operate, "/v1/keys/{key}/release", keys::release),
        post(Operate, "/v1/keys/{key}/expire", keys::expire),
    ]
}

/// The routes of operators about idempotency keys, for whoever serves keys of its own. Everybody who reaches them may use
/// them; `who` is noted with every change.
pub fn keys_router(keys: Keys, who: &str) -> Router {
    let router = key_calls().into_iter().fold(Router::new(), |all, route| all.route(route.path, route.call));
    router.layer(Extension(auth::Caller(Arc::from(who)))).with_state(keys)
}

/// Routes behind the scope that each asks for. Whatever is posted there may have an idempotency key, which is looked at
/// when its sender was let in.
pub(crate) fn admitted<S: Clone + Send + Sync + 'static>(
    house: &Arc<House>,
    routes: Vec<Route<S>>,
) -> Router<S> {
    routes.into_iter().fold(Router::new(), |router, route| {
        let mut served = Router::new().route(route.path, route.call);
        if let Some(scope) = route.scope {
            let keyed_max = (route.method == MethodFilter::POST).then(|| once::body_max(route.path));
            let needs = auth::Needs { house: Arc::clone(house), scope, keyed_max };
            served = served.route_layer(from_fn_with_state(needs, auth::layer));
        }
        router.merge(served)
    })
}

/// Buckets, leases and idempotency keys: what any node answers from the store.
pub(crate) fn store_routes<S: Clone + Send + Sync + 'static>(house: &Arc<House>) -> Router<S> {
    let keys = admitted(house, key_calls()).with_state(house.gate.keys());
    admitted(house, store_calls()).with_state(Arc::clone(house)).merge(keys)
}

/// What is the same for everybody, on every node.
fn open_calls<S: Clone + Send + Sync + 'static>() -> Vec<Route<S>> {
    let mut routes = vec![get(None, "/healthz", health::live), get(None, "/openapi.json", openapi::document)];
    routes.extend(page::open_routes());
    routes
}

/// What nobody needs a token for.
pub(crate) fn open_routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    open_calls().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.call))
}

/// A partition behind a front that has admitted the caller.
pub(crate) fn room(app: Shared) -> Router {
    let router =
        routes().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.call));
    router.fallback(no_route).method_not_allowed_fallback(no_method).with_state(app)
}

/// Everything that is served.
pub(crate) fn router(app: Shared) -> Router {
    admitted(&app.house, routes())
        .merge(store_routes(&app.house))
        .merge(open_routes())
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(from_fn_with_state(Arc::clone(&app.house), origin::layer))
        .layer(from_fn_with_state(Arc::clone(&app.house), request_id::layer))
        .layer(from_fn(page::headers))
        .with_state(app)
}

pub(crate) async fn no_route(request: Request) -> Response {
    let message = format!("There is nothing at {}.", shown(request.uri().path()));
    Failure(Error::new(Code::NoRoute, message)).into_response()
}

pub(crate) async fn no_method(request: Request) -> Response {
    wrong_method(request.method())
}

/// The id in a path.
pub(crate) fn id(text: &str) -> Result<OperationId> {
    text.parse().map_err(|problem| {
        let message = format!("There is no operation {:?}: {problem}.", shown(text));
        Error::new(Code::NoOperation, message).field("id")
    })
}
