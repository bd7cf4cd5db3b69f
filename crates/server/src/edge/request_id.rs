//! The id of a request: the caller's `X-Request-Id` if it is valid, else a generated one. It is
//! stored with the operation and returned in the response.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tidegate_core::Time;
use tidegate_core::bounds::TRACE_LEN_MAX;

use crate::pacing::response::is_from_upstream;
use crate::state::ServerState;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// Generates ids: the start time and a counter.
#[derive(Debug)]
pub(crate) struct RequestIds {
    started: u64,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) const fn new(now: Time) -> Self {
        Self { started: now.as_micros(), next: AtomicU64::new(1) }
    }

    fn make(&self) -> String {
        format!("req_{:x}_{}", self.started, self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// The id, for handlers.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub Arc<str>);

pub(crate) async fn layer(
    State(server): State<Arc<ServerState>>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(&HEADER).and_then(|value| value.to_str().ok());
    let fit = given.filter(|id| !id.is_empty() && id.len() <= TRACE_LEN_MAX);
    let id: Arc<str> = fit.map_or_else(|| server.request_ids.make().into(), Arc::from);
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));
    let mut response = next.run(request).await;
    // An upstream's own id stays: its support asks for that one.
    let has_other = is_from_upstream(&response) && response.headers().contains_key(&HEADER);
    if let Ok(value) = HeaderValue::from_str(&id)
        && !has_other
    {
        response.headers_mut().insert(HEADER, value);
    }
    response
}
