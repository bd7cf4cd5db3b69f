//! One request to any URL, at most once on the wire: no proxy, no redirect, no retry. Whether the
//! request was sent is told apart from whether a response came. For clients that build whole
//! requests themselves, such as those of image providers.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_LENGTH, HOST, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request};
use tidegate_core::AttemptEnd;
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};

use super::connect::Connector;
use super::connections::{Connections, PooledResponse};
use super::response::format_span;
use super::send::innermost;
use super::send_state::{SendState, WithdrawableBody};
use super::target::origin;

/// Most origins whose connections are kept.
const ORIGINS_MAX: usize = 256;

/// A request to send once.
#[derive(Clone, Debug)]
pub struct OneRequest {
    /// The method.
    pub method: Method,
    /// The whole URL, over `http` or `https`.
    pub url: String,
    /// The headers, besides `Host` and `User-Agent`.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// A response, with as much of its body as came.
#[derive(Clone, Debug)]
pub struct OneResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// Whether the body is complete: it neither broke off nor was too large.
    pub is_complete: bool,
    /// Whether the body is larger than was allowed.
    pub is_too_large: bool,
}

/// Why no response came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeError {
    /// `NotSent` or `NoAnswer`.
    pub end: AttemptEnd,
    /// The reason. Never the URL, which may hold a secret.
    pub reason: String,
}

/// Sends requests, over pooled connections.
pub struct Exchange {
    connect_timeout: Duration,
    origins: Mutex<BTreeMap<String, Arc<Connections>>>,
}

impl Exchange {
    /// Creates a client. A connection must be ready within `connect_timeout`.
    #[must_use]
    pub fn new(connect_timeout: Duration) -> Self {
        Self { connect_timeout, origins: Mutex::default() }
    }

    /// Sends a request and reads the response, all of it within `timeout`, and at most `most`
    /// bytes of its body.
    ///
    /// # Errors
    /// When no response came.
    pub async fn send(
        &self,
        request: OneRequest,
        timeout: Duration,
        most: usize,
    ) -> Result<OneResponse, ExchangeError> {
        let not_sent = |reason: String| ExchangeError { end: AttemptEnd::NotSent, reason };
        let until = Instant::now() + timeout;
        let url = Url::parse(&request.url).map_err(|error| not_sent(format!("it is not a URL: {error}")))?;
        let (connections, host) = self.connections(&url).map_err(not_sent)?;
        let (built, departure) =
            build(&url, request, host).ok_or_else(|| not_sent("the request cannot be written".to_owned()))?;
        match timeout_at(until, connections.send(built)).await {
            Ok(Ok(response)) => Ok(read(response, until, most).await),
            Ok(Err(error)) => Err(failed(&departure, innermost(&*error))),
            Err(_) => Err(failed(&departure, format!("no answer within {}", format_span(timeout)))),
        }
    }

    fn connections(&self, url: &Url) -> Result<(Arc<Connections>, HeaderValue), String> {
        let is_plain = match url.scheme() {
            "http" => true,
            "https" => false,
            _ => return Err("the URL starts with neither http:// nor https://".into()),
        };
        if url.host_str().is_none_or(str::is_empty) {
            return Err("the URL names no host".into());
        }
        let (origin, host) = origin(url)?;
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = origins.get(&origin.to_string()) {
            return Ok((Arc::clone(known), host));
        }
        let connector = Connector::new(is_plain, self.connect_timeout)
            .map_err(|error| format!("TLS cannot be set up: {}", innermost(&*error)))?;
        // Results come from few hosts; if not, their connections are not worth keeping.
        if origins.len() >= ORIGINS_MAX {
            origins.clear();
        }
        let connections = Arc::new(Connections::new(connector, origin.clone()));
        origins.insert(origin.to_string(), Arc::clone(&connections));
        Ok((connections, host))
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange").finish_non_exhaustive()
    }
}

fn build(
    url: &Url,
    request: OneRequest,
    host: HeaderValue,
) -> Option<(Request<WithdrawableBody>, SendState)> {
    let has_body = !matches!(request.method, Method::GET | Method::HEAD);
    let (body, departure) = WithdrawableBody::new(request.body);
    let body = if has_body { body.with_declared_length() } else { body };
    let mut built = Request::new(body);
    let target = PathAndQuery::try_from(&url[Position::BeforePath..Position::AfterQuery]).ok()?;
    *built.method_mut() = request.method;
    *built.uri_mut() = target.into();
    let headers = built.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION"))));
    headers.extend(request.headers);
    headers.insert(HOST, host);
    Some((built, departure))
}

async fn read(mut response: PooledResponse, until: Instant, most: usize) -> OneResponse {
    let (status, headers) = (response.head.status.as_u16(), response.head.headers.clone());
    let mut body = BytesMut::new();
    // Of one that says so at once, nothing is read.
    let mut is_too_large = declared_len(&headers).is_some_and(|len| len > most);
    let is_complete = loop {
        if is_too_large {
            break false;
        }
        match timeout_at(until, response.chunk()).await {
            Ok(Ok(Some(chunk))) if body.len() + chunk.len() > most => is_too_large = true,
            Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
            Ok(Ok(None)) => break true,
            _ => break false,
        }
    };
    OneResponse { status, headers, body: body.freeze(), is_complete, is_too_large }
}

fn declared_len(headers: &HeaderMap) -> Option<usize> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The failure of a request that was under way: either it is withdrawn for certain, or it may have
/// taken effect.
fn failed(departure: &SendState, reason: String) -> ExchangeError {
    let end = if departure.withdraw() { AttemptEnd::NotSent } else { AttemptEnd::NoAnswer };
    ExchangeError { end, reason }
}
