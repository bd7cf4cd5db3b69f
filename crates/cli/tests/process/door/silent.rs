//! Connections that ask for nothing, and more that are at work than there may be: they stop neither
//! the server nor the proxy, and health and operators get in.

use std::time::Duration;

use hyper::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::caller::Caller;
use crate::child::{RunningServer, StartingServer};

/// Connections that the server and the proxy may have in these tests.
pub(crate) const CONNECTIONS: usize = 24;
/// More than there may be.
pub(crate) const MANY: usize = 40;
/// In which time whoever asks is answered.
pub(crate) const PROMPT: Duration = Duration::from_secs(2);
/// In which time a connection is closed that does not ask: the time for a head, which is a second
/// here, and some.
const CLOSED: Duration = Duration::from_secs(8);

pub(crate) const SILENT: [(&str, &[u8]); 4] = [
    ("no byte", b""),
    ("a part of HTTP/2's first words", b"PRI * HT"),
    ("only HTTP/2's first words", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
    ("a part of a head", b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: "),
];
const EVENTS: &[u8] = b"GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";

pub(crate) async fn open(address: &str, count: usize, first: &[u8]) -> Vec<TcpStream> {
    let mut all = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address.trim_start_matches("http://")).await.unwrap();
        // It may have been closed already, for one that came later.
        let _ = stream.write_all(first).await;
        all.push(stream);
    }
    all
}

/// Waits until all are closed by the other end.
pub(crate) async fn all_closed(streams: Vec<TcpStream>) -> bool {
    let closed = async {
        for mut stream in streams {
            while stream.read(&mut [0; 1024]).await.is_ok_and(|read| read > 0) {}
        }
    };
    timeout(CLOSED, closed).await.is_ok()
}

/// Over a connection of its own.
async fn ask(address: &str, method: Method, path: &str) -> Option<u16> {
    let caller = Caller::of(address);
    let operation = json!({ "upstream": "mine", "group": "g", "request": { "method": "GET", "path": "/" } });
    let body = (method == Method::POST).then_some(&operation);
    timeout(PROMPT, caller.call(method, path, &[], body)).await.ok().flatten().map(|(status, _)| status)
}

fn serve(dir: &std::path::Path) -> RunningServer {
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\nconnections_max = {CONNECTIONS}\nread_timeout_s = 1\n\
         [store]\nurl = \"memory:\"\n[[upstream]]\nname = \"mine\"\nbase_url = \"http://127.0.0.1:9\"\n"
    );
    std::fs::write(dir.join("tidegate.toml"), text).unwrap();
    tokio::task::block_in_place(|| RunningServer::of(StartingServer::new(dir, "warn", None)))
}

/// Whatever they have said so far: who asks is answered at once, and who does not is closed in
/// time.
#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_do_not_stop_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path());
    for (what, first) in SILENT {
        let silent = open(&server.address, MANY, first).await;
        assert_eq!(ask(&server.address, Method::GET, "/healthz").await, Some(200), "{what}");
        assert_eq!(ask(&server.address, Method::POST, "/v1/operations").await, Some(202), "{what}");
        assert!(all_closed(silent).await, "{what}");
    }
}

/// When all connections are at work they stay so; health and operators get in, and new work is
/// refused at once.
#[tokio::test(flavor = "multi_thread")]
async fn room_is_kept_for_health_and_operators() {
    let dir = tempfile::tempdir().unwrap();
    let server = serve(dir.path());
    let mut at_work = open(&server.address, CONNECTIONS, EVENTS).await;
    for stream in &mut at_work {
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    for (method, path, status) in [
        (Method::GET, "/healthz", 200),
        (Method::GET, "/readyz", 200),
        (Method::GET, "/v1/groups", 200),
        (Method::POST, "/v1/operations/none/cancel", 404),
        (Method::POST, "/v1/operations", 503),
    ] {
        assert_eq!(ask(&server.address, method, path).await, Some(status), "{path}");
    }
    // Those that came for more have their time, and are gone; the others go on.
    let beyond = open(&server.address, 4, EVENTS).await;
    assert!(all_closed(beyond).await);
    drop(at_work.pop());
    let begun = Instant::now();
    while ask(&server.address, Method::POST, "/v1/operations").await != Some(202) {
        assert!(begun.elapsed() < CLOSED, "there is room again");
    }
    for stream in &mut at_work {
        let ended = timeout(Duration::from_millis(1), async {
            while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
        });
        assert!(ended.await.is_err(), "it was closed for another one");
    }
}
