//! What clients cannot do: fill the proxy's memory with bodies that they never finish, or leave the
//! path that is served.

use std::time::Duration;

use hyper::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::child::Proxy;
use super::service::Service;
use crate::caller::Caller;

const PATIENCE: Duration = Duration::from_secs(30);
const BODY: usize = 1 << 20;

/// A client that sends all of its body but the last byte.
async fn unfinished(address: &str, key: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST /items HTTP/1.1\r\nhost: a\r\nidempotency-key: {key}\r\ncontent-length: {BODY}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b'x'; BODY - 1]).await.unwrap();
    stream
}

/// Sends until the answer is the one that is wanted.
async fn until(caller: &Caller, wanted: u16) -> (hyper::HeaderMap, String) {
    let asking = async {
        for n in 0.. {
            let headers = [("idempotency-key", format!("{wanted}-{n}"))];
            let headers = headers.each_ref().map(|(name, key)| (*name, key.as_str()));
            let body = json!({ "sku": "0123456789" });
            match caller.call_full(Method::POST, "/items", &headers, Some(&body)).await {
                Some((status, headers, text)) if status == wanted => return (headers, text),
                Some((201 | 503, ..)) => sleep(Duration::from_millis(20)).await,
                other => panic!("{other:?}"),
            }
        }
        unreachable!()
    };
    timeout(PATIENCE, asking).await.expect("it is answered so in time")
}

/// IDM-11: unfinished bodies take the room that there is for bodies and no more; others are told to
/// come back, and are served as soon as those are gone. What has no key passes meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn idm_11_unfinished_bodies_are_bounded() {
    let service = Service::start(0).await;
    let dir = tempfile::tempdir().unwrap();
    let more = "request_max = \"1MiB\"\nbodies_max = \"4MiB\"\n";
    let proxy = Proxy::start(dir.path(), &service, "memory:", more);
    let (caller, address) = (Caller::of(&proxy.address), proxy.address.trim_start_matches("http://"));
    let mut clients = Vec::new();
    for key in ["a", "b", "c", "d"] {
        clients.push(unfinished(address, key).await);
    }
    let (headers, text) = until(&caller, 503).await;
    assert_eq!(headers["retry-after"], "1");
    assert!(text.contains("IDEMPOTENCY_BODIES_FULL"), "{text}");
    let runs = service.runs();
    let (status, _) = caller.call(Method::POST, "/items", &[], Some(&json!({}))).await.unwrap();
    assert_eq!((status, service.runs()), (201, runs + 1), "without a key");
    let figures = Caller::of(&proxy.admin).get("/metrics").await;
    assert!(figures.lines().any(|line| line.starts_with("idempotency_bodies_full ")), "{figures}");
    drop(clients);
    until(&caller, 201).await;
}

/// IDM-12: no path leads out of the path in the upstream's URL.
#[tokio::test(flavor = "multi_thread")]
async fn idm_12_the_upstreams_path_is_not_left() {
    let service = Service::start(0).await;
    let dir = tempfile::tempdir().unwrap();
    let proxy = Proxy::at(dir.path(), &format!("http://{}/public", service.addr), "memory:", "");
    let ask = async |path: &str| {
        let mut stream = TcpStream::connect(proxy.address.trim_start_matches("http://")).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(PATIENCE, stream.read_to_string(&mut answer)).await.expect("an answer").unwrap();
        answer
    };
    for path in ["/../admin", "/%2e%2e/admin", "/a/..%2f../admin"] {
        let answer = ask(path).await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("INVALID_TARGET"), "{path}: {answer}");
    }
    assert_eq!(service.runs(), 0);
    assert!(ask("/a/../b").await.starts_with("HTTP/1.1 201 "));
}
