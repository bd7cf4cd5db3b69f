//! Services behind the proxy: one that responds with a function, and one that is written byte by
//! byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tidegate_idempotency::LayerBody;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

/// A complete body.
pub(crate) fn full(text: impl Into<Bytes>) -> LayerBody {
    Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
}

/// Serves on a port of its own, HTTP/1.1 or HTTP/2 as the caller likes, until the test ends.
pub(crate) async fn serving<F, A>(handle: F) -> SocketAddr
where
    F: Fn(Request<Incoming>) -> A + Clone + Send + 'static,
    A: Future<Output = Response<LayerBody>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let handle = handle.clone();
            let service = hyper::service::service_fn(move |request| {
                let answer = handle(request);
                async move { Ok::<_, std::convert::Infallible>(answer.await) }
            });
            tokio::spawn(async move {
                let builder = auto::Builder::new(TokioExecutor::new());
                let _ = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await;
            });
        }
    });
    addr
}

/// Passes every connection to a function.
pub(crate) async fn by_hand<F, A>(handle: F) -> SocketAddr
where
    F: Fn(TcpStream) -> A + Send + 'static,
    A: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(handle(stream));
        }
    });
    addr
}

/// Reads one request with a length to its end: head and body as they came. Empty when there is
/// none.
pub(crate) async fn one_request(stream: &mut TcpStream) -> String {
    let mut read = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let len = head
                .to_ascii_lowercase()
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.split("\r\n").next().unwrap().parse::<usize>().unwrap());
            if body.len() >= len {
                return text;
            }
        }
        let mut some = [0; 4096];
        match stream.read(&mut some).await {
            Ok(0) | Err(_) => return String::new(),
            Ok(count) => read.extend_from_slice(&some[..count]),
        }
    }
}

/// A shared counter.
#[derive(Clone, Default)]
pub(crate) struct Count(Arc<AtomicUsize>);

impl Count {
    pub(crate) fn add(&self, more: usize) -> usize {
        self.0.fetch_add(more, Ordering::SeqCst) + more
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}
