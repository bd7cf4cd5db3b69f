//! Routing in a node that shares its store with others. Every node serves every request: it finds
//! the partition of the request, serves it from its own engine, or forwards it once to the node
//! that owns the partition. What a request means is decided in the partition's own router; routing
//! reads no more than it needs to find the partition.

mod batch;
mod cursor;
mod drainer;
pub(crate) mod events;
mod fan_out;
pub(crate) mod flights;
pub(crate) mod handshake;
mod held_key;
mod local_partitions;
pub(crate) mod node_routes;
mod operations;
pub(crate) mod peer_call;
mod peer_client;
mod placement;
mod proxy_call;
mod relay;
mod submit;
#[cfg(test)]
mod tests;
pub(crate) mod work;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use tidegate_cluster::Cluster;
use tidegate_idempotency::HeldKey;
use tidegate_upstream::http::stream::StreamedBody;

pub(crate) use drainer::wake_drainers;
pub(crate) use handshake::{HandshakeClient, NodeHandshake};
pub(crate) use local_partitions::{LocalPartitionHost, LocalPartitions, PartitionSetup};
pub(crate) use node_routes::cluster_view_json as show_view;
pub(crate) use peer_client::PeerClient;
pub(crate) use placement::RoutingRule;

use crate::api;
use crate::api::route::{Idempotence, Route, RouteService, RouteSpec};
use crate::api::routes;
use crate::edge::auth::Caller;
use crate::edge::completion_token;
use crate::edge::content::{self, BodyBound, IncomingBody};
use crate::edge::guard::GuardedRouter;
use crate::edge::repeated_submission::SubmittedOperation;
use crate::edge::request_id::RequestId;
use crate::error::{Error, ErrorCode};
use crate::pacing::body::stream_body;
use crate::state::ServerState;
use crate::wire::error::ApiError;
use proxy_call::ProxyContext;
use relay::ForwardRetry;

/// How long a request is held while this node joins.
const JOIN: Duration = Duration::from_secs(12);

/// The state of the routing layer.
pub(crate) struct RoutingState {
    pub cluster: Cluster,
    pub partitions: Arc<LocalPartitions>,
    pub peers: PeerClient,
    pub server: Arc<ServerState>,
    /// What this node tells other nodes about itself.
    pub handshake: Arc<NodeHandshake>,
    /// Upstreams whose operations are spread by group; all others have one partition each.
    pub spread: BTreeSet<String>,
}

/// A request to route, after its caller was authorized and its body read.
#[derive(Clone, Debug)]
pub(crate) struct RoutedCall {
    pub method: axum::http::Method,
    /// Path and query.
    pub target: String,
    pub content_type: Option<axum::http::HeaderValue>,
    pub body: Bytes,
    pub idempotence: Idempotence,
    pub caller: Arc<str>,
    pub request_id: Arc<str>,
    /// The idempotency key that it holds.
    pub key: Option<HeldKey>,
    /// For a proxied call, the client's own headers.
    pub proxy: Option<Arc<ProxyContext>>,
    /// A body that is too large to be buffered, until it is sent.
    pub streamed: Option<Arc<OneShotBody>>,
}

/// A body that can be sent only once.
#[derive(Debug)]
pub(crate) struct OneShotBody(Mutex<Option<StreamedBody>>);

impl RoutedCall {
    /// Takes the body to send it.
    fn take_body(&self) -> Body {
        match &self.streamed {
            Some(streamed) => {
                let mut streamed = streamed.0.lock().unwrap_or_else(PoisonError::into_inner);
                streamed.take().map_or_else(Body::empty, Body::new)
            }
            None => Body::from(self.body.clone()),
        }
    }

    /// Whether the body was already sent with an earlier attempt, so that it cannot be sent again.
    fn is_spent(&self) -> bool {
        self.streamed
            .as_ref()
            .is_some_and(|streamed| streamed.0.lock().unwrap_or_else(PoisonError::into_inner).is_none())
    }

    /// Whether it may be sent again when it is unknown whether it arrived. `is_repeatable` says it
    /// of this request, where it depends on that.
    fn retry(&self, is_repeatable: impl FnOnce() -> bool) -> ForwardRetry {
        let is_allowed = match self.idempotence {
            Idempotence::Always => true,
            Idempotence::ByRequest => is_repeatable(),
            Idempotence::Never => false,
        };
        if is_allowed { ForwardRetry::Allowed } else { ForwardRetry::Forbidden }
    }

    /// Returns the same request with another target.
    fn with_target(&self, target: String) -> Self {
        Self { target, ..self.clone() }
    }
}

/// The routes of a node of a cluster.
pub(crate) fn router(routing: &Arc<RoutingState>) -> GuardedRouter {
    let serve = |Route { spec, service }: Route| match service {
        RouteService::Partition(rule, _) => {
            let routing = Arc::clone(routing);
            let call = spec.handle(move |request: Request| route_call(routing, spec, rule, request));
            Some((spec, call))
        }
        RouteService::EachNode { clustered: call, .. } | RouteService::Peers(call) => {
            Some((spec, call.with_state(Arc::clone(routing))))
        }
        service => api::serve_anywhere(&routing.server, service).map(|call| (spec, call)),
    };
    api::guarded_router(&routing.server, Some(Arc::clone(routing.peers.secret())), serve)
}

