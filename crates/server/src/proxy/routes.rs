//! Which choices are for which path: the longest route that fits decides. Paths are compared as a service would read them, so
//! that no spelling of one slips past its route.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::{Request, Response};
use http_body_util::BodyExt;
use tidegate_idempotency::proxy::{self, Forward};
use tidegate_idempotency::{Body, BoxError, Gate, Idempotency, IdempotencyLayer, Policy};
use tower::{Layer, Service};

use crate::config::{ProxyConfig, ProxyRoute};
use crate::edge::auth::Peer;

type Handling = Idempotency<Forward>;

/// One service for all paths.
#[derive(Clone)]
pub(super) struct Routes {
    usual: Handling,
    others: Arc<[(Vec<Vec<u8>>, Handling)]>,
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
            others.push((ProxyRoute::segments(&route.path), handling(&route.policy)?));
        }
        others.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Ok(Self {
            usual: handling(&config.policy)?,
            others: others.into(),
            forward,
            read_timeout: config.read_timeout,
        })
    }

    fn of(&self, path: &str) -> &Handling {
        if self.others.is_empty() {
            return &self.usual;
        }
        let asked = ProxyRoute::segments(path);
        let fits = self.others.iter().find(|(path, _)| asked.starts_with(path));
        fits.map_or(&self.usual, |(_, handling)| handling)
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
        self.of(request.uri().path()).clone().call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-5, IDM-12: a route is for whole segments, however they are spelled.
    #[test]
    fn no_spelling_of_a_path_slips_past_its_route() {
        let segments = ProxyRoute::segments;
        let route = segments("/payments/card");
        for path in [
            "/payments/card",
            "/payments/card/",
            "//payments//card/7",
            "/%70ayments/card",
            "/./payments/x/../card",
            "/payments%2Fcard",
        ] {
            assert!(segments(path).starts_with(&route), "{path}");
        }
        for path in ["/", "/payments", "/payments/cards", "/x/payments/card", "/payments/card/../.."] {
            assert!(!segments(path).starts_with(&route), "{path}");
        }
    }
}
