//! A proxied call, forwarded whole to the node that owns its partition and served there. If the
//! partition moves while the call waits, the call is followed, and its response is the stored one.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, Method};
use axum::response::Response;
use http_body_util::{BodyExt, Limited};
use tidegate_core::OperationId;
use tidegate_core::bounds::PARTITION_RESPONSE_LEN_MAX;
use tidegate_idempotency::OutcomeClass;
use tokio::time::Instant;

use super::placement::{PlacementKey, has_passed_headers};
use super::relay::{self, ForwardRetry};
use super::{RoutedCall, RoutingState};
use crate::api::route::Idempotence;
use crate::pacing::request::{GROUP, end_to_end_headers};
use crate::pacing::response::{self, without_made_up_length};
use crate::pacing::stored;
use crate::pacing::target::ProxyTarget;
use crate::state::ServerState;

/// The prefix of a client's headers between nodes, so that they do not collide with the nodes' own.
const PACKED: &str = "x-tidegate-passed-";
/// The longest time that one poll of an operation waits, in milliseconds.
const LOOK_MS: u128 = 30_000;
/// The pause after a poll without a result.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// What accompanies a proxied call.
#[derive(Debug)]
pub(crate) struct ProxyContext {
    /// The client's own headers.
    pub headers: HeaderMap,
    /// The longest time that it takes.
    pub within: Duration,
}

impl ProxyContext {
    /// Builds the context from a client's headers.
    pub(super) fn from_headers(server: &ServerState, headers: HeaderMap) -> Arc<Self> {
        let headers = end_to_end_headers(headers, server.tokens.are_required());
        Arc::new(Self { headers, within: server.pacing.answer_timeout() })
    }

    /// Adds the client's headers to those of the node.
    pub(super) fn pack_headers(&self, into: &mut HeaderMap) {
        for (name, value) in &self.headers {
            if let Ok(name) = HeaderName::from_bytes(format!("{PACKED}{name}").as_bytes()) {
                into.append(name, value.clone());
            }
        }
    }

    /// Extracts the client's headers again.
    pub(super) fn unpack_headers(server: &ServerState, target: &str, from: &HeaderMap) -> Option<Arc<Self>> {
        if !has_passed_headers(target) {
            return None;
        }
        let mut headers = HeaderMap::new();
        for (name, value) in from {
            let name = name.as_str().strip_prefix(PACKED);
            if let Some(name) = name.and_then(|name| HeaderName::from_bytes(name.as_bytes()).ok()) {
                headers.append(name, value.clone());
            }
        }
        Some(Arc::new(Self { headers, within: server.pacing.answer_timeout() }))
    }

    fn group(&self) -> Option<Cow<'_, str>> {
        self.headers.get(GROUP).map(|group| String::from_utf8_lossy(group.as_bytes()))
    }
}

pub(super) async fn route_proxy_call(routing: &RoutingState, call: RoutedCall) -> Response {
    let begun = Instant::now();
    let response =
        relay::forward_to_partition(routing, partition_of(routing, &call), &call, retry_for(routing, &call))
            .await;
    let response = match response::moved_operation(&response) {
        Some(id) => follow_operation(routing, &call, id, begun + routing.server.pacing.config.wait).await,
        None if response.extensions().get::<OutcomeClass>() == Some(&OutcomeClass::Unknown) => {
            response::unknown_outcome_response(response)
        }
        None => response,
    };
    without_made_up_length(&call.method, response)
}

/// The partition of a call; one whose upstream is unknown has a partition too, which reports that.
fn partition_of(routing: &RoutingState, call: &RoutedCall) -> tidegate_core::id::Partition {
    let Some(ProxyTarget { upstream, .. }) = ProxyTarget::read(&call.target) else { return 0 };
    let group = call.proxy.as_ref().and_then(|passing| passing.group());
    // A call without a group waits for no other: if calls are spread, it may go to any partition.
    let group = group.unwrap_or_else(|| Cow::Borrowed(&*call.request_id));
    PlacementKey::new(upstream.clone(), group).partition(routing)
}

/// Only a call that changes nothing is sent again when it may have arrived: by its method, or
/// according to its dialect.
fn retry_for(routing: &RoutingState, call: &RoutedCall) -> ForwardRetry {
    let headers = call.proxy.as_ref().map(|passing| &passing.headers);
    let content_type = headers.and_then(|headers| headers.get(CONTENT_TYPE)?.to_str().ok());
    let (method, pacing) = (&call.method, &routing.server.pacing);
    let reads = || pacing.only_reads(method.as_str(), &call.target, content_type, &call.body);
    call.retry(|| call.streamed.is_none() && (method.is_safe() || reads()))
}

/// Waits for an operation whose partition moved to another node. It ends there by its deadline at
/// the latest.
async fn follow_operation(
    routing: &RoutingState,
    call: &RoutedCall,
    id: OperationId,
    end: Instant,
) -> Response {
    loop {
        let left = end.saturating_duration_since(Instant::now()).as_millis();
        let look = RoutedCall {
            method: Method::GET,
            target: format!("/v1/operations/{id}?wait_ms={}", left.min(LOOK_MS)),
            body: bytes::Bytes::new(),
            content_type: None,
            idempotence: Idempotence::Always,
            proxy: None,
            streamed: None,
            ..call.clone()
        };
        let response =
            relay::forward_to_partition(routing, id.partition(), &look, look.retry(|| false)).await;
        if let Ok(body) = Limited::new(response.into_body(), PARTITION_RESPONSE_LEN_MAX).collect().await
            && let Some(response) = stored::stored_response(&call.method, id, &body.to_bytes())
        {
            return response;
        }
        if left == 0 {
            return response::timeout_response(id, false, routing.server.pacing.config.wait.as_secs());
        }
        tokio::time::sleep(RETRY_PAUSE).await;
    }
}
