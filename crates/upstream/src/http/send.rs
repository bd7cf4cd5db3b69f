//! One attempt: one request, at most once on the wire, over pooled HTTP/1.1 connections. No proxy, no redirect, no
//! retry. What fails before the request left is *not sent*; everything after that and before an answer is *unknown*.

use std::error::Error;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, Uri};
use tidegate_core::operation::time_left;
use tidegate_core::{Fault, FaultClass, Verdict};
use tokio::time::{Instant, timeout_at};
use url::{Position, Url};

use super::answer::{Answer, Asked, Content};
use super::config::UpstreamConfig;
use super::connect::Connector;
use super::connections::{Connections, Incomplete};
use super::dialect::Reader;
use super::target::Base;
use super::withdraw::{Departing, Departure};
use crate::port::{Call, Outcome, Refusal};
use crate::request::{HttpRequest, Method, header};

/// Sends to one upstream.
pub struct Sender {
    name: String,
    base: Base,
    connections: Connections,
    host: HeaderValue,
    token: Option<(HeaderName, HeaderValue)>,
    stored_headers: Vec<String>,
    timeout: Duration,
    response_max_bytes: usize,
}

impl Sender {
    /// For a checked configuration. Opens no connection.
    ///
    /// # Errors
    /// Names the field that cannot be used.
    pub fn new(config: &UpstreamConfig) -> Result<Self, Refusal> {
        let base = Base::parse(&config.base_url).map_err(|problem| config.refuse("base_url", problem))?;
        let (origin, host) = base.origin().map_err(|problem| config.refuse("base_url", problem))?;
        let connector = Connector::new(!base.is_https(), config.connect_timeout).map_err(|error| {
            config.refuse("base_url", format!("TLS cannot be set up: {}.", innermost(&*error)))
        })?;
        Ok(Self {
            name: config.name.clone(),
            base,
            connections: Connections::new(connector, origin),
            host,
            token: config.token.as_ref().and_then(|token| config.token_header.with(token)),
            stored_headers: config.stored_headers.clone(),
            timeout: config.timeout,
            response_max_bytes: config.response_max_bytes,
        })
    }

    /// Whether this upstream can take the request.
    ///
    /// # Errors
    /// Names the field.
    pub fn check(&self, request: &HttpRequest) -> Result<(), Refusal> {
        self.base.join(&request.path).map_err(|problem| Refusal::new("request.path", problem))?;
        if let Some((name, _)) = &self.token
            && request.header(name.as_str()).is_some()
        {
            let message = format!("The header {name} is set by the upstream's token_env.");
            return Err(Refusal::new("request.headers", message));
        }
        request.refuse_credentials(&self.stored_headers)
    }

