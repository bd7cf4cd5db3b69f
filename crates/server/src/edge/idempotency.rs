//! `Idempotency-Key` on the server's own POST routes. A request with a key is read whole, within
//! the bounds of its route, and runs once; one without a key does not pass this layer. Its caller
//! was authenticated before.

use std::convert::Infallible;
use std::pin::Pin;

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tidegate_idempotency::{CallerScope, IdempotencyLayer, KeyStore, PathComparison, Policy, ScopeExtractor};
use tower::{Layer, Service};

use crate::config::{Config, TENANT_SCOPE};
use crate::edge::auth::{Caller, CallerTenant};
use crate::edge::content;
use crate::edge::repeated_submission::WaitingSubmission;
use crate::error::{Error, ErrorCode, Result};
use crate::path_map::PathMap;
use crate::state::ServerState;
use crate::wire::error::ApiError;

/// The layers that make a POST with a key run once: each token has its own keys, or those of its
/// tenant, and without tokens there is one caller.
///
/// # Errors
/// When a figure is out of bounds.
pub(crate) fn layers(config: &Config, gate: &KeyStore) -> Result<PathMap<IdempotencyLayer>> {
    let scoping = if config.requires_tokens() {
        ScopeExtractor::from_fn(|parts| match parts.extensions.get::<CallerTenant>() {
            Some(CallerTenant(tenant)) => Some(CallerScope::named(&format!("{TENANT_SCOPE}{tenant}"))),
            None => parts.extensions.get::<Caller>().map(|Caller(name)| CallerScope::named(name)),
        })
    } else {
        ScopeExtractor::unscoped()
    };
    let layer = |policy: &Policy| {
        // A name in a path is what it is: `a//b` is another bucket than `a/b`.
        let policy = policy.clone().with_paths(PathComparison::Literal);
        IdempotencyLayer::new(gate.clone(), policy, scoping.clone())
            .map_err(|bad| Error::new(ErrorCode::BadConfig, format!("In [idempotency], {bad}.")))
    };
    let mut others = Vec::new();
    for route in &config.idempotency.routes {
        others.push((route.path.as_str(), layer(&route.policy)?));
    }
    Ok(PathMap::new(layer(&config.idempotency.policy)?, others))
}

/// Runs a request with a key once. Its caller was admitted before.
pub(crate) async fn run(server: &ServerState, body_max: usize, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let body = match content::read(body, body_max, server.read_timeout).await {
        Ok(body) => body,
        Err(error) => return ApiError(error).into_response(),
    };
    let once = server.idempotency.get(parts.uri.path());
    let waiting = match WaitingSubmission::split(&mut parts) {
        Ok(waiting) => waiting,
        Err(error) => return ApiError(error).into_response(),
    };
    let response = match call_layer(once, Request::from_parts(parts, Body::from(body)), next.clone()).await {
        Ok(response) => response.into_response(),
        Err(never) => match never {},
    };
    match waiting {
        Some(waiting) => waiting.respond(response, next).await,
        None => response,
    }
}

type LayerFuture = Pin<Box<dyn Future<Output = std::result::Result<LayerResponse, Infallible>> + Send>>;
type LayerResponse = axum::http::Response<tidegate_idempotency::LayerBody>;

fn call_layer(once: &IdempotencyLayer, request: Request, next: Next) -> LayerFuture {
    let handler = move |request: axum::http::Request<tidegate_idempotency::LayerBody>| {
        let next = next.clone();
        async move { Ok::<_, Infallible>(next.run(request.map(Body::new)).await) }
    };
    // A service made of a function is always ready.
    once.layer(tower::service_fn(handler)).call(request)
}
