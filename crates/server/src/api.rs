//! The API: its table of routes, the routers built from it, and the handlers.

mod audit;
mod buckets;
pub(crate) mod bulk_commands;
mod bulk_selection;
mod cluster;
mod command_reason;
mod commands;
mod complete;
mod costs;
pub(crate) mod deployments;
mod entities;
pub(crate) mod events;
mod failures;
pub(crate) mod flights;
pub(crate) mod generations;
pub(crate) mod group_rerun;
pub(crate) mod groups;
mod health;
mod keys;
mod leases;
pub(crate) mod limits;
pub(crate) mod local;
pub(crate) mod openapi;
pub(crate) mod operations;
mod outbox;
mod proxy;
pub(crate) mod route;
pub(crate) mod routes;
pub(crate) mod submit;
pub(crate) mod summary;
mod work;

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use axum::{Extension, Router};
use tidegate_core::OperationId;
use tidegate_idempotency::KeyAdmin;

use crate::audit::audited;
use crate::edge::auth;
use crate::edge::guard::{CallerPolicy, GuardedRouter, GuardedRouterBuilder};
use crate::edge::node_secret::NodeSecret;
use crate::error::{Error, ErrorCode, Result};
use crate::page;
use crate::state::{ServerState, SharedPartition};
use crate::wire::error::{ApiError, wrong_method};
use crate::wire::object::truncate_name;
use local::LocalApi;
use route::{Route, RouteService, RouteSpec};

/// The result of a handler.
pub(crate) type HandlerResult = std::result::Result<Response, ApiError>;

/// The routes of a single node.
pub(crate) fn router(app: &SharedPartition) -> GuardedRouter {
    let serve = |Route { spec, service }: Route| match service {
        RouteService::Partition(_, call) | RouteService::EachNode { single: call, .. } => {
            Some((spec, call.with_state(Arc::clone(app))))
        }
        service => serve_anywhere(&app.server, service).map(|call| (spec, call)),
    };
    guarded_router(&app.server, None, serve)
}

/// Serves what does not depend on where partitions are.
pub(crate) fn serve_anywhere(server: &Arc<ServerState>, service: RouteService) -> Option<MethodRouter> {
    match service {
        RouteService::Stateless(call) => Some(call),
        RouteService::Store(call) => Some(call.with_state(Arc::clone(server))),
        RouteService::Keys(call) => Some(call.with_state(server.key_store.keys())),
        _ => None,
    }
}

/// The guarded routes of a node, with its pages; `serve` attaches the state of the node to each
/// other route that it has.
pub(crate) fn guarded_router(
    server: &Arc<ServerState>,
    node_secret: Option<Arc<NodeSecret>>,
    serve: impl Fn(Route) -> Option<(RouteSpec, MethodRouter)>,
) -> GuardedRouter {
    let builder = GuardedRouterBuilder::new(CallerPolicy::Configured(Arc::clone(server)), node_secret);
    let api = LocalApi::new(server, &serve);
    let router = routes::routes().into_iter().fold(builder, |builder, route| {
        let served = match route.service {
            RouteService::Page(call) => Some((route.spec, call.with_state(api.clone()))),
            service => serve(Route { service, ..route }),
        };
        match served {
            Some((spec, call)) => builder.add_route(spec, audited(server, spec, call)),
            None => builder,
        }
    });
    router.build()
}

/// The routes of a partition, behind routing that has admitted the caller. They are called within
/// this process only, never by a listener.
pub(crate) fn partition_router(app: SharedPartition) -> Router {
    let router = routes::routes().into_iter().fold(Router::new(), |router, route| match route.service {
        RouteService::Partition(_, call) => router.route(route.spec.path, call),
        _ => router,
    });
    router.fallback(no_route).method_not_allowed_fallback(no_method).with_state(app)
}

/// The routes about idempotency keys, ready to be served.
pub(crate) fn key_calls(keys: KeyAdmin) -> impl Iterator<Item = (RouteSpec, MethodRouter)> {
    routes::key_routes().into_iter().filter_map(move |route| match route.service {
        RouteService::Keys(call) => Some((route.spec, call.with_state(keys.clone()))),
        _ => None,
    })
}

/// The operators' routes about idempotency keys, for a service that has its own keys. Everyone who
/// can reach them may use them; `who` is logged with every change.
pub fn keys_router(keys: KeyAdmin, who: &str) -> Router {
    let router = key_calls(keys).fold(Router::new(), |router, (spec, call)| router.route(spec.path, call));
    router.layer(Extension(auth::Caller(Arc::from(who))))
}

pub(crate) async fn no_route(request: Request) -> Response {
    let message = format!("There is nothing at {}.", truncate_name(request.uri().path()));
    let error = Error::new(ErrorCode::NoRoute, message);
    if page::is_wanted(request.method(), request.headers()) {
        page::error_page(&error)
    } else {
        ApiError(error).into_response()
    }
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
