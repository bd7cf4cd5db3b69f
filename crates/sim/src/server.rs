//! A server on loopback for simulators: it reads whole requests and lets the simulator respond, or
//! cut the connection without a response.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

/// Largest body that is read, in bytes.
pub const BODY_LEN_MAX: usize = 16 * 1024 * 1024;

/// How long to pause after an accept failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// A simulator's reply to a request.
#[derive(Debug)]
pub enum SimReply {
    /// Sends a response.
    Answer(Response<Bytes>),
    /// Streams a response.
    Stream(Response<()>, IteratorBody),
    /// Cuts the connection.
    Cut,
}

/// A body that is generated while it is sent, no faster than it is read.
pub struct IteratorBody(Box<dyn Iterator<Item = Bytes> + Send>);

impl IteratorBody {
    /// Creates a body of these chunks.
    pub fn new(pieces: impl Iterator<Item = Bytes> + Send + 'static) -> Self {
        Self(Box::new(pieces))
    }
}

impl fmt::Debug for IteratorBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pieces")
    }
}

impl Body for IteratorBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|piece| Ok(Frame::data(piece))))
    }
}

/// The address that a request came from, stored in the request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddr(pub IpAddr);

/// A simulator as the server sees it.
pub trait Simulator: Send + Sync + 'static {
    /// Replies to a request.
    fn reply(&self, request: Request<Bytes>) -> impl Future<Output = SimReply> + Send;
}

/// A running server. Dropping it stops it at once.
#[derive(Debug)]
pub struct SimServer {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl SimServer {
    /// Binds the address and serves.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn start(listen: SocketAddr, simulator: Arc<impl Simulator>) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let addr = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(accept(listener, simulator, stopped));
        Ok(Self { addr, stop: Some(stop), task })
    }

    /// Returns the address it listens on.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Stops it: open connections are closed, and the address is free when this returns.
    pub async fn shutdown(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = (&mut self.task).await;
    }
}

impl Drop for SimServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, simulator: Arc<impl Simulator>, mut stopped: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    connections.spawn(serve(stream, PeerAddr(from.ip()), Arc::clone(&simulator)));
                }
                // Out of descriptors: give connections time to end rather than spin.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    connections.shutdown().await;
}

async fn serve(stream: TcpStream, peer: PeerAddr, simulator: Arc<impl Simulator>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(request, peer, &*simulator));
    // An error here is a client that disconnected, or a requested cut.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    peer: PeerAddr,
    simulator: &impl Simulator,
) -> io::Result<Response<Either<Full<Bytes>, IteratorBody>>> {
    let (mut head, body) = request.into_parts();
    head.extensions.insert(peer);
    let Ok(body) = Limited::new(body, BODY_LEN_MAX).collect().await else {
        let mut refused = Response::new(Either::Left(Full::default()));
        *refused.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        return Ok(refused);
    };
    match simulator.reply(Request::from_parts(head, body.to_bytes())).await {
        SimReply::Answer(response) => Ok(response.map(|body| Either::Left(Full::new(body)))),
        SimReply::Stream(head, pieces) => Ok(head.map(|()| Either::Right(pieces))),
        SimReply::Cut => Err(io::Error::other("cut")),
    }
}

/// Creates a JSON response.
pub fn json(status: StatusCode, body: &impl serde::Serialize) -> Response<Bytes> {
    let mut response = Response::new(serde_json::to_vec(body).map_or_else(|_| Bytes::new(), Bytes::from));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert("content-type", hyper::header::HeaderValue::from_static("application/json"));
    response
}
