//! Passes a call on to the node that owns its partition: HTTP/2, one connection for each node and one more for what takes
//! long, once. It says whether the
//! call may have arrived.

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
use tidegate_store::nodes::Node;

use super::RoutedCall;
use crate::edge::node_secret::NodeSecret;
use crate::pacing::response::OPERATION;

pub(super) const CALLER: HeaderName = HeaderName::from_static("x-tidegate-caller");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Longer than the longest wait for an operation.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(70);
/// Longest answer to a question between nodes.
const ASKED_LEN_MAX: usize = 1024 * 1024;
/// A node that does not answer a ping for this long is taken for gone.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// What became of a call that was passed on.
#[derive(Debug)]
pub(super) enum ForwardOutcome {
    Answered(Response),
    /// It has not left.
    NotSent,
    /// The other node does not know this one's secret, and has done nothing.
    Refused,
    /// It may have arrived.
    Lost,
}

/// Passes calls on.
#[derive(Clone)]
pub(crate) struct PeerClient {
    client: Client<HttpConnector, Body>,
    /// The same without a memory: each call is made over a line of its own.
    fresh: Client<HttpConnector, Body>,
    /// For calls that are passed on to an upstream: they may take minutes, and hold up nobody else.
    patient: Client<HttpConnector, Body>,
    /// What it says to be let in.
    secret: Arc<NodeSecret>,
    /// Nodes that do not know the secret, each told of once.
    strangers: Arc<Mutex<BTreeSet<String>>>,
}

impl PeerClient {
    /// With the secret that nodes know each other by.
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
        let fresh = builder.pool_max_idle_per_host(0).build(connector);
        Self { client, fresh, patient, secret, strangers: Arc::default() }
    }

    /// The secret that nodes know each other by.
    pub(super) const fn secret(&self) -> &Arc<NodeSecret> {
        &self.secret
    }

    /// Passes a call on.
    pub(super) async fn send(&self, node: &Node, partition: Partition, call: &RoutedCall) -> ForwardOutcome {
        let uri = format!("http://{}/internal/{partition}{}", node.address, call.target);
        let mut request = Request::builder().method(call.method.clone()).uri(uri);
        request = request.header(AUTHORIZATION, self.secret.header());
        if let Some(kind) = &call.content_type {
            request = request.header(CONTENT_TYPE, kind.clone());
        }
        request = request.header(CALLER, &*call.caller).header(REQUEST_ID, &*call.request_id);
        let Ok(mut request) = request.body(call.take_body()) else { return ForwardOutcome::NotSent };
        let (client, within) = match &call.proxy {
            Some(passing) => {
                passing.pack_headers(request.headers_mut());
                (&self.patient, passing.within + ANSWER_TIMEOUT)
            }
            None => (&self.client, ANSWER_TIMEOUT),
        };
        match tokio::time::timeout(within, client.request(request)).await {
            // Callers are let in before a call is passed on: this is about the nodes' own secret.
            Ok(Ok(response))
                if response.status() == StatusCode::FORBIDDEN
                    && !response.headers().contains_key(OPERATION) =>
            {
                self.log_secret_mismatch(&node.name);
                self.secret.refresh().await;
                ForwardOutcome::Refused
            }
            Ok(Ok(response)) => ForwardOutcome::Answered(response.map(Body::new)),
            Ok(Err(error)) if error.is_connect() => ForwardOutcome::NotSent,
            Ok(Err(error)) => {
                tracing::debug!(%error, node = node.name, "a call that was passed on was not answered");
                ForwardOutcome::Lost
            }
            Err(_) => ForwardOutcome::Lost,
        }
    }

    /// Asks a node something, over a line of its own; nothing when no whole answer came.
    pub(super) async fn ask(&self, address: &str, path: &str) -> Option<(StatusCode, Bytes)> {
        let request = Request::builder().uri(format!("http://{address}{path}"));
        let request = request.header(AUTHORIZATION, self.secret.header());
        let answer = self.fresh.request(request.body(Body::empty()).ok()?).await.ok()?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), ASKED_LEN_MAX).collect().await.ok()?;
        Some((status, body.to_bytes()))
    }

    /// Says that a node does not take calls from this one, the first time; whether this was it.
    fn log_secret_mismatch(&self, node: &str) -> bool {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = strangers.insert(node.to_owned());
        if is_new {
            tracing::error!(
                node,
                "it does not take calls from this node: token_env in [cluster] must give both the same secret, or be set at neither"
            );
        }
        is_new
    }
}
