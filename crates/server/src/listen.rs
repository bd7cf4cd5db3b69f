//! Taking connections: as many at once as may be, each with bounds on its headers and on the time they take, all
//! of them told to end when the server stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tidegate_idempotency::proxy::Place;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt;

use crate::edge::auth::Peer;

/// Most headers of a request.
const HEADERS_MAX: usize = 64;
/// Largest head of a request, in bytes.
const HEAD_LEN_MAX: usize = 64 * 1024;
/// Calls at once on one HTTP/2 connection.
const STREAMS_MAX: u32 = 1_024;
/// A pause after the system had no connection to give, such as when no file is left.
const BREATH: Duration = Duration::from_millis(50);

/// How connections are taken.
#[derive(Clone)]
pub(crate) struct Door {
    pub router: Router,
    pub connections: Arc<Semaphore>,
    pub read_timeout: Duration,
    pub stopping: CancellationToken,
    pub tasks: TaskTracker,
}

/// Takes connections until the server stops.
pub(crate) async fn run(listener: TcpListener, door: Door) {
    loop {
        let next = async {
            let place = Arc::clone(&door.connections).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, taken) = tokio::select! {
            next = next => next,
            () = door.stopping.cancelled() => return,
        };
        match taken {
            Ok((stream, peer)) => {
                door.tasks.spawn(serve(stream, peer, Place(Arc::new(place)), door.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(BREATH).await;
            }
        }
    }
}

/// Serves one connection. Its place is taken until it ends, and until everything ends that came of it.
async fn serve(stream: TcpStream, peer: SocketAddr, place: Place, door: Door) {
    // Answers are small and somebody waits for each.
    let _ = stream.set_nodelay(true);
    let router = door.router;
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(Peer(peer));
        request.extensions_mut().insert(place.clone());
        router.clone().oneshot(request)
    });
    // Whoever speaks HTTP/2 from the first byte is answered in it: nodes do, among themselves.
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(door.read_timeout)
        .max_headers(HEADERS_MAX)
        .max_buf_size(HEAD_LEN_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(HEAD_LEN_MAX as u32)
        .max_concurrent_streams(STREAMS_MAX);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = door.stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}
