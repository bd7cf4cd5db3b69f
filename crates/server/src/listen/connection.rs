//! One connection: bounds on its headers, on the time to its first request and on the time between two, all of it told to
//! end when the server stops or another one needs the room.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::{IntoResponse, Response};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tidegate::{Error, ErrorCode};
use tidegate_idempotency::proxy::ConnectionPermit;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::ServiceExt;

use super::AcceptOptions;
use super::slots::{RequestGuard, Slot};
use super::stall::WriteTimeoutStream;
use crate::edge::auth::PeerAddr;
use crate::wire::error::ApiError;

/// Most headers of a request.
const HEADERS_MAX: usize = 64;
/// Largest head of a request, in bytes.
const HEAD_LEN_MAX: usize = 64 * 1024;
/// Calls at once on one HTTP/2 connection.
const STREAMS_MAX: u32 = 1_024;
/// How long a connection may take to its first request, where less is not configured for a head.
const FIRST_REQUEST_MAX: Duration = Duration::from_secs(10);
/// How long a connection may have no request. Longer than nodes keep one among themselves, so that none is closed under
/// a call. HTTP/1 has the time of a head.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// How often HTTP/2 asks whether the other end is still there, and how long that may take.
const PING: Duration = Duration::from_secs(20);
/// How long a connection has that is taken beyond the bound, from its beginning to its end.
const RESERVED_TIME: Duration = Duration::from_secs(5);
/// How long one request there may take.
const RESERVED_REQUEST_TIME: Duration = Duration::from_secs(4);
/// How long a connection that is closed may take for what is on its way.
const GRACE: Duration = Duration::from_secs(1);

/// A request on a connection that was taken for health and operators, when all others were at work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReservedConnection;

/// Serves one connection. Its place is taken until it ends, and until everything ends that came of it.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, slot: Slot, door: AcceptOptions) {
    // Answers are small and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let slot = Arc::new(slot);
    let (router, held) = (door.router.into_router(), Arc::clone(&slot));
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let under_way = held.begin();
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(PeerAddr(peer));
        request.extensions_mut().insert(ConnectionPermit(Arc::clone(&under_way) as _));
        let is_reserved = held.is_reserved();
        if is_reserved {
            request.extensions_mut().insert(ReservedConnection);
        }
        let answered = router.clone().oneshot(request);
        async move {
            let answer = if is_reserved { call_reserved(answered).await } else { answered.await };
            answer.map(|response| response.map(|body| TrackedBody { body, _under_way: under_way }))
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    // Whoever speaks HTTP/2 from the first byte is answered in it: nodes do, among themselves.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(door.read_timeout)
        .keep_alive(!slot.is_reserved())
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_LEN_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(PING))
        .keep_alive_timeout(PING)
        .max_header_list_size(HEAD_LEN_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX);
    let stream = TokioIo::new(WriteTimeoutStream::new(stream));
    let mut connection = std::pin::pin!(builder.serve_connection_with_upgrades(stream, service));
    let first_request = door.read_timeout.min(FIRST_REQUEST_MAX);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        // What is on its way is still answered: the server itself says when that has taken too long.
        () = door.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            Some(connection.as_mut().await)
        }
        () = slot.evicted() => None,
        () = wait_until_overdue(&slot, first_request) => None,
    };
    match ended {
        Some(Err(error)) => tracing::debug!(%peer, %error, "a connection ended early"),
        Some(Ok(())) => {}
        // Nothing is lost with one that has asked for nothing.
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

/// Resolves when a connection has had no request for too long, or has had its time.
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

/// Resolves when a connection that is to be closed has had its time. Requests under way are answered first, unless it
/// was taken beyond the bound.
async fn wait_out_grace(slot: &Slot) {
    sleep(GRACE).await;
    while !slot.is_idle() && !slot.is_reserved() {
        sleep(GRACE).await;
    }
}

/// What takes long has no place among those that are taken beyond the bound.
async fn call_reserved(
    answered: impl Future<Output = Result<Response, std::convert::Infallible>>,
) -> Result<Response, std::convert::Infallible> {
    let busy = |_| {
        let message = "All connections are at work, and this takes longer than there is room for.";
        Ok(ApiError(Error::new(ErrorCode::StoreUnavailable, message)).into_response())
    };
    timeout(RESERVED_REQUEST_TIME, answered).await.unwrap_or_else(busy)
}

/// The body of an answer; its request is under way until it has left.
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
