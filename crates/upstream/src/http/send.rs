//! One attempt: one request, at most once on the wire, over pooled HTTP/1.1 connections. No proxy,
//! no redirect, no retry. A failure before the request was sent is told apart from one after that
//! and before a response.

use std::error::Error;
use std::pin::pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, StatusCode, Uri};
use tidegate_core::operation::time_left;
use tidegate_core::{
    AttemptEnd, Fault, FaultClass, KeyUse, OnUnknown, RetryRule, ServerErrors, Time, Verdict, VerdictClass,
};
use tokio::time::{Instant, timeout, timeout_at};
use url::{Position, Url};

use super::config::UpstreamConfig;
use super::connect::Connector;
use super::connections::{Connections, PooledResponse};
use super::dialect::ResponseInterpreter;
use super::response::{Content, RequestSummary, UpstreamResponse, format_span, is_readable};
use super::send_state::{SendState, WithdrawableBody};
use super::stream::StreamedBody;
use super::target::BaseUrl;
use crate::port::{Call, FieldRefusal, Outcome};
use crate::request::{HttpRequest, Method, header};
use crate::secret::Secret;

/// Sends to one upstream.
pub struct Sender {
    name: String,
    base: BaseUrl,
    connections: Connections,
    host: HeaderValue,
    token: Option<(HeaderName, HeaderValue)>,
    secret: Option<Secret>,
    stored_headers: Vec<String>,
    timeout: Duration,
    response_max_bytes: usize,
    server_errors: ServerErrors,
}

/// Why no response came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoResponse {
    /// Whether the request was sent: `NotSent` or `NoAnswer`.
    pub end: AttemptEnd,
    /// The reason.
    pub fault: Fault,
}

impl NoResponse {
    /// The outcome of a request with this rule.
    #[must_use]
    pub fn into_outcome(self, rule: RetryRule) -> Outcome {
        let fault = if rule.may_have_happened(self.end) { self.fault.in_doubt() } else { self.fault };
        Outcome::unanswered(match rule.classify(self.end) {
            VerdictClass::Retry => Verdict::Retry { after: None, fault },
            _ => Verdict::Unknown(fault),
        })
    }
}

