//! Forwards a request once to the node that owns its partition, over HTTP/2: one connection per
//! node, another for requests that take long, and a third for streams. It reports whether the
//! request may have arrived.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderName, Request, StatusCode};
use axum::response::Response;
use http_body_util::{BodyExt, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tidegate_core::id::Partition;
use tidegate_idempotency::proxy::is_unprocessed;
use tidegate_store::nodes::Node;

use super::{RoutedCall, held_key};
use crate::edge::node_secret::NodeSecret;
use crate::pacing::response::OPERATION;

pub(super) const CALLER: HeaderName = HeaderName::from_static("x-tidegate-caller");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// The response timeout: longer than the longest wait for an operation.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(70);
/// The longest response to a question between nodes.
const ASKED_LEN_MAX: usize = 1024 * 1024;
/// The longest response with claims of another node.
const WORK_LEN_MAX: usize = 64 * 1024 * 1024;
/// A node that does not answer a ping for this long counts as dead.
const SILENCE_MAX: Duration = Duration::from_secs(3);
/// How many bytes of a stream may wait for its reader.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The same for all streams of a connection: a node serves no more than so many on one, so a reader
/// that takes nothing delays no other.
const STREAMS_WINDOW: u32 = 1_024 * STREAM_WINDOW;

/// The outcome of a forwarded request.
#[derive(Debug)]
pub(super) enum ForwardOutcome {
    Answered(Response),
    /// It was not sent, or the other node did not process it.
    NotSent,
    /// The other node does not accept this one's secret and did nothing.
    Refused,
    /// It may have arrived.
    Lost,
}

/// A client that forwards requests to other nodes.
#[derive(Clone)]
pub(crate) struct PeerClient {
    client: Client<HttpConnector, Body>,
    /// The same without pooling: each request has its own connection.
    fresh: Client<HttpConnector, Body>,
    /// For proxied calls, which may take minutes and must not delay others.
    patient: Client<HttpConnector, Body>,
    /// For streams, which stay open as long as their readers.
    streams: Client<HttpConnector, Body>,
    /// The secret that authenticates this node.
    secret: Arc<NodeSecret>,
    /// Nodes with another secret, each logged once.
    strangers: Arc<Mutex<BTreeSet<String>>>,
}

impl PeerClient {
    /// Creates a client with the shared secret of the nodes.
    pub(crate) fn new(secret: Arc<NodeSecret>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .http2_only(true)
            .timer(TokioTimer::new())
            .http2_keep_alive_interval(Some(SILENCE_MAX))
            .http2_keep_alive_timeout(SILENCE_MAX);
        let client = builder.build(connector.clone());
        let patient = builder.build(connector.clone());
        let streams = builder
            .clone()
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(STREAMS_WINDOW)
            .build(connector.clone());
        let fresh = builder.pool_max_idle_per_host(0).build(connector);
        Self { client, fresh, patient, streams, secret, strangers: Arc::default() }
    }

    /// The shared secret of the nodes.
    pub(super) const fn secret(&self) -> &Arc<NodeSecret> {
        &self.secret
    }

    /// Forwards a request.
    pub(super) async fn send(&self, node: &Node, partition: Partition, call: &RoutedCall) -> ForwardOutcome {
        let uri = format!("http://{}/internal/{partition}{}", node.record.address, call.target);
        let mut request = Request::builder().method(call.method.clone()).uri(uri);
        request = request.header(AUTHORIZATION, self.secret.header());
        if let Some(kind) = &call.content_type {
            request = request.header(CONTENT_TYPE, kind.clone());
        }
        request = request.header(CALLER, &*call.caller).header(REQUEST_ID, &*call.request_id);
        if let Some(key) = &call.key {
            request = request.header(&held_key::HEADER, held_key::write(key));
        }
        let Ok(mut request) = request.body(call.take_body()) else { return ForwardOutcome::NotSent };
        let (client, within) = match &call.proxy {
            Some(passing) => {
                passing.pack_headers(request.headers_mut());
                (&self.patient, passing.within + ANSWER_TIMEOUT)
            }
            None => (&self.client, ANSWER_TIMEOUT),
        };
        match tokio::time::timeout(within, client.request(request)).await {
            // Callers are authorized before a request is forwarded, so this is about the nodes' own
            // secret.
            Ok(Ok(response))
                if response.status() == StatusCode::FORBIDDEN
                    && !response.headers().contains_key(OPERATION) =>
            {
                self.log_secret_mismatch(&node.name);
                self.secret.refresh().await;
                ForwardOutcome::Refused
            }
            Ok(Ok(response)) => ForwardOutcome::Answered(response.map(Body::new)),
            // A node that stops closes its connections, also to requests that are on their way.
            Ok(Err(error)) if error.is_connect() || is_unprocessed(&error) => ForwardOutcome::NotSent,
            Ok(Err(error)) => {
                tracing::debug!(%error, node = node.name, "a forwarded request got no response");
                ForwardOutcome::Lost
            }
            Err(_) => ForwardOutcome::Lost,
        }
    }

    /// Sends a question that may take as long as a long poll; `None` if no complete response came.
    pub(super) async fn post(&self, node: &Node, path: &str, body: Bytes) -> Option<(StatusCode, Bytes)> {
        let request = Request::builder().method("POST").uri(format!("http://{}{path}", node.record.address));
        let request = request.header(AUTHORIZATION, self.secret.header());
        let request = request.header(CONTENT_TYPE, "application/json").body(Body::from(body)).ok()?;
        let answer = async {
            let answer = self.patient.request(request).await.ok()?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), WORK_LEN_MAX).collect().await.ok()?;
            Some((status, body.to_bytes()))
        };
        tokio::time::timeout(ANSWER_TIMEOUT, answer).await.ok()?
    }

    /// Sends a GET to a node over a connection of its own; `None` if no complete response came.
    pub(super) async fn ask(&self, address: &str, path: &str) -> Option<(StatusCode, Bytes)> {
        let answer = self.get(&self.fresh, address, path).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ASKED_LEN_MAX).collect().await.ok()?;
        Some((status, body.to_bytes()))
    }

    /// Opens a stream of a node; `None` if the node does not respond with it.
    pub(super) async fn open_stream(&self, node: &Node, path: &str) -> Option<Body> {
        let answer = self.get(&self.streams, &node.record.address, path).await?;
        match answer.status() {
            StatusCode::OK => Some(answer.into_body()),
            StatusCode::FORBIDDEN => {
                self.log_secret_mismatch(&node.name);
                self.secret.refresh().await;
                None
            }
            _ => None,
        }
    }

    async fn get(&self, client: &Client<HttpConnector, Body>, address: &str, path: &str) -> Option<Response> {
        let request = Request::builder().uri(format!("http://{address}{path}"));
        let request = request.header(AUTHORIZATION, self.secret.header());
        let answer = client.request(request.body(Body::empty()).ok()?).await.ok()?;
        Some(answer.map(Body::new))
    }

    /// Logs once that a node does not accept requests from this one; returns whether it did now.
    fn log_secret_mismatch(&self, node: &str) -> bool {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = strangers.insert(node.to_owned());
        if is_new {
            tracing::error!(
                node,
                "it does not accept requests from this node: token_env in [cluster] must give both the same secret, or be set on neither"
            );
        }
        is_new
    }
}
