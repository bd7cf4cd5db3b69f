//! One connection: bounds on its headers, on the time to its first request and on the time between
//! two. It ends when the server shuts down or another connection needs its slot.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tidegate_idempotency::proxy::ConnectionPermit;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::ServiceExt;

use super::AcceptOptions;
use super::slots::{RequestGuard, Slot};
use super::stall::WriteTimeoutStream;
use super::tls::{self, PlainConnection, TlsConnection};
use crate::edge::auth::PeerAddr;
use crate::error::{Error, ErrorCode};
use crate::wire::error::ApiError;

/// The maximum number of headers of a request.
const HEADERS_MAX: usize = 128;
/// The number of headers that are read, so that a request with too many of them gets a proper
/// error. With more, the connection ends with an empty 431.
const HEADERS_READ_MAX: usize = 1_024;
/// The largest head of a request, in bytes.
const HEAD_LEN_MAX: usize = 64 * 1024;
/// The maximum number of concurrent streams of one HTTP/2 connection.
const STREAMS_MAX: u32 = 1_024;
/// How long a connection may take to its first request, unless a shorter read timeout is
/// configured.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(10);
/// How long a connection may be idle. Longer than nodes keep connections to each other, so that
/// none is closed during a call. HTTP/1 has the read timeout of a head.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// The interval of HTTP/2 pings, and their timeout.
const PING: Duration = Duration::from_secs(20);
/// The total lifetime of a connection that is accepted beyond the maximum.
const RESERVED_TIME: Duration = Duration::from_secs(5);
/// How long one request on such a connection may take.
const RESERVED_REQUEST_TIME: Duration = Duration::from_secs(4);
/// How long a closing connection may take to finish its requests.
const GRACE: Duration = Duration::from_secs(1);

/// Marks a request on a connection that was accepted for health checks and operators while all
/// others were busy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReservedConnection;

/// Serves one connection. Its slot is held until the connection and all its requests have ended.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, slot: Slot, options: AcceptOptions) {
    // Responses are small, and a client waits for each.
    let _ = stream.set_nodelay(true);
    let Some(certificate) = options.certificate.clone() else {
        return serve_stream(WriteTimeoutStream::new(stream), Transport::Plain, (peer, slot), options).await;
    };
    let first_request = options.read_timeout.min(FIRST_REQUEST_MAX);
    let opened = async {
        if tls::starts_with_handshake(&stream).await? {
            certificate.accept(stream).await.map(Ok)
        } else {
            Ok(Err(stream))
        }
    };
    let opened = tokio::select! {
        opened = timeout(first_request, opened) => opened,
        () = options.stopping.cancelled() => return,
        () = slot.evicted() => return,
    };
    match opened {
        Ok(Ok(Ok(stream))) => serve_stream(stream, Transport::Tls, (peer, slot), options).await,
        Ok(Ok(Err(stream))) => {
            let stream = WriteTimeoutStream::new(stream);
            serve_stream(stream, Transport::PlainInsteadOfTls, (peer, slot), options).await;
        }
        Ok(Err(error)) => tracing::debug!(%peer, %error, "a handshake failed"),
        Err(_) => tracing::debug!(%peer, "a handshake took too long"),
    }
}

/// How the bytes of a connection are carried.
#[derive(Clone, Copy, Debug)]
enum Transport {
    /// As they are.
    Plain,
    /// By TLS.
    Tls,
    /// As they are, to a listener that has a certificate.
    PlainInsteadOfTls,
}

impl Transport {
    fn mark(self, request: &mut hyper::Request<Body>) {
        let extensions = request.extensions_mut();
        match self {
            Self::Plain => {}
            Self::Tls => {
                extensions.insert(TlsConnection);
            }
            Self::PlainInsteadOfTls => {
                extensions.insert(PlainConnection);
            }
        }
    }
}

