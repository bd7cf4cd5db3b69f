//! The API under `/v1`: the routes, and the scope that each requires.

mod buckets;
mod cluster;
mod commands;
mod complete;
mod costs;
pub(crate) mod deployments;
pub(crate) mod events;
pub(crate) mod groups;
mod health;
mod keys;
mod leases;
pub(crate) mod limits;
pub(crate) mod openapi;
pub(crate) mod operations;
mod outbox;
mod proxy;
pub(crate) mod route;
pub(crate) mod submit;

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use tidegate::{Error, ErrorCode, Result};
use tidegate_core::OperationId;
use tidegate_idempotency::KeyAdmin;

use crate::config::TokenScope::{Operate, Read, Write};
use crate::edge::auth;
use crate::edge::guard::{CallerPolicy, GuardedRouter, GuardedRouterBuilder};
use crate::page;
use crate::state::{ServerState, SharedPartition};
use crate::wire::error::{ApiError, wrong_method};
use crate::wire::object::truncate_name;
use route::{Access, Route, any, delete, get, post, put};

/// The result of a handler.
type HandlerResult = std::result::Result<Response, ApiError>;

/// The routes of the paced proxy: everything below an upstream's name, and the name alone.
pub(crate) const PROXY: [&str; 3] = ["/proxy/{upstream}/{*path}", "/proxy/{upstream}/", "/proxy/{upstream}"];

/// The routes that a partition serves.
pub(crate) fn routes() -> Vec<Route> {
    let mut routes = vec![
        get(Read, "/v1/operations", operations::list),
        post(Write, "/v1/operations", submit::submit_one),
        post(Write, "/v1/operations/batch", submit::submit_batch).without_query(),
        get(Read, "/v1/operations/{id}", operations::show),
        get(Read, "/v1/operations/{id}/why", operations::why),
        post(Operate, "/v1/operations/{id}/cancel", commands::cancel).without_query(),
        post(Operate, "/v1/operations/{id}/rerun", commands::rerun).without_query(),
        post(Operate, "/v1/operations/{id}/resolve", commands::resolve).without_query(),
        post(Operate, "/v1/operations/{id}/complete", complete::complete).or_completion_token(),
        post(Write, "/v1/deployments", deployments::begin).without_query(),
        get(Read, "/v1/groups", groups::list),
        get(Read, "/v1/groups/{group}", groups::show),
        post(Operate, "/v1/groups/{group}/pause", groups::pause).without_query(),
        post(Operate, "/v1/groups/{group}/resume", groups::resume).without_query(),
        get(Read, "/v1/limits", limits::list),
        put(Operate, "/v1/limits/{*name}", limits::change).without_query(),
        get(Read, "/v1/events", events::stream),
        get(Read, "/metrics", health::metrics).without_query(),
        get(Read, "/v1/cluster", cluster::show_single_node).without_query(),
        get(Access::Open, "/readyz", health::ready).without_query(),
    ];
    routes.extend(PROXY.map(|path| any(Write, path, proxy::proxy_request)));
    routes.extend(page::routes());
    routes
}

/// The routes that belong to no partition and that any node serves: from the store itself, or from
/// its configuration.
fn store_routes() -> Vec<Route<Arc<ServerState>>> {
    vec![
        get(Access::Open, "/openapi.json", openapi::document).without_query(),
        get(Read, "/v1/buckets", buckets::list),
        get(Read, "/v1/buckets/{*name}", buckets::show),
        delete(Operate, "/v1/buckets/{*name}", buckets::delete).without_query(),
        post(Write, "/v1/buckets/{*name}", buckets::post).without_query(),
        post(Write, "/v1/limits/{*name}", buckets::post_to_limit).without_query(),
        get(Read, "/v1/leases", leases::list),
        get(Read, "/v1/leases/{name}", leases::show),
        post(Write, "/v1/leases/{name}/acquire", leases::acquire).without_query(),
        post(Write, "/v1/leases/{name}/renew", leases::renew).without_query(),
        post(Write, "/v1/leases/{name}/release", leases::release).without_query(),
        get(Read, "/v1/outbox", outbox::show),
        get(Read, "/v1/costs", costs::show),
        get(Read, "/v1/deployments", deployments::list),
        get(Read, "/v1/deployments/{id}", deployments::show).without_query(),
        route::page(Read, "/deployments/{id}", page::deployments::show),
    ]
}

/// The operators' routes about idempotency keys.
pub(crate) fn key_routes() -> Vec<Route<KeyAdmin>> {
    vec![
        get(Read, "/v1/keys", keys::list),
        get(Read, "/v1/keys/{key}", keys::show),
        post(Operate, "/v1/keys/{key}/release", keys::release),
        post(Operate, "/v1/keys/{key}/expire", keys::expire),
        post(Operate, "/v1/keys/{key}/complete", keys::complete),
    ]
}

/// The operators' routes about idempotency keys, for a service that has its own keys. Everyone who
/// can reach them may use them; `who` is logged with every change.
pub fn keys_router(keys: KeyAdmin, who: &str) -> Router {
    let router = key_routes().into_iter().fold(Router::new(), |all, route| all.route(route.path, route.call));
    router.layer(Extension(auth::Caller(Arc::from(who)))).with_state(keys)
}

/// The routes that are the same for everyone, on every node.
fn public_routes<S: Clone + Send + Sync + 'static>() -> Vec<Route<S>> {
    let mut routes = vec![get(Access::Open, "/healthz", health::live).without_query()];
    routes.extend(page::open_routes());
    routes
}

/// Adds the routes that any node serves: from the store, and those that are the same for everyone.
pub(crate) fn add_common_routes(
    door: GuardedRouterBuilder,
    house: &Arc<ServerState>,
) -> GuardedRouterBuilder {
    let keys = house.key_store.keys();
    let door = door.add_routes(store_routes(), house).add_routes(key_routes(), &keys);
    door.add_routes(page::key_routes(), &keys).add_routes(public_routes(), &())
}

/// The router of a partition, behind routing that has admitted the caller. It is called within this
/// process only, never by a listener.
pub(crate) fn partition_router(app: SharedPartition) -> Router {
    let router =
        routes().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.call));
    router.fallback(no_route).method_not_allowed_fallback(no_method).with_state(app)
}

/// The router of all routes.
pub(crate) fn router(app: &SharedPartition) -> GuardedRouter {
    let door = GuardedRouterBuilder::new(CallerPolicy::Configured(Arc::clone(&app.server)), None);
    add_common_routes(door.add_routes(routes(), app), &app.server).build()
}

pub(crate) async fn no_route(request: Request) -> Response {
    let message = format!("There is nothing at {}.", truncate_name(request.uri().path()));
    ApiError(Error::new(ErrorCode::NoRoute, message)).into_response()
}

pub(crate) async fn no_method(request: Request) -> Response {
    wrong_method(request.method())
}

/// Parses the id in a path.
pub(crate) fn parse_id(text: &str) -> Result<OperationId> {
    text.parse().map_err(|problem| {
        let message = format!("There is no operation {:?}: {problem}.", truncate_name(text));
        Error::new(ErrorCode::NoOperation, message).field("id")
    })
}