impl Sender {
    /// Creates a sender for a validated configuration. Opens no connection.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn new(config: &UpstreamConfig) -> Result<Self, FieldRefusal> {
        let base = BaseUrl::parse(&config.base_url).map_err(|problem| config.refuse("base_url", problem))?;
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
            secret: config.token.clone(),
            stored_headers: config.stored_headers.clone(),
            timeout: config.timeout,
            response_max_bytes: config.response_max_bytes,
            server_errors: config.server_errors.unwrap_or_default(),
        })
    }

    /// Checks that this upstream can take the request.
    ///
    /// # Errors
    /// Names the invalid field.
    pub fn check(&self, request: &HttpRequest) -> Result<(), FieldRefusal> {
        self.base.join(&request.path).map_err(|problem| FieldRefusal::new("request.path", problem))?;
        if let Some((name, _)) = &self.token
            && request.header(name.as_str()).is_some()
        {
            let message = format!("The header {name} is set by the upstream's token_env.");
            return Err(FieldRefusal::new("request.headers", message));
        }
        request.refuse_credentials(&self.stored_headers)
    }

    /// Whether this header of every request is the upstream's credential.
    pub(super) fn sets_header(&self, name: &str) -> bool {
        self.token.as_ref().is_some_and(|(token, _)| name.eq_ignore_ascii_case(token.as_str()))
    }

    /// The rule by which a request may be sent again.
    #[must_use]
    pub const fn retry_rule(&self, on_unknown: OnUnknown) -> RetryRule {
        RetryRule::new(on_unknown, self.server_errors)
    }

    /// Summarizes a request for the interpretation of its response.
    pub(super) fn summarize(&self, request: &HttpRequest, call: &Call<'_>) -> RequestSummary<'_> {
        let key = match request.header(header::IDEMPOTENCY_KEY) {
            None => KeyUse::Absent,
            Some(_) if call.in_doubt => KeyUse::Again,
            Some(_) => KeyUse::First,
        };
        let retry_rule = self.retry_rule(call.on_unknown).with_key(key);
        RequestSummary { method: request.method, upstream: &self.name, base: &self.base, retry_rule }
    }

    /// Sends a checked request, once, and has its response interpreted.
    pub async fn send(
        &self,
        request: HttpRequest,
        reader: Option<Box<dyn ResponseInterpreter + '_>>,
        call: Call<'_>,
    ) -> Outcome {
        let asked = self.summarize(&request, &call);
        match self.exchange(request, call).await {
            Ok(answer) => answer.outcome(&asked, reader),
            Err(missed) => missed.into_outcome(asked.retry_rule),
        }
    }

    /// Sends a checked request, once, and returns the response with its body decoded.
    ///
    /// # Errors
    /// When no response came.
    pub async fn exchange(
        &self,
        request: HttpRequest,
        call: Call<'_>,
    ) -> Result<UpstreamResponse, NoResponse> {
        let most = self.response_max_bytes;
        let mut incoming = self.send_for_head(request, None, call).await?;
        let gathered = incoming.gather(most).await;
        let response = incoming.into_response(gathered, most).decoded(most).await;
        Ok(match &self.secret {
            Some(secret) => response.masked(secret),
            None => response,
        })
    }

    /// The maximum size of a response body that is kept, in bytes.
    pub(super) const fn response_max_bytes(&self) -> usize {
        self.response_max_bytes
    }

    /// Sends a checked request, once, with `body` instead of its own if given, and returns the head
    /// of the response.
    pub(super) async fn send_for_head(
        &self,
        request: HttpRequest,
        body: Option<StreamedBody>,
        call: Call<'_>,
    ) -> Result<IncomingResponse, NoResponse> {
        let asked = self.summarize(&request, &call);
        let allowed = time_left(call.deadline, call.now, self.timeout);
        if allowed.is_zero() {
            return Err(not_sent(&asked, "its deadline has passed"));
        }
        let started = Instant::now();
        let Ok(url) = self.base.join(&request.path) else {
            return Err(not_sent(&asked, "its path leads out of the upstream's base URL"));
        };
        let is_streamed = body.is_some();
        let Some((built, departure)) = self.build(&url, request, body, call.operation) else {
            return Err(not_sent(&asked, "the request cannot be written"));
        };
        let mut sending = pin!(self.connections.send(built));
        let response = loop {
            let pieces = departure.pieces();
            match timeout(allowed, &mut sending).await {
                Ok(Ok(response)) => break response,
                Ok(Err(error)) => return Err(failed(&asked, &departure, &innermost(&*error))),
                // A body that is still arriving takes its time.
                Err(_) if is_streamed && departure.pieces() > pieces => {}
                Err(_) => {
                    let reason = format!("no answer within {}", format_span(allowed));
                    return Err(failed(&asked, &departure, &reason));
                }
            }
        };
        // A slow request has as much time for its response as any other.
        let from = if is_streamed { Instant::now() } else { started };
        Ok(IncomingResponse { response, until: from + allowed, allowed, sent_at: call.now, started })
    }

    fn build(
        &self,
        url: &Url,
        request: HttpRequest,
        body: Option<StreamedBody>,
        operation: &str,
    ) -> Option<(Request<WithdrawableBody>, SendState)> {
        let content_type = request.body.content_type();
        let (body, departure) = match body {
            Some(body) => WithdrawableBody::streamed(body),
            None => WithdrawableBody::new(request.body.into_bytes()),
        };
        // A server that expects a body may refuse a request without a length (RFC 9110, 8.6).
        let body = if request.method.has_body() { body.with_declared_length() } else { body };
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
            // Both were parsed before, when the request was checked.
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

/// A response whose head has arrived.
pub(super) struct IncomingResponse {
    response: PooledResponse,
    /// When all of it must have arrived.
    until: Instant,
    /// The length of that time.
    allowed: Duration,
    /// When the request was sent, by the clock of the call and by the monotonic one.
    sent_at: Time,
    started: Instant,
}

/// The beginning of a body.
pub(super) enum BufferedBody {
    /// The complete body.
    Whole(Bytes),
    /// Larger than wanted: what has arrived so far.
    More(Bytes),
    /// Incomplete, for this reason.
    Cut(String),
}

impl IncomingResponse {
    pub(super) fn status(&self) -> StatusCode {
        self.response.head.status
    }

    pub(super) fn headers(&self) -> &HeaderMap {
        &self.response.head.headers
    }

    /// The length of its body, if stated.
    pub(super) fn content_length(&self) -> Option<u64> {
        self.response.content_length()
    }

    /// How long a chunk of its body may take.
    pub(super) const fn idle_max(&self) -> Duration {
        self.allowed
    }

    /// Whether a client with this `Accept-Encoding` can read its body.
    pub(super) fn is_readable_to(&self, accept: Option<&str>) -> bool {
        is_readable(self.headers(), accept)
    }

    /// Returns the next chunk of its body, as large as it came.
    pub(super) async fn piece(&mut self) -> Result<Option<Bytes>, hyper::Error> {
        self.response.chunk().await
    }

    /// Buffers its body, up to `most` bytes.
    pub(super) async fn gather(&mut self, most: usize) -> BufferedBody {
        if self.content_length().is_some_and(|len| len > most as u64) {
            return BufferedBody::More(Bytes::new());
        }
        let mut body = BytesMut::new();
        loop {
            match timeout_at(self.until, self.response.chunk()).await {
                Ok(Ok(Some(chunk))) => body.extend_from_slice(&chunk),
                Ok(Ok(None)) => return BufferedBody::Whole(body.freeze()),
                Ok(Err(error)) => {
                    return BufferedBody::Cut(format!("its body was cut: {}", innermost(&error)));
                }
                Err(_) => {
                    let within = format_span(self.allowed);
                    return BufferedBody::Cut(format!("its body was not complete within {within}"));
                }
            }
            if body.len() > most {
                return BufferedBody::More(body.freeze());
            }
        }
    }

    /// Converts it to a response with the buffered part of its body.
    pub(super) fn into_response(self, gathered: BufferedBody, most: usize) -> UpstreamResponse {
        let content = match gathered {
            BufferedBody::Whole(body) => Content::Whole(body),
            BufferedBody::More(_) => Content::TooLarge { most },
            BufferedBody::Cut(reason) => Content::Cut(reason),
        };
        self.with(content)
    }

    /// Converts it to a response without its body, which was relayed.
    pub(super) fn into_relayed_response(self) -> UpstreamResponse {
        self.with(Content::Relayed)
    }

    fn with(self, content: Content) -> UpstreamResponse {
        let at = self.sent_at.after(self.started.elapsed());
        let (status, headers) = (self.response.head.status, self.response.head.headers);
        UpstreamResponse { status, headers, content, at }
    }
}

/// The failure of a request that was under way: either it is withdrawn for certain, or it may have
/// taken effect.
fn failed(asked: &RequestSummary<'_>, departure: &SendState, reason: &str) -> NoResponse {
    if departure.withdraw() {
        return not_sent(asked, reason);
    }
    let message = format!("{asked} was sent and its outcome is unknown: {reason}.");
    NoResponse { end: AttemptEnd::NoAnswer, fault: Fault::new(FaultClass::Transient, message) }
}

fn not_sent(asked: &RequestSummary<'_>, reason: &str) -> NoResponse {
    let message = format!("{asked} was not sent: {reason}.");
    NoResponse { end: AttemptEnd::NotSent, fault: Fault::new(FaultClass::Transient, message) }
}

/// The innermost source of an error.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