async fn serve_stream(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    transport: Transport,
    (peer, slot): (SocketAddr, Slot),
    options: AcceptOptions,
) {
    let slot = Arc::new(slot);
    let (router, held) = (options.router.into_router(), Arc::clone(&slot));
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let under_way = held.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(PeerAddr(peer));
        transport.mark(&mut request);
        request.extensions_mut().insert(ConnectionPermit(Arc::clone(&under_way) as _));
        let is_reserved = held.is_reserved();
        if is_reserved {
            request.extensions_mut().insert(ReservedConnection);
        }
        let too_many = too_many_headers(request.headers().len());
        let answered = router.clone().oneshot(request);
        async move {
            let answer = match too_many {
                Some(refusal) => Ok(refusal),
                None if is_reserved => call_reserved(answered).await,
                None => answered.await,
            };
            answer.map(|response| response.map(|body| TrackedBody { body, _under_way: under_way }))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // A client that speaks HTTP/2 from the first byte is served in it: nodes do, among themselves.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.read_timeout)
        .keep_alive(!slot.is_reserved())
        .max_headers(HEADERS_READ_MAX)
        .max_buf_size(HEAD_LEN_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(PING))
        .keep_alive_timeout(PING)
        .max_header_list_size(HEAD_LEN_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX);
    let mut connection =
        std::pin::pin!(builder.serve_connection_with_upgrades(TokioIo::new(stream), service));
    let first_request = options.read_timeout.min(FIRST_REQUEST_MAX);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        // Requests in flight still get their responses: the server itself decides when that takes
        // too long.
        () = options.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            Some(connection.as_mut().await)
        }
        () = slot.evicted() => None,
        () = wait_until_overdue(&slot, first_request) => None,
    };
    match ended {
        Some(Err(error)) => tracing::debug!(%peer, %error, "a connection ended early"),
        Some(Ok(())) => {}
        // Nothing is lost with a connection that has sent no request.
        None if !slot.has_asked() => {}
        None => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                _ = connection.as_mut() => {}
                () = wait_out_grace(&slot) => {}
            }
        }
    }
}

/// The response to a request with too many headers.
fn too_many_headers(count: usize) -> Option<Response> {
    let message = format!("The request has {count} headers; the most is {HEADERS_MAX}.");
    let refusal = || ApiError(Error::new(ErrorCode::TooLarge, message)).into_response();
    let mut response = (count > HEADERS_MAX).then(refusal)?;
    *response.status_mut() = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    Some(response)
}

/// Resolves when a connection has been idle for too long, or its lifetime is over.
async fn wait_until_overdue(slot: &Slot, first_request: Duration) {
    if slot.is_reserved() {
        return sleep_until(slot.opened() + RESERVED_TIME).await;
    }
    loop {
        let end = match (slot.has_asked(), slot.is_idle()) {
            (false, _) => slot.opened() + first_request,
            (true, true) => slot.idle_since() + IDLE_MAX,
            (true, false) => Instant::now() + IDLE_MAX,
        };
        if end <= Instant::now() {
            return;
        }
        sleep_until(end).await;
    }
}

/// Resolves when a closing connection must end. Its requests in flight get their responses first,
/// unless it was accepted beyond the maximum.
async fn wait_out_grace(slot: &Slot) {
    sleep(GRACE).await;
    while !slot.is_idle() && !slot.is_reserved() {
        sleep(GRACE).await;
    }
}

/// Serves a request on a connection beyond the maximum, where long requests are refused.
async fn call_reserved(
    answered: impl Future<Output = Result<Response, std::convert::Infallible>>,
) -> Result<Response, std::convert::Infallible> {
    let busy = |_| {
        let message = "All connections are in use, and this request takes too long.";
        Ok(ApiError(Error::new(ErrorCode::StoreUnavailable, message)).into_response())
    };
    timeout(RESERVED_REQUEST_TIME, answered).await.unwrap_or_else(busy)
}

/// The body of a response; its request is in flight until the body has been sent.
struct TrackedBody {
    body: Body,
    _under_way: Arc<RequestGuard>,
}

impl HttpBody for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
