//! Requests to the proxy: each passes the idempotency layer with the settings of its route, chosen
//! by its path, and then goes to the upstream.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{Request, Response};
use http_body_util::BodyExt;
use tidegate_idempotency::proxy::{self, ReverseProxy};
use tidegate_idempotency::{
    BoxError, HEADER, Idempotency, IdempotencyLayer, KeyStore, LayerBody, Policy, RefusalDialect,
};
use tower::{Layer, Service};

use crate::config::ProxyConfig;
use crate::edge::auth::PeerAddr;
use crate::path_map::PathMap;

type IdempotentForward = Idempotency<ReverseProxy>;

/// The service for all paths.
#[derive(Clone)]
pub(super) struct ProxyService {
    services: PathMap<(IdempotentForward, RefusalDialect)>,
    forward: ReverseProxy,
    read_timeout: Duration,
    /// The least bytes a second of a request body.
    body_rate_min: usize,
}

impl ProxyService {
    /// # Errors
    /// A message about what cannot be used.
    pub(super) fn new(config: &ProxyConfig, gate: &KeyStore) -> Result<Self, String> {
        let sentence = |error: &dyn std::fmt::Display| format!("Cannot start the proxy: {error}.");
        let forward = ReverseProxy::new(config.upstream.clone()).map_err(|error| sentence(&error))?;
        let handling = |policy: &Policy| {
            let layer = IdempotencyLayer::new(gate.clone(), policy.clone(), config.scope.scoping());
            let layer = layer.map_err(|error| sentence(&error))?;
            Ok::<_, String>((layer.layer(forward.clone()), policy.dialect))
        };
        let mut others = Vec::new();
        for route in &config.routes {
            others.push((route.path.as_str(), handling(&route.policy)?));
        }
        let handlings = PathMap::new(handling(&config.policy)?, others);
        let body_rate_min = config.policy.body_rate_min;
        Ok(Self { services: handlings, forward, read_timeout: config.read_timeout, body_rate_min })
    }
}

impl Service<Request<axum::body::Body>> for ProxyService {
    type Response = Response<LayerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<LayerBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<axum::body::Body>) -> Self::Future {
        let (service, dialect) = self.services.get(request.uri().path());
        let mut service = service.clone();
        request.extensions_mut().insert(*dialect);
        if let Some(answer) = self.forward.early_rejection(&request) {
            return Box::pin(std::future::ready(Ok(answer)));
        }
        // One with a key is read whole first, at a rate that is checked there.
        let rate_min = if request.headers().contains_key(HEADER) { 0 } else { self.body_rate_min };
        let mut request = request.map(|body| {
            let body = body.map_err(|error| Box::new(error) as BoxError).boxed_unsync();
            proxy::with_body_rate(body, self.read_timeout, rate_min)
        });
        if let Some(PeerAddr(peer)) = request.extensions().get().copied() {
            request.extensions_mut().insert(proxy::ClientAddr(peer));
        }
        service.call(request)
    }
}
