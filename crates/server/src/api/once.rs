//! `Idempotency-Key` on the server's own POST routes. A request without one passes as if nothing were here; one with a key
//! is read whole, within the bounds of its route, and happens once. Who sends it was checked before.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::Route;
use axum::routing::future::RouteFuture;
use futures_util::future::Either;
use tidegate::{Code, Error, Result};
use tidegate_idempotency::{Gate, HEADER, Idempotency, IdempotencyLayer, Scope, Scoping, Seal};
use tidegate_store::Store;
use tower::{Layer, Service};

use crate::app::House;
use crate::config::{Config, IdempotencyConfig};
use crate::edge::auth::Caller;
use crate::edge::content;
use crate::wire::failure::Failure;

/// Where the keys are kept.
///
/// # Errors
/// When there is no sealing with the keys that are configured.
pub(crate) fn gate(config: &IdempotencyConfig, store: Arc<dyn Store>) -> Result<Gate> {
    let Some((variable, keys)) = &config.seal else { return Ok(Gate::new(store)) };
    let seal = Seal::read(variable, keys.reveal());
    let seal =
        seal.map_err(|bad| Error::new(Code::BadConfig, format!("Answers cannot be sealed: {bad}.")))?;
    Ok(Gate::sealed(store, seal))
}

/// What lets a POST with a key happen once: each token has keys of its own, and without tokens there is one caller.
///
/// # Errors
/// When a figure is out of its bounds.
pub(crate) fn layer(config: &Config, gate: Gate) -> Result<IdempotencyLayer> {
    let scoping = if config.tokens.is_empty() {
        Scoping::unscoped()
    } else {
        Scoping::by(|parts| parts.extensions.get::<Caller>().map(|Caller(name)| Scope::named(name)))
    };
    IdempotencyLayer::new(gate, config.idempotency.policy.clone(), scoping)
        .map_err(|bad| Error::new(Code::BadConfig, format!("In [idempotency], {bad}.")))
}

/// Puts a route behind the keys.
#[derive(Clone)]
pub(crate) struct OnceLayer {
    layer: IdempotencyLayer,
    body_max: usize,
    read_timeout: Duration,
}

impl OnceLayer {
    pub(crate) fn new(house: &House, path: &str) -> Self {
        let body_max = match path {
            "/v1/operations" => content::ONE_MAX,
            "/v1/operations/batch" => content::BATCH_MAX,
            _ => content::SMALL_MAX,
        };
        Self { layer: house.once.clone(), body_max, read_timeout: house.read_timeout }
    }
}

impl Layer<Route> for OnceLayer {
    type Service = Once;

    fn layer(&self, plain: Route) -> Once {
        Once { once: self.layer.layer(plain.clone()), plain, layer: self.clone() }
    }
}

/// A route, and the same behind the keys.
#[derive(Clone)]
pub(crate) struct Once {
    plain: Route,
    once: Idempotency<Route>,
    layer: OnceLayer,
}

type Answering = Pin<Box<dyn Future<Output = std::result::Result<Response, Infallible>> + Send>>;

impl Service<Request> for Once {
    type Response = Response;
    type Error = Infallible;
    type Future = Either<RouteFuture<Infallible>, Answering>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        <Route as Service<Request>>::poll_ready(&mut self.plain, context)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        if !request.headers().contains_key(HEADER) {
            return Either::Left(self.plain.call(request));
        }
        let (mut once, layer) = (self.once.clone(), self.layer.clone());
        Either::Right(Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = match content::read(body, layer.body_max, layer.read_timeout).await {
                Ok(body) => body,
                Err(error) => return Ok(Failure(error).into_response()),
            };
            let request = Request::from_parts(parts, Body::from(body));
            once.call(request).await.map(IntoResponse::into_response)
        }))
    }
}
