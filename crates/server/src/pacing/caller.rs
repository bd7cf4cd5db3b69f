//! Calls to upstreams that this server makes for itself: as operations, through the same limits as
//! those of clients, wherever the partition of the upstream is.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{self, HeaderValue, Method};
use axum::response::Response;
use tidegate_core::hydration::CorrelationId;
use tower::ServiceExt;

use super::target::PREFIX;
use crate::edge::request_id::RequestId;
use crate::routing::{self, RoutingState};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Makes calls to upstreams.
#[derive(Clone)]
pub(crate) enum PacedCaller {
    /// In the one partition of a single node.
    SingleNode(Router),
    /// In whichever partition of the cluster the upstream has.
    Clustered(Arc<RoutingState>),
}

impl PacedCaller {
    /// Makes one call and waits for its response. If the future is dropped, the call is canceled
    /// unless it is in flight.
    ///
    /// # Errors
    /// When it is not a valid request.
    pub(crate) async fn call(
        &self,
        upstream: &str,
        method: Method,
        path: &str,
        body: Bytes,
        id: &CorrelationId,
    ) -> http::Result<Response> {
        let mut request = Request::builder().method(method).uri(format!("{PREFIX}{upstream}{path}"));
        request = request.header(ACCEPT, JSON);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, JSON);
        }
        let mut request = request.body(Body::from(body))?;
        request.extensions_mut().insert(RequestId(id.as_str().into()));
        Ok(match self {
            Self::SingleNode(router) => match router.clone().oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            },
            Self::Clustered(routing) => routing::call_upstream(Arc::clone(routing), request).await,
        })
    }
}
