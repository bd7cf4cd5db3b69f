//! A raw-bytes server: it reads whole requests, counts them, and then does what the test says.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The action after a request.
#[derive(Clone)]
pub(crate) enum PeerAction {
    /// Sends these bytes, and keeps the connection open.
    Say(Vec<u8>),
    /// Sends these bytes, and closes the connection.
    SayAndClose(Vec<u8>),
    /// Sends nothing, and closes the connection.
    Close,
    /// Sends these bytes and then nothing, for ever.
    Stall(Vec<u8>),
}

/// A received request: its head, in lower case up to the values, and its body.
#[derive(Clone, Debug)]
pub(crate) struct SeenRequest {
    pub(crate) head: String,
    pub(crate) body: String,
}

impl SeenRequest {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|l| l.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':')?.1.trim())
    }
}

pub(crate) struct Peer {
    pub(crate) addr: SocketAddr,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    connections: Arc<AtomicUsize>,
    /// The number of reads that brought bytes.
    started: Arc<AtomicUsize>,
    gone: tokio::sync::Mutex<mpsc::UnboundedReceiver<()>>,
    task: JoinHandle<()>,
}

impl Peer {
    /// Performs `then(n)` after the n-th request, counted from 0.
    pub(crate) async fn start(then: impl Fn(usize) -> PeerAction + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (tell, gone) = mpsc::unbounded_channel();
        let (then, list) = (Arc::new(then), Arc::clone(&seen));
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let started = Arc::new(AtomicUsize::new(0));
        let reads = Arc::clone(&started);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (then, list, tell) = (Arc::clone(&then), Arc::clone(&list), tell.clone());
                let reads = Arc::clone(&reads);
                tokio::spawn(async move {
                    serve(stream, &*then, &list, &reads).await;
                    let _ = tell.send(());
                });
            }
        });
        Self { addr, seen, connections, started, gone: tokio::sync::Mutex::new(gone), task }
    }

    /// Starts a server that always sends the same response.
    pub(crate) async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Self::start(move |_| PeerAction::Say(answer.clone())).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// The number of reads that brought bytes, whole requests or not.
    pub(crate) fn started(&self) -> usize {
        self.started.load(Ordering::SeqCst)
    }

    /// Waits until a connection has ended.
    pub(crate) async fn one_gone(&self) {
        self.gone.lock().await.recv().await.unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A response with a body and its length.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len()).into_bytes()
}

async fn serve(
    mut stream: TcpStream,
    then: &(dyn Fn(usize) -> PeerAction + Send + Sync),
    list: &Mutex<Vec<SeenRequest>>,
    reads: &AtomicUsize,
) {
    let mut buffer = Vec::new();
    while let Some(request) = read(&mut stream, &mut buffer, reads).await {
        let index = {
            let mut list = list.lock().unwrap();
            list.push(request);
            list.len() - 1
        };
        match then(index) {
            PeerAction::Say(bytes) => stream.write_all(&bytes).await.unwrap_or_default(),
            PeerAction::SayAndClose(bytes) => {
                let _ = stream.write_all(&bytes).await;
                return;
            }
            PeerAction::Close => return,
            PeerAction::Stall(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.read(&mut [0]).await;
                return;
            }
        }
    }
}

/// Reads one whole request, or `None` when the other side is gone.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>, reads: &AtomicUsize) -> Option<SeenRequest> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        fill(stream, buffer, reads).await?;
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut seen = SeenRequest { head, body: String::new() };
    let len: usize = seen.header("content-length").map_or(0, |len| len.parse().unwrap());
    while buffer.len() < end + len {
        fill(stream, buffer, reads).await?;
    }
    seen.body = String::from_utf8(buffer[end..end + len].to_vec()).unwrap();
    buffer.drain(..end + len);
    Some(seen)
}

async fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>, reads: &AtomicUsize) -> Option<()> {
    match stream.read_buf(buffer).await {
        Ok(0) | Err(_) => None,
        Ok(_) => {
            reads.fetch_add(1, Ordering::SeqCst);
            Some(())
        }
    }
}