    /// What messages about a request say.
    pub(super) fn asked(&self, method: Method) -> Asked<'_> {
        Asked { method, upstream: &self.name, base: &self.base }
    }

    /// Sends a request that was checked, once, and has its answer read.
    pub async fn send(
        &self,
        request: HttpRequest,
        reader: Option<Box<dyn Reader + '_>>,
        call: Call<'_>,
    ) -> Outcome {
        let asked = self.asked(request.method);
        match self.exchange(request, call).await {
            Ok(answer) => answer.outcome(&asked, reader),
            Err(missed) => missed,
        }
    }

    /// Sends a request that was checked, once, for an answer whose body is decoded.
    ///
    /// # Errors
    /// When no answer came: not sent (`Retry`), or sent and lost (`Unknown`).
    pub async fn exchange(&self, request: HttpRequest, call: Call<'_>) -> Result<Answer, Outcome> {
        Ok(self.receive(request, call).await?.decoded(self.response_max_bytes).await)
    }

    /// The most that is kept of an answer's body, in bytes.
    pub(super) const fn response_max_bytes(&self) -> usize {
        self.response_max_bytes
    }

    /// Sends a request that was checked, once, for an answer as it came.
    pub(super) async fn receive(&self, request: HttpRequest, call: Call<'_>) -> Result<Answer, Outcome> {
        let asked = self.asked(request.method);
        let allowed = time_left(call.deadline, call.now, self.timeout);
        if allowed.is_zero() {
            return Err(not_sent(&asked, "its deadline has passed"));
        }
        let started = Instant::now();
        let until = started + allowed;
        let Ok(url) = self.base.join(&request.path) else {
            return Err(not_sent(&asked, "its path leads out of the upstream's base URL"));
        };
        let Some((built, departure)) = self.build(&url, request, call.operation) else {
            return Err(not_sent(&asked, "the request cannot be written"));
        };
        let response = match timeout_at(until, self.connections.send(built)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(failed(&asked, &departure, &innermost(&*error))),
            Err(_) => {
                let reason = format!("no answer within {} ms", allowed.as_millis());
                return Err(failed(&asked, &departure, &reason));
            }
        };
        let (status, headers) = (response.head.status, response.head.headers.clone());
        let content = match timeout_at(until, read(response, self.response_max_bytes)).await {
            Ok(content) => content,
            Err(_) => Content::Cut(format!("its body was not complete within {} ms", allowed.as_millis())),
        };
        Ok(Answer { status, headers, content, at: call.now.after(started.elapsed()) })
    }

    fn build(
        &self,
        url: &Url,
        request: HttpRequest,
        operation: &str,
    ) -> Option<(Request<Departing>, Departure)> {
        let content_type = request.body.content_type();
        let (body, departure) = Departing::new(request.body.into_bytes());
        let mut built = Request::new(body);
        *built.method_mut() = request.method.into();
        *built.uri_mut() = Uri::from(PathAndQuery::try_from(&url[Position::BeforePath..]).ok()?);
        let headers = built.headers_mut();
        headers.insert(HOST, self.host.clone());
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION"))));
        if let Some(kind) = content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        for (name, value) in &request.headers {
            // Both were read once already, when the request was checked.
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
                headers.insert(name, value);
            }
        }
        if let Some(operation) = HeaderValue::from_str(operation).ok().filter(|value| !value.is_empty()) {
            headers.insert(HeaderName::from_static(header::OPERATION), operation);
        }
        if let Some((name, value)) = &self.token {
            headers.insert(name.clone(), value.clone());
        }
        Some((built, departure))
    }
}

impl From<Method> for http::Method {
    fn from(method: Method) -> Self {
        match method {
            Method::Get => Self::GET,
            Method::Head => Self::HEAD,
            Method::Post => Self::POST,
            Method::Put => Self::PUT,
            Method::Patch => Self::PATCH,
            Method::Delete => Self::DELETE,
            Method::Options => Self::OPTIONS,
        }
    }
}

/// The body, as far as it may be kept.
async fn read(mut response: Incomplete, most: usize) -> Content {
    if response.content_length().is_some_and(|len| len > most as u64) {
        return Content::TooLarge { most };
    }
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > most => return Content::TooLarge { most },
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Content::Whole(Bytes::from(body)),
            Err(error) => return Content::Cut(format!("its body was cut: {}", innermost(&error))),
        }
    }
}

/// No answer came. Either it is made sure that nothing leaves any more, or it may have happened.
fn failed(asked: &Asked<'_>, departure: &Departure, reason: &str) -> Outcome {
    if departure.withdraw() {
        return not_sent(asked, reason);
    }
    let message = format!("{asked} was sent and its outcome is unknown: {reason}.");
    Outcome::unanswered(Verdict::Unknown(Fault::new(FaultClass::Transient, message)))
}

fn not_sent(asked: &Asked<'_>, reason: &str) -> Outcome {
    let message = format!("{asked} was not sent: {reason}.");
    Outcome::unanswered(Verdict::Retry { after: None, fault: Fault::new(FaultClass::Transient, message) })
}

/// The first cause of an error.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
