//! What comes to the proxy: by its path it gets the layer with the settings of its route, and behind
//! that the one way to the upstream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{Request, Response};
use http_body_util::BodyExt;
use tidegate_idempotency::proxy::{self, Forward};
use tidegate_idempotency::{Body, BoxError, Gate, Idempotency, IdempotencyLayer, Policy};
use tower::{Layer, Service};

use crate::by_path::ByPath;
use crate::config::ProxyConfig;
use crate::edge::auth::Peer;

type Handling = Idempotency<Forward>;

/// One service for all paths.
#[derive(Clone)]
pub(super) struct Routes {
    handlings: ByPath<Handling>,
    forward: Forward,
    read_timeout: Duration,
}

impl Routes {
    /// # Errors
    /// A sentence about what cannot be used.
    pub(super) fn new(config: &ProxyConfig, gate: &Gate) -> Result<Self, String> {
        let sentence = |error: &dyn std::fmt::Display| format!("The proxy cannot be started: {error}.");
        let forward = Forward::new(config.upstream.clone()).map_err(|error| sentence(&error))?;
        let handling = |policy: &Policy| {
            let layer = IdempotencyLayer::new(gate.clone(), policy.clone(), config.scope.scoping());
            layer.map(|layer| layer.layer(forward.clone())).map_err(|error| sentence(&error))
        };
        let mut others = Vec::new();
        for route in &config.routes {
            others.push((route.path.as_str(), handling(&route.policy)?));
        }
        let handlings = ByPath::new(handling(&config.policy)?, others);
        Ok(Self { handlings, forward, read_timeout: config.read_timeout })
    }
}

impl Service<Request<axum::body::Body>> for Routes {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<axum::body::Body>) -> Self::Future {
        if let Some(answer) = self.forward.turned_away(&request) {
            return Box::pin(std::future::ready(Ok(answer)));
        }
        let mut request = request.map(|body| {
            proxy::patient(
                body.map_err(|error| Box::new(error) as BoxError).boxed_unsync(),
                self.read_timeout,
            )
        });
        if let Some(Peer(peer)) = request.extensions().get().copied() {
            request.extensions_mut().insert(proxy::Peer(peer));
        }
        self.handlings.of(request.uri().path()).clone().call(request)
    }
}
