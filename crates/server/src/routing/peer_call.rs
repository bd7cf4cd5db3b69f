//! A request that another node forwarded: served by the local partition, or returned because this
//! node does not own it. It is never forwarded again.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tidegate_core::id::Partition;

use super::peer_client::{CALLER, ForwardOutcome};
use super::proxy_call::ProxyContext;
use super::{RoutedCall, RoutingState, content_type, held_key, read_proxied_body, relay};
use crate::api::route::Idempotence;
use crate::edge::content::{self, BodyBound};
use crate::edge::request_id::RequestId;
use crate::wire::error::ApiError;

pub(crate) async fn handle_peer_call(State(routing): State<Arc<RoutingState>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // Not an extractor: the rest of the path may belong to an upstream, and need not be text.
    let Some(partition) = partition_in(parts.uri.path()) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let prefix = format!("/internal/{partition}");
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let target = target.strip_prefix(&prefix).unwrap_or(target).to_owned();
    let caller = parts.headers.get(&CALLER).and_then(|caller| caller.to_str().ok()).unwrap_or("node").into();
    let request_id = parts.extensions.get::<RequestId>().map_or_else(|| "".into(), |id| Arc::clone(&id.0));
    let content_type = content_type(&parts.headers);
    let key = parts.headers.get(&held_key::HEADER).and_then(held_key::read);
    let passing = ProxyContext::unpack_headers(&routing.server, &target, &parts.headers);
    let read = match &passing {
        Some(_) => read_proxied_body(&routing.server, body).await,
        None => {
            let read = content::read(body, BodyBound::Batch.len_max(), routing.server.read_timeout).await;
            read.map(|body| (body, None)).map_err(ApiError)
        }
    };
    let (body, streamed) = match read {
        Ok(read) => read,
        Err(failure) => return failure.into_response(),
    };
    let call = RoutedCall {
        method: parts.method,
        target,
        content_type,
        body,
        idempotence: Idempotence::Never,
        caller,
        request_id,
        key,
        proxy: passing,
        streamed,
    };
    match relay::call_local(&routing, partition, &call).await {
        ForwardOutcome::Answered(response) if !relay::has_moved(&response) => response,
        _ => StatusCode::MISDIRECTED_REQUEST.into_response(),
    }
}

/// The partition that a path among nodes names.
fn partition_in(path: &str) -> Option<Partition> {
    path.strip_prefix("/internal/")?.split('/').next()?.parse().ok()
}
