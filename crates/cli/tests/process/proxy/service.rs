//! The service behind the proxy: it counts what it does, and does some of it only when it is told
//! to.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(30);

/// A service that answers each POST with how many there were.
pub(super) struct Service {
    pub(super) addr: SocketAddr,
    begun: Arc<AtomicUsize>,
    go: Arc<Semaphore>,
}

impl Service {
    /// The first `held` calls wait until they are let go.
    pub(super) async fn start(held: usize) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), held)
    }

    /// The first call is answered with this status, as by a gateway that got no answer.
    pub(super) async fn failing_first(status: u16) -> Self {
        Self::answering(TcpListener::bind("127.0.0.1:0").await.unwrap(), 0, status)
    }

    /// The same where somebody listens already.
    pub(super) fn on(listener: TcpListener, held: usize) -> Self {
        Self::answering(listener, held, 201)
    }

    fn answering(listener: TcpListener, held: usize, first: u16) -> Self {
        let addr = listener.local_addr().unwrap();
        let (begun, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
        let (counter, gate) = (Arc::clone(&begun), Arc::clone(&go));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (begun, go) = (Arc::clone(&counter), Arc::clone(&gate));
                let handle = hyper::service::service_fn(move |_| {
                    let (run, go) = (begun.fetch_add(1, Ordering::SeqCst) + 1, Arc::clone(&go));
                    async move {
                        if run <= held {
                            go.acquire().await.unwrap().forget();
                        }
                        let body = Full::new(Bytes::from(format!("run {run}")));
                        let status = if run == 1 { first } else { 201 };
                        Ok::<_, Infallible>(Response::builder().status(status).body(body).unwrap())
                    }
                });
                tokio::spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(TokioIo::new(stream), handle).await;
                });
            }
        });
        Self { addr, begun, go }
    }

    /// Calls that were begun.
    pub(super) fn runs(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// Waits until so many were begun.
    pub(super) async fn wait_until_begun(&self, count: usize) {
        let reached = async {
            while self.runs() < count {
                sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, reached).await.expect("the calls arrive");
    }

    /// Lets so many calls go on.
    pub(super) fn release(&self, count: usize) {
        self.go.add_permits(count);
    }
}
