//! The proxy in front of a service, and a client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tidegate_idempotency::proxy::{ClientAddr, ProxyUpstream, ReverseProxy};
use tidegate_idempotency::{
    IdempotencyLayer, KeyStore, LayerBody, Policy, ScopeExtractor, UnknownOutcomePolicy,
};
use tidegate_store::WallClock;
use tower::{Layer, Service};

use crate::service::{full, serving};

/// Longer than anything in these tests takes, however slow the machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) addr: SocketAddr,
    client: Client<HttpConnector, LayerBody>,
}

/// A response as the client received it.
pub(crate) struct ReceivedResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    pub(crate) trailers: Option<HeaderMap>,
}

impl ReceivedResponse {
    /// The code of an error of the proxy's own.
    pub(crate) fn code(&self) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap();
        let code = body["error_code"].as_str().unwrap().to_owned();
        assert_eq!(self.headers["x-tidegate-error"], code, "the header says so too");
        code
    }
}

pub(crate) fn at(addr: SocketAddr) -> ProxyUpstream {
    ProxyUpstream::from_url(&format!("http://{addr}")).unwrap()
}

pub(crate) fn holding() -> Policy {
    Policy::default().with_on_unknown(UnknownOutcomePolicy::Hold)
}

impl World {
    pub(crate) async fn new(upstream: ProxyUpstream, policy: Policy) -> Self {
        let store = tidegate_store_embedded::open("memory:", Arc::new(WallClock)).unwrap();
        let layer = IdempotencyLayer::new(KeyStore::new(store), policy, ScopeExtractor::unscoped()).unwrap();
        let forward = ReverseProxy::new(upstream).unwrap();
        let proxy = layer.layer(forward.clone());
        let addr = serving(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ClientAddr("192.0.2.7:9".parse().unwrap()));
            let turned_away = forward.early_rejection(&request);
            let answering = proxy.clone().call(request);
            async move {
                if let Some(answer) = turned_away {
                    return answer;
                }
                let Ok(answer) = answering.await;
                answer
            }
        })
        .await;
        Self { addr, client: Client::builder(TokioExecutor::new()).build(HttpConnector::new()) }
    }

    pub(crate) async fn ask(&self, request: http::request::Builder, body: LayerBody) -> ReceivedResponse {
        let answer = tokio::time::timeout(PATIENCE, self.begin(request, body)).await.unwrap();
        read_response(answer).await
    }

    /// Sends a request and returns as soon as the head of the response is there.
    pub(crate) async fn begin(&self, request: http::request::Builder, body: LayerBody) -> Response<Incoming> {
        self.client.request(request.body(body).unwrap()).await.unwrap()
    }

    /// Returns whether the client sees that the response broke off.
    pub(crate) async fn breaks(&self, request: http::request::Builder, body: LayerBody) -> bool {
        match self.client.request(request.body(body).unwrap()).await {
            Ok(answer) => answer.into_body().collect().await.is_err(),
            Err(_) => true,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// A POST with a key.
    pub(crate) async fn post(&self, key: &str, body: &'static str) -> ReceivedResponse {
        self.ask(Request::post(self.url("/items")).header("idempotency-key", key), full(body)).await
    }
}

pub(crate) async fn read_response(answer: Response<Incoming>) -> ReceivedResponse {
    let (parts, body) = answer.into_parts();
    let body = tokio::time::timeout(PATIENCE, body.collect()).await.unwrap().unwrap();
    let trailers = body.trailers().cloned();
    let body: Bytes = body.to_bytes();
    let body = String::from_utf8(body.to_vec()).unwrap();
    ReceivedResponse { status: parts.status.as_u16(), headers: parts.headers, body, trailers }
}
