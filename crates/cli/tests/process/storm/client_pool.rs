//! Many clients that all say the same thing at once, each on a connection that stays. HTTP/1.1 as
//! far as a proxy's short answers go, by hand: the crowd must be quicker than those it shouts at.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long one answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// More than the longest answer.
const ANSWER_MAX: usize = 4_096;

/// What one of them was told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReceivedResponse {
    pub status: u16,
    /// Whether it says that it was given before.
    pub is_replay: bool,
    pub body: String,
}

/// The clients.
pub(super) struct ClientPool(Vec<TcpStream>);

impl ClientPool {
    /// So many, in turns at these addresses.
    pub(super) async fn connect(addresses: impl Iterator<Item = &str> + Clone, clients: usize) -> Self {
        let mut crowd = Vec::new();
        for address in addresses.cycle().take(clients) {
            let stream = TcpStream::connect(address.trim_start_matches("http://")).await.unwrap();
            stream.set_nodelay(true).unwrap();
            crowd.push(stream);
        }
        Self(crowd)
    }

    /// All of them POST this with this key; what each one was told.
    pub(super) async fn post_all(&mut self, path: &str, key: &str, body: &str) -> Vec<ReceivedResponse> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: crowd\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Idempotency-Key: {key}\r\n\r\n{body}",
            body.len()
        );
        // Before any of them listens: a request is far smaller than what a connection holds.
        for client in &mut self.0 {
            client.write_all(request.as_bytes()).await.unwrap();
        }
        let mut said = Vec::with_capacity(self.0.len());
        for client in &mut self.0 {
            said.push(timeout(PATIENCE, read_response(client)).await.expect("an answer in time"));
        }
        said
    }
}

/// One answer.
async fn read_response(client: &mut TcpStream) -> ReceivedResponse {
    let (mut bytes, mut len) = ([0; ANSWER_MAX], 0);
    loop {
        let read = client.read(&mut bytes[len..]).await.unwrap();
        assert!(read > 0, "it hung up: {}", String::from_utf8_lossy(&bytes[..len]));
        len += read;
        if let Some(said) = parse_response(std::str::from_utf8(&bytes[..len]).unwrap()) {
            return said;
        }
    }
}

/// An answer, once all of it is there.
fn parse_response(text: &str) -> Option<ReceivedResponse> {
    let (head, body) = text.split_once("\r\n\r\n")?;
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().unwrap();
    let header = |name: &str| {
        let lines = &mut lines.clone();
        lines.find_map(|line| line.split_once(": ").filter(|(found, _)| found.eq_ignore_ascii_case(name)))
    };
    let (_, length) = header("content-length").expect("a length");
    let is_replay = header("idempotent-replayed").is_some_and(|(_, value)| value == "true");
    let length: usize = length.parse().unwrap();
    assert!(body.len() <= length, "more than it said: {text}");
    (body.len() == length).then(|| ReceivedResponse { status, is_replay, body: body.to_owned() })
}
