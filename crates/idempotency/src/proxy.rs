//! The reverse proxy: streams a request to an upstream service and its response back. When there is
//! no response, the proxy knows whether the request can have arrived. Idempotency is handled by the
//! layer in front of it.

mod body_timeout;
mod connect;
mod head;
mod links;
mod proxy_error;
mod unprocessed;
mod upgrade_relay;
mod upstream;
mod via;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper_util::client::legacy::connect::capture_connection;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tidegate_core::OutcomeClass;
use tower::Service;

pub use body_timeout::{BodyTimeoutError, with_body_rate, with_body_timeout};
#[doc(hidden)]
pub use links::rewrite_references;
#[doc(hidden)]
pub use unprocessed::is_unprocessed;
pub use upstream::{ProxyUpstream, ProxyUpstreamError};

use crate::body::{LayerBody, box_body};
use crate::key::{self, IdempotencyKey};
use crate::refusal::ERROR;
use body_timeout::LastActivity;
use connect::{ConnectErrorKind, Connector};
use proxy_error::{FailedRequest, ProxyError};
use via::Pseudonym;

/// The client's address, for `X-Forwarded-For`. The server that accepts connections puts it into a
/// request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientAddr(pub SocketAddr);

/// Held for as long as an upgraded connection lasts, such as its slot among the open connections.
/// The server that accepts connections puts it into a request's extensions.
#[derive(Clone)]
pub struct ConnectionPermit(pub Arc<dyn std::any::Any + Send + Sync>);

/// Forwards requests to an upstream.
#[derive(Clone)]
pub struct ReverseProxy {
    client: Client<Connector, LayerBody>,
    upstream: Arc<ProxyUpstream>,
    own: Arc<Pseudonym>,
    /// Whether the upstream was unreachable for the last request: logged once, not for each
    /// request.
    is_unreachable: Arc<AtomicBool>,
}

impl ReverseProxy {
    /// Creates a proxy to this upstream. Does not connect yet.
    ///
    /// # Errors
    /// When a value is out of bounds, the system has no random numbers, or its certificates cannot
    /// be read for an upstream over TLS.
    pub fn new(upstream: ProxyUpstream) -> Result<Self, ProxyUpstreamError> {
        upstream.check()?;
        let connector = Connector::new(&upstream)?;
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(upstream::IDLE)
            .http2_keep_alive_interval(upstream::PING_EVERY)
            .http2_keep_alive_timeout(upstream::PING_TIMEOUT)
            .http2_only(upstream.http2)
            .build(connector);
        let own = Arc::new(Pseudonym::new()?);
        Ok(Self { client, upstream: Arc::new(upstream), own, is_unreachable: Arc::default() })
    }

    /// The response to a request that is not processed any further: one that this proxy has already
    /// forwarded, or one without a definite host. Call this before the key is looked at, which the
    /// request's own first pass may hold. A `RefusalDialect` in the request's extensions is the
    /// format of the response.
    #[must_use]
    pub fn early_rejection<B>(&self, request: &Request<B>) -> Option<Response<LayerBody>> {
        let fault = via::early_rejection(&self.own, request.headers(), request.version())?;
        let key = key::find_key(request.headers());
        let mut answer = fault.answer(&FailedRequest::new(key, request.extensions()));
        if fault == ProxyError::Loop {
            self.own.sign(answer.headers_mut(), request.version());
        }
        Some(answer)
    }

    /// Notes whether the upstream was reachable, or why not, and logs a change.
    fn note_availability(&self, cause: Option<&str>) {
        if self.is_unreachable.swap(cause.is_some(), Ordering::Relaxed) == cause.is_some() {
            return;
        }
        match cause {
            Some(cause) => {
                tracing::warn!(upstream = %self.upstream, cause, "the service behind the proxy cannot be reached");
            }
            None => {
                tracing::info!(upstream = %self.upstream, "the service behind the proxy can be reached again");
            }
        }
    }

    /// The response when the upstream did not respond in time.
    fn timeout_response(&self, was_sent: bool, failed: &FailedRequest) -> Response<LayerBody> {
        let limit = self.upstream.answer_timeout;
        if was_sent {
            self.note_availability(None);
            return ProxyError::TimedOut(limit).answer(failed);
        }
        self.note_availability(Some(&format!("no connection was established within {limit:?}")));
        ProxyError::Unreachable(ConnectErrorKind::Other).answer(failed)
    }

    /// The response on behalf of the upstream.
    fn error_response(
        &self,
        error: &legacy::Error,
        request_broke: bool,
        failed: &FailedRequest,
    ) -> Response<LayerBody> {
        let fault = ProxyError::of(error, request_broke);
        match (fault, proxy_error::connect_error(error)) {
            (ProxyError::Unreachable(_), Some(failed)) => self.note_availability(Some(&failed.describe())),
            (ProxyError::Unreachable(_), None) => self.note_availability(Some(&error.to_string())),
            (ProxyError::Reset, _) => self.note_availability(None),
            _ => {}
        }
        fault.answer(failed)
    }

    async fn send(self, mut request: Request<LayerBody>) -> Response<LayerBody> {
        if request.method() == Method::CONNECT {
            return ProxyError::Tunnel.answer(&FailedRequest::new(None, request.extensions()));
        }
        if let Some(answer) = self.early_rejection(&request) {
            return answer;
        }
        let place = request.extensions_mut().remove::<ConnectionPermit>();
        let key = request.extensions_mut().remove::<IdempotencyKey>();
        let failed = FailedRequest::new(key, request.extensions());
        let upgrade = head::upgrade(&request);
        let client_side = upgrade.is_some().then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body) = request.into_parts();
        let version = parts.version;
        if head::rewrite(&mut parts, &self.upstream, upgrade).is_none() {
            return ProxyError::BadTarget.answer(&failed);
        }
        self.own.sign(&mut parts.headers, version);
        let pulse = LastActivity::new();
        let mut request = Request::from_parts(parts, pulse.track(body));
        let connection = capture_connection(&mut request);
        let limit = self.upstream.answer_timeout;
        let answered = tokio::select! {
            biased;
            answered = self.client.request(request) => answered,
            () = pulse.wait_until_idle(limit) => {
                let was_sent = connection.connection_metadata().is_some();
                return self.timeout_response(was_sent, &failed);
            }
        };
        let mut response = match answered {
            Ok(response) => response,
            Err(error) => return self.error_response(&error, pulse.is_broken(), &failed),
        };
        self.note_availability(None);
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let Some(client_side) = client_side else { return ProxyError::Reset.answer(&failed) };
            let upstream_side = hyper::upgrade::on(&mut response);
            tokio::spawn(upgrade_relay::relay_upgraded(client_side, upstream_side, place));
        }
        let (mut parts, body) = response.into_parts();
        head::clean(&mut parts);
        if self.upstream.rewrite_links {
            links::rewrite_references(&mut parts.headers, |link| self.upstream.own_path(link));
        }
        if parts.status == StatusCode::LOOP_DETECTED && self.own.is_in(&parts.headers) {
            // Returned by this proxy, further round the loop: nothing was executed.
            parts.extensions.insert(OutcomeClass::NotStarted);
            parts.headers.insert(ERROR, HeaderValue::from_static(ProxyError::Loop.code()));
        }
        Response::from_parts(parts, with_body_timeout(box_body(body), limit))
    }
}

impl Service<Request<LayerBody>> for ReverseProxy {
    type Response = Response<LayerBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<LayerBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<LayerBody>) -> Self::Future {
        let sending = self.clone().send(request);
        Box::pin(async move { Ok(sending.await) })
    }
}
