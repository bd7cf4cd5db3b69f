//! An upstream that records every request byte for byte, and sends scripted responses.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// A request as it was received.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    /// The first line and the headers.
    pub head: String,
    pub body: Vec<u8>,
    /// When its last byte was there.
    pub at: Instant,
}

impl RecordedRequest {
    pub(crate) fn line(&self) -> &str {
        self.head.lines().next().unwrap()
    }

    /// All values of a header.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
    }
}

/// What it does next; by default it returns an empty 200.
#[derive(Clone, Debug)]
pub(crate) enum ScriptedReply {
    /// Responds with these bytes.
    Answer(Vec<u8>),
    /// Cuts the connection.
    Cut,
    /// Responds with the first part, waits until it is released, and continues with the second;
    /// cuts the connection if that is empty.
    Parts(Vec<u8>, Vec<u8>),
    /// Waits until it is released, then responds.
    Hold(Vec<u8>),
}

pub(crate) fn answer(text: &str) -> ScriptedReply {
    ScriptedReply::Answer(text.as_bytes().to_vec())
}

#[derive(Default)]
struct UpstreamState {
    seen: Mutex<Vec<RecordedRequest>>,
    next: Mutex<VecDeque<ScriptedReply>>,
}

/// The upstream, which ends with the test's runtime.
pub(crate) struct Upstream {
    pub addr: SocketAddr,
    shared: Arc<UpstreamState>,
    /// Releases one held response.
    pub go: Arc<Semaphore>,
}

impl Upstream {
    pub(crate) async fn start(next: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let shared = Arc::new(UpstreamState::default());
        shared.next.lock().unwrap().extend(next);
        let go = Arc::new(Semaphore::new(0));
        let (kept, held) = (Arc::clone(&shared), Arc::clone(&go));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&kept), Arc::clone(&held)));
            }
        });
        Self { addr, shared, go }
    }

    /// Queues a reply.
    pub(crate) fn push_reply(&self, next: ScriptedReply) {
        self.shared.next.lock().unwrap().push_back(next);
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The only request that was received.
    pub(crate) fn only_request(&self) -> RecordedRequest {
        let seen = self.requests();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen[0].clone()
    }

    /// Waits until this many requests were received.
    pub(crate) async fn wait_for_requests(&self, count: usize) {
        while self.requests().len() < count {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<UpstreamState>, go: Arc<Semaphore>) {
    while let Some(seen) = read(&mut stream).await {
        shared.seen.lock().unwrap().push(seen);
        let next = shared.next.lock().unwrap().pop_front();
        let bytes = match next {
            None => b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec(),
            Some(ScriptedReply::Answer(bytes)) => bytes,
            Some(ScriptedReply::Hold(bytes)) => {
                go.acquire().await.unwrap().forget();
                bytes
            }
            Some(ScriptedReply::Parts(first, second)) => {
                let _ = stream.write_all(&first).await;
                go.acquire().await.unwrap().forget();
                if second.is_empty() {
                    return;
                }
                second
            }
            Some(ScriptedReply::Cut) => return,
        };
        if stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// Reads a request with or without a content-length.
async fn read(stream: &mut TcpStream) -> Option<RecordedRequest> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut body = bytes[end..].to_vec();
    let mut request = RecordedRequest { head, body: Vec::new(), at: Instant::now() };
    let len = request.all("content-length").first().map_or(0, |len| len.parse().unwrap());
    while body.len() < len {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    (request.body, request.at) = (body, Instant::now());
    Some(request)
}
