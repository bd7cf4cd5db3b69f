//! A server on loopback for simulators: it reads whole requests and lets the simulator answer, or cut the connection
//! with no answer at all.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

/// Largest body that is read, in bytes.
pub const BODY_LEN_MAX: usize = 16 * 1024 * 1024;

/// How long nothing is accepted after an accept failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// What a simulator does with a request.
#[derive(Debug)]
pub enum Reply {
    /// Answers it.
    Answer(Response<Bytes>),
    /// Cuts the connection.
    Cut,
}

/// A simulator as the server sees it.
pub trait Simulator: Send + Sync + 'static {
    /// What follows a request.
    fn reply(&self, request: Request<Bytes>) -> impl Future<Output = Reply> + Send;
}

/// A running server. Dropping it ends it at once.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Server {
    /// Listens and serves.
    ///
    /// # Errors
    /// When the address cannot be had.
    pub async fn start(listen: SocketAddr, simulator: Arc<impl Simulator>) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let addr = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(accept(listener, simulator, stopped));
        Ok(Self { addr, stop: Some(stop), task })
    }

    /// Where it listens.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Ends it: open connections are closed, and the address is free when this returns.
    pub async fn shutdown(mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let _ = (&mut self.task).await;
    }
}

impl Drop for Server {
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
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, Arc::clone(&simulator)));
                }
                // Out of descriptors: give connections time to end rather than spin.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
        }
    }
    connections.shutdown().await;
}

async fn serve(stream: TcpStream, simulator: Arc<impl Simulator>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(|request| answer(request, &*simulator));
    // An error here is a client that went away, or a cut that was asked for.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(request: Request<Incoming>, simulator: &impl Simulator) -> io::Result<Response<Full<Bytes>>> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_LEN_MAX).collect().await else {
        let mut refused = Response::new(Full::default());
        *refused.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
        return Ok(refused);
    };
    match simulator.reply(Request::from_parts(head, body.to_bytes())).await {
        Reply::Answer(response) => Ok(response.map(Full::new)),
        Reply::Cut => Err(io::Error::other("cut")),
    }
}