/// Routes a call that this node makes for itself through the paced proxy.
pub(crate) async fn call_upstream(routing: Arc<RoutingState>, request: Request) -> Response {
    route_call(routing, routes::proxy_spec(), RoutingRule::Proxy, request).await
}

async fn route_call(
    routing: Arc<RoutingState>,
    spec: RouteSpec,
    rule: RoutingRule,
    request: Request,
) -> Response {
    if rule.uses_local_config()
        && let Err(failure) = require_joined(&routing).await
    {
        return failure.into_response();
    }
    let headers = if rule == RoutingRule::Submission { request.headers().clone() } else { HeaderMap::new() };
    let submitted = request.extensions().get::<SubmittedOperation>().copied();
    match read_call(&routing, spec, rule, request).await {
        Ok(call) => match rule {
            RoutingRule::Operation | RoutingRule::Completion | RoutingRule::Generation => {
                relay::by_id(&routing, call).await
            }
            RoutingRule::Submission => submit::route_submission(&routing, call, &headers, submitted).await,
            RoutingRule::Batch => batch::route_batch(&routing, call).await,
            RoutingRule::Deployment => relay::by_guild(&routing, call).await,
            RoutingRule::Operations => operations::list(&routing, call).await,
            RoutingRule::Summary => fan_out::summary(&routing, call).await,
            RoutingRule::Groups => fan_out::groups(&routing, call).await,
            RoutingRule::Group => fan_out::group(&routing, call).await,
            RoutingRule::Pause => fan_out::pause(&routing, call).await,
            RoutingRule::GroupRerun => fan_out::rerun_failed(&routing, call).await,
            RoutingRule::Bulk => fan_out::bulk(&routing, call).await,
            RoutingRule::Limits => fan_out::limits(&routing, call).await,
            RoutingRule::Limit => relay::by_limit(&routing, call).await,
            RoutingRule::Extensions => work::route_claims(&routing, call, "claims").await,
            RoutingRule::Settlements => work::route_claims(&routing, call, "settlements").await,
            RoutingRule::Proxy => proxy_call::route_proxy_call(&routing, call).await,
            RoutingRule::Generations => relay::to_generations(&routing, call).await,
            RoutingRule::Webhook => relay::by_webhook(&routing, call).await,
        },
        Err(failure) => failure.into_response(),
    }
}

/// Fails while this node has not joined: it might place operations where the others do not look for
/// them.
async fn require_joined(routing: &RoutingState) -> Result<(), ApiError> {
    if routing.cluster.has_joined() {
        return Ok(());
    }
    let view = routing.cluster.wait_until_decided(JOIN).await;
    if view.joined {
        return Ok(());
    }
    let why = view.problem.unwrap_or_else(|| "it has not joined the others yet".to_owned());
    let message = format!("This node takes no part: {why}. Nothing was accepted; ask another node.");
    Err(ApiError(Error::new(ErrorCode::StoreUnavailable, message)))
}

async fn read_call(
    routing: &RoutingState,
    spec: RouteSpec,
    rule: RoutingRule,
    request: Request,
) -> Result<RoutedCall, ApiError> {
    let (parts, body) = request.into_parts();
    let (body, streamed) = match spec.body {
        BodyBound::NoBody => (Bytes::new(), None),
        BodyBound::Proxied => read_proxied_body(&routing.server, body).await?,
        bound => (content::read(body, bound.len_max(), routing.server.read_timeout).await?, None),
    };
    let target = match rule {
        RoutingRule::Completion => completion_token::target_with_token(&parts),
        _ => parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
    };
    let caller =
        parts.extensions.get::<Caller>().map_or_else(|| Caller::LOCAL.into(), |caller| Arc::clone(&caller.0));
    let request_id = parts.extensions.get::<RequestId>().map_or_else(|| "".into(), |id| Arc::clone(&id.0));
    let content_type = content_type(&parts.headers);
    let key = parts.extensions.get::<HeldKey>().cloned();
    let passing = rule.passes_headers().then(|| ProxyContext::from_headers(&routing.server, parts.headers));
    Ok(RoutedCall {
        method: parts.method,
        target,
        content_type,
        body,
        idempotence: spec.idempotence,
        caller,
        request_id,
        key,
        proxy: passing,
        streamed,
    })
}

/// Reads the body of a proxied call, or the beginning of one that is too large to be buffered.
async fn read_proxied_body(
    server: &ServerState,
    body: Body,
) -> Result<(Bytes, Option<Arc<OneShotBody>>), ApiError> {
    let arriving = content::read_or_stream(body, BodyBound::Proxied.len_max(), server.read_timeout).await?;
    Ok(match arriving {
        IncomingBody::Whole(body) => (body, None),
        IncomingBody::Partial { first, rest, len } => {
            let body = stream_body(first, Some(rest), len, server.read_timeout);
            (Bytes::new(), Some(Arc::new(OneShotBody(Mutex::new(Some(body))))))
        }
    })
}

fn content_type(headers: &HeaderMap) -> Option<axum::http::HeaderValue> {
    headers.get(axum::http::header::CONTENT_TYPE).cloned()
}
