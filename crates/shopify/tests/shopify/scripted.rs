//! An HTTP server that responds as a test scripts it, one response after the other, and records the
//! requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The reply to a request.
#[derive(Clone, Debug)]
pub(crate) enum ScriptedReply {
    /// Sends a response.
    Answer { status: u16, headers: Vec<(&'static str, String)>, body: String },
    /// Cuts the connection once the request was read.
    Cut,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: Value,
}

type Script = dyn Fn(usize, &ReceivedRequest) -> ScriptedReply + Send + Sync;

/// The server.
pub(crate) struct ScriptedServer {
    addr: SocketAddr,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl ScriptedReply {
    pub(crate) fn json(body: &Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self::Answer { status: 200, headers, body: body.to_string() }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::Answer { status, headers: Vec::new(), body: r#"{"errors":"hunter3"}"#.to_owned() }
    }

    /// Returns the same with another body.
    pub(crate) fn with_body(self, said: &str) -> Self {
        match self {
            Self::Answer { status, headers, .. } => Self::Answer { status, headers, body: said.to_owned() },
            Self::Cut => Self::Cut,
        }
    }

    pub(crate) fn with_header(self, name: &'static str, value: &str) -> Self {
        match self {
            Self::Answer { status, mut headers, body } => {
                headers.push((name, value.to_owned()));
                Self::Answer { status, headers, body }
            }
            Self::Cut => Self::Cut,
        }
    }
}

/// Returns the cost of a GraphQL response: requested, actual, and the budget with 2,000 points and
/// this restore rate per second.
pub(crate) fn cost(requested: u32, actual: Option<u32>, available: u32, restore: u32) -> Value {
    json!({ "cost": { "requestedQueryCost": requested, "actualQueryCost": actual,
        "throttleStatus": { "maximumAvailable": 2000.0, "currentlyAvailable": available, "restoreRate": f64::from(restore) } } })
}

/// Returns data, with its cost.
pub(crate) fn data(data: &Value, requested: u32, actual: u32, available: u32) -> ScriptedReply {
    ScriptedReply::json(&json!({ "data": data, "extensions": cost(requested, Some(actual), available, 100) }))
}

/// `THROTTLED` inside a 200.
pub(crate) fn throttled(requested: u32, available: u32, restore: u32) -> ScriptedReply {
    let error = json!({ "message": "Throttled", "extensions": { "code": "THROTTLED" } });
    ScriptedReply::json(
        &json!({ "errors": [error], "extensions": cost(requested, None, available, restore) }),
    )
}

impl ScriptedServer {
    /// Replies to the nth request, from 0 on, as `script` says.
    pub(crate) async fn start(
        script: impl Fn(usize, &ReceivedRequest) -> ScriptedReply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, script): (_, Arc<Script>) = (Arc::clone(&asked), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&seen), Arc::clone(&script)));
            }
        });
        Self { addr, asked }
    }

    /// Sends these replies, one after the other; the last one again and again.
    pub(crate) async fn answering(replies: Vec<ScriptedReply>) -> Self {
        Self::start(move |nth, _| replies[nth.min(replies.len() - 1)].clone()).await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    pub(crate) fn calls(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Vec<ReceivedRequest>>>, script: Arc<Script>) {
    while let Some(asked) = read(&mut stream).await {
        let nth = {
            let mut seen = seen.lock().unwrap();
            seen.push(asked.clone());
            seen.len() - 1
        };
        let ScriptedReply::Answer { status, headers, body } = script(nth, &asked) else { return };
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n{body}", body.len());
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") {
            break end;
        }
        read_more(stream, &mut bytes).await?;
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let body = end + 4..end + 4 + length.unwrap_or(0);
    while bytes.len() < body.end {
        read_more(stream, &mut bytes).await?;
    }
    let line = head.lines().next().unwrap_or_default().to_owned();
    Some(ReceivedRequest { line, head, body: serde_json::from_slice(&bytes[body]).unwrap_or_default() })
}

async fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 4096];
    let count = stream.read(&mut piece).await.ok().filter(|count| *count > 0)?;
    bytes.extend_from_slice(&piece[..count]);
    Some(())
}
