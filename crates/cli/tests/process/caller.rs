//! A client of the API that retries while the server is unavailable.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, Request};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

/// The response timeout.
const PATIENCE: Duration = Duration::from_secs(15);
/// The pause between two attempts while the server is unavailable.
const PAUSE: Duration = Duration::from_millis(5);
/// How long one request waits for an operation.
const WAIT_MS: u64 = 5_000;

/// The status and the text of a response.
pub(crate) type StatusAndText = (u16, String);

/// A client that calls the last known address of the server.
#[derive(Clone)]
pub(crate) struct Caller {
    http: Client<HttpConnector, Full<Bytes>>,
    server: watch::Receiver<String>,
    patience: Duration,
}

impl Caller {
    pub(crate) fn new(server: watch::Receiver<String>) -> Self {
        let http = Client::builder(TokioExecutor::new()).build(HttpConnector::new());
        Self { http, server, patience: PATIENCE }
    }

    /// The same with another timeout.
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// A client of a server with a fixed address.
    pub(crate) fn of(address: &str) -> Self {
        Self::new(watch::channel(address.to_owned()).1)
    }

    /// Sends one request with these headers; `None` if no complete response came.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Option<StatusAndText> {
        let (status, _, text) = self.call_full(method, path, headers, body).await?;
        Some((status, text))
    }

    /// The same, with the headers of the response.
    pub(crate) async fn call_full(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Option<(u16, HeaderMap, String)> {
        let uri = format!("{}{path}", *self.server.borrow());
        let mut request =
            Request::builder().method(method).uri(uri).header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let answered = async {
            let answer = self.http.request(request).await.ok()?;
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            let body = answer.into_body().collect().await.ok()?.to_bytes();
            Some((status, headers, String::from_utf8(body.to_vec()).unwrap()))
        };
        timeout(self.patience, answered).await.ok().flatten()
    }

    /// Sends a `GET` to a running server and returns the text.
    pub(crate) async fn get(&self, path: &str) -> String {
        let answered = self.call(Method::GET, path, &[], None).await;
        let (status, body) = answered.unwrap_or_else(|| panic!("no answer to GET {path} in time"));
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Sends a `POST` to a running server, which must accept it, and returns the response.
    pub(crate) async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Value {
        let answered = self.call(Method::POST, path, headers, Some(body)).await;
        let (status, answer) = answered.unwrap_or_else(|| panic!("no answer to POST {path} in time"));
        assert!((200..300).contains(&status), "{path}: {status} {answer}");
        serde_json::from_str(&answer).unwrap()
    }

    /// Submits an operation until it is acknowledged; returns its id and whether it was
    /// deduplicated.
    pub(crate) async fn submit(&self, operation: &Value) -> (String, bool) {
        loop {
            match self.call(Method::POST, "/v1/operations", &[], Some(operation)).await {
                Some((status @ (200 | 202), answer)) => {
                    let answer: Value = serde_json::from_str(&answer).unwrap();
                    let known = answer["deduplicated"].as_bool().unwrap();
                    assert_eq!(known, status == 200, "{answer}");
                    return (answer["id"].as_str().unwrap().to_owned(), known);
                }
                // It is unavailable, or it cannot write just now: retry with the same key.
                None | Some((503, _)) => sleep(PAUSE).await,
                Some((status, answer)) => panic!("{status} {answer}"),
            }
        }
    }

    /// Waits until an acknowledged operation has ended, across restarts; returns its last state.
    pub(crate) async fn wait_until_ended(&self, id: &str) -> String {
        let path = format!("/v1/operations/{id}?wait_ms={WAIT_MS}");
        loop {
            match self.call(Method::GET, &path, &[], None).await {
                Some((200, answer)) => {
                    let answer: Value = serde_json::from_str(&answer).unwrap();
                    let state = answer["state"].as_str().unwrap();
                    if matches!(state, "succeeded" | "failed" | "canceled") {
                        return state.to_owned();
                    }
                }
                None | Some((503, _)) => sleep(PAUSE).await,
                Some((status, answer)) => panic!("{id} was acknowledged and is lost: {status} {answer}"),
            }
        }
    }
}
