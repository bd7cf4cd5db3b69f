//! Passes a call on to the node that owns its partition: HTTP/2, one connection for each node, once. It says whether the
//! call may have arrived.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Request, StatusCode};
use axum::response::Response;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tidegate_core::id::Partition;
use tidegate_store::nodes::Node;

use super::Call;

pub(super) const CALLER: HeaderName = HeaderName::from_static("x-tidegate-caller");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// Longer than the longest wait for an operation.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(70);
/// A node that does not answer a ping for this long is taken for gone.
const SILENCE_MAX: Duration = Duration::from_secs(3);

/// What became of a call that was passed on.
#[derive(Debug)]
pub(super) enum Passed {
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
pub(crate) struct Courier {
    client: Client<HttpConnector, Full<Bytes>>,
    token: Option<HeaderValue>,
    /// Nodes that do not know the secret, each told of once.
    strangers: Arc<Mutex<BTreeSet<String>>>,
}

impl Courier {
    /// With the secret that nodes know each other by.
    pub(crate) fn new(token: Option<&str>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let client = Client::builder(TokioExecutor::new())
            .http2_only(true)
            .timer(TokioTimer::new())
            .http2_keep_alive_interval(Some(SILENCE_MAX))
            .http2_keep_alive_timeout(SILENCE_MAX)
            .build(connector);
        let token = token.and_then(|token| {
            let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Self { client, token, strangers: Arc::default() }
    }

    /// What a node says to be let in.
    pub(super) const fn token(&self) -> Option<&HeaderValue> {
        self.token.as_ref()
    }

    /// Passes a call on.
    pub(super) async fn send(&self, node: &Node, partition: Partition, call: &Call) -> Passed {
        let uri = format!("http://{}/internal/{partition}{}", node.address, call.target);
        let mut request = Request::builder().method(call.method.clone()).uri(uri);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token.clone());
        }
        if let Some(kind) = &call.content_type {
            request = request.header(CONTENT_TYPE, kind.clone());
        }
        request = request.header(CALLER, &*call.caller).header(REQUEST_ID, &*call.request_id);
        let Ok(request) = request.body(Full::new(call.body.clone())) else { return Passed::NotSent };
        match tokio::time::timeout(ANSWER_TIMEOUT, self.client.request(request)).await {
            // Callers are let in before a call is passed on: this is about the nodes' own secret.
            Ok(Ok(response)) if response.status() == StatusCode::FORBIDDEN => {
                self.tell_of_stranger(&node.name);
                Passed::Refused
            }
            Ok(Ok(response)) => Passed::Answered(response.map(Body::new)),
            Ok(Err(error)) if error.is_connect() => Passed::NotSent,
            Ok(Err(error)) => {
                tracing::debug!(%error, node = node.name, "a call that was passed on was not answered");
                Passed::Lost
            }
            Err(_) => Passed::Lost,
        }
    }

    /// Says that a node does not take calls from this one, the first time; whether this was it.
    fn tell_of_stranger(&self, node: &str) -> bool {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = strangers.insert(node.to_owned());
        if is_new {
            tracing::error!(
                node,
                "it does not take calls from this node: token_env in [cluster] must give both the same secret"
            );
        }
        is_new
    }
}
