//! A request to one partition: served locally, or forwarded to the node that owns it. While no node
//! does, and during a handoff, it is held for a moment and retried, as far as that is safe.

mod forward_trace;

use std::sync::Arc;
use std::time::Duration;

use axum::http::{Request, StatusCode};
use axum::response::{IntoResponse, Response};
use tidegate_cluster::PartitionRoute;
use tidegate_core::id::Partition;
use tidegate_core::{OperationId, Placement};
use tokio::time::Instant;
use tower::ServiceExt;

use super::peer_client::ForwardOutcome;
use super::placement::{self, PlacementKey};
use super::{RoutedCall, RoutingState};
use crate::edge::auth::Caller;
use crate::edge::request_id::RequestId;
use crate::error::{Error, ErrorCode};
use crate::generations;
use crate::pacing::response::{OPERATION, without_made_up_length};
use crate::wire::error::ApiError;
use forward_trace::ForwardTrace;

/// How long a request is held during a handoff of its partition. A failover after a crash is
/// shorter.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(12);
/// The timeout of one lookup of the owner.
const LOOKUP_TIMEOUT: Duration = Duration::from_millis(250);

/// How long the response of a dead node may still be on its way.
const GONE_GRACE: Duration = Duration::from_secs(1);

/// Whether a request may be sent again when it is unknown whether it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ForwardRetry {
    Allowed,
    Forbidden,
}

pub(super) async fn by_id(routing: &RoutingState, call: RoutedCall) -> Response {
    match placement::id_in(&call.target) {
        Some(id) if id.partition() < routing.cluster.partitions() => {
            forward_to_partition(routing, id.partition(), &call, call.retry(|| false)).await
        }
        // That partition reports that there is no such operation.
        _ => forward_to_partition(routing, 0, &call, ForwardRetry::Allowed).await,
    }
}

pub(super) async fn by_placement(routing: &RoutingState, call: RoutedCall) -> Response {
    let head = PlacementKey::read(&call.body);
    let (partition, again) = (head.partition(routing), call.retry(|| head.may_be_repeated()));
    forward_to_partition(routing, partition, &call, again).await
}

pub(super) async fn by_guild(routing: &RoutingState, call: RoutedCall) -> Response {
    let partition = PlacementKey::from_deployment(&call.body).partition(routing);
    forward_to_partition(routing, partition, &call, call.retry(|| false)).await
}

pub(super) async fn by_limit(routing: &RoutingState, call: RoutedCall) -> Response {
    let upstream = placement::upstream_in(&call.target);
    if routing.spread.contains(&upstream) {
        let message =
            format!("The upstream {upstream} is spread by group; its limits are not in one partition.");
        return ApiError(Error::new(ErrorCode::NotNow, message)).into_response();
    }
    let partition = Placement::Upstream(&upstream).partition(routing.cluster.partitions());
    forward_to_partition(routing, partition, &call, call.retry(|| false)).await
}

/// A request to the partition that has all generations.
pub(super) async fn to_generations(routing: &RoutingState, call: RoutedCall) -> Response {
    let partition = generations::partition(routing.cluster.partitions());
    // A generation under a key is created once, however often it is asked for.
    let again = call.retry(|| call.key.is_some());
    forward_to_partition(routing, partition, &call, again).await
}

/// A webhook: to the partition of the operation that its token names.
pub(super) async fn by_webhook(routing: &RoutingState, call: RoutedCall) -> Response {
    let partitions = routing.cluster.partitions();
    let operation = placement::webhook_operation(&call.target);
    let partition = operation.map(OperationId::partition).filter(|partition| *partition < partitions);
    // A token that names no operation is refused where the generations are.
    let partition = partition.unwrap_or_else(|| generations::partition(partitions));
    forward_to_partition(routing, partition, &call, ForwardRetry::Allowed).await
}

/// Sends a request to the partition, wherever it is.
pub(super) async fn forward_to_partition(
    routing: &RoutingState,
    partition: Partition,
    call: &RoutedCall,
    again: ForwardRetry,
) -> Response {
    let begun = Instant::now();
    let mut end = begun + FORWARD_TIMEOUT;
    let mut trace = ForwardTrace::default();
    loop {
        let route = routing.cluster.route(partition);
        let passed = match &route {
            PartitionRoute::ThisNode => call_local(routing, partition, call).await,
            PartitionRoute::OtherNode(node) => tokio::select! {
                passed = routing.peers.send(node, partition, call) => passed,
                () = wait_until_gone(routing, node) => ForwardOutcome::Lost,
            },
            PartitionRoute::Unowned => ForwardOutcome::NotSent,
        };
        trace.record(&route, &passed);
        match passed {
            ForwardOutcome::Answered(response) if !has_moved(&response) => return response,
            // It was sent with a body that was not buffered.
            _ if call.is_spent() => return trace.failure_response(partition, call, ForwardRetry::Forbidden),
            ForwardOutcome::Lost if again == ForwardRetry::Forbidden => {
                return trace.failure_response(partition, call, again);
            }
            // It may have waited there for long, and still has time.
            ForwardOutcome::Answered(_) | ForwardOutcome::Lost => {
                end = extended_deadline(call, begun).unwrap_or(end);
            }
            ForwardOutcome::NotSent | ForwardOutcome::Refused => {}
        }
        if Instant::now() >= end {
            return trace.failure_response(partition, call, again);
        }
        routing.cluster.route_after(partition, &route, LOOKUP_TIMEOUT).await;
    }
}

/// Until when a call that waits for an upstream is retried on another node.
fn extended_deadline(call: &RoutedCall, begun: Instant) -> Option<Instant> {
    call.proxy.as_ref().map(|passing| (Instant::now() + FORWARD_TIMEOUT).min(begun + passing.within))
}

/// Serves the request locally, if this node has the partition.
pub(super) async fn call_local(
    routing: &RoutingState,
    partition: Partition,
    call: &RoutedCall,
) -> ForwardOutcome {
    let Some(router) = routing.partitions.router(partition) else { return ForwardOutcome::NotSent };
    let mut request = Request::builder().method(call.method.clone()).uri(&call.target);
    if let Some(kind) = &call.content_type {
        request = request.header(axum::http::header::CONTENT_TYPE, kind.clone());
    }
    let Ok(mut request) = request.body(call.take_body()) else { return ForwardOutcome::NotSent };
    if let Some(passing) = &call.proxy {
        request.headers_mut().clone_from(&passing.headers);
    }
    request.extensions_mut().insert(Caller(Arc::clone(&call.caller)));
    request.extensions_mut().insert(RequestId(Arc::clone(&call.request_id)));
    if let Some(key) = &call.key {
        request.extensions_mut().insert(key.clone());
    }
    match router.oneshot(request).await {
        // Whether a response has no body is only known here, where it leaves the router.
        Ok(response) if call.proxy.is_some() => {
            ForwardOutcome::Answered(without_made_up_length(&call.method, response))
        }
        Ok(response) => ForwardOutcome::Answered(response),
        Err(never) => match never {},
    }
}

/// Resolves when a node is dead and has not responded for a moment after that. A node that has only
/// handed off the partition still responds.
async fn wait_until_gone(routing: &RoutingState, node: &tidegate_store::nodes::Node) {
    let mut cluster = routing.cluster.clone();
    while cluster.view().nodes.iter().any(|there| there.name == node.name) {
        cluster.changed().await;
    }
    tokio::time::sleep(GONE_GRACE).await;
}

/// Whether nothing was done because the partition has moved.
pub(super) fn has_moved(response: &Response) -> bool {
    // An upstream may return this status too, but then the response names an operation.
    (response.status() == StatusCode::MISDIRECTED_REQUEST && !response.headers().contains_key(OPERATION))
        || response.extensions().get::<ErrorCode>() == Some(&ErrorCode::Stopping)
}
