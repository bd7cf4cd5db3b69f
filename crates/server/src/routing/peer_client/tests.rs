//! A peer client and other nodes: one with another secret, one that is down, one that cuts the
//! connection.

use axum::Router;
use axum::http::Method;
use axum::routing::any;
use tidegate_core::Time;
use tidegate_store::nodes::NodeRecord;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::api::route::Idempotence;
use crate::edge::guard::GuardedRouter;
use crate::listen::{self, AcceptOptions, Slots};

const SECRET: &str = "a-secret-of-some-length";

fn node(listener: &TcpListener) -> Node {
    let address = listener.local_addr().unwrap().to_string();
    Node { name: format!("ben@{address}"), record: NodeRecord::at(address), until: Time::ZERO }
}

fn call() -> RoutedCall {
    RoutedCall {
        method: Method::POST,
        target: "/v1/operations".into(),
        content_type: None,
        body: Bytes::from_static(b"{}"),
        idempotence: Idempotence::Never,
        caller: "ann".into(),
        request_id: "r".into(),
        key: None,
        proxy: None,
        streamed: None,
    }
}

fn client() -> PeerClient {
    PeerClient::new(Arc::new(NodeSecret::configured(SECRET).unwrap()))
}

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// A node that serves these routes to everyone.
async fn serving(router: Router) -> Node {
    let listener = listener().await;
    let node = node(&listener);
    let options = AcceptOptions {
        router: GuardedRouter::without_checks(router),
        slots: Slots::new(8),
        certificate: None,
        read_timeout: Duration::from_secs(5),
        stopping: tokio_util::sync::CancellationToken::new(),
        tasks: tokio_util::task::TaskTracker::new(),
    };
    tokio::spawn(listen::run(listener, options));
    node
}

/// OPS-7: a node with another secret has done nothing with a request, and that is logged once.
#[tokio::test]
async fn ops_7_a_node_that_does_not_know_the_secret_has_done_nothing() {
    let node = serving(Router::new().fallback(any(|| async { StatusCode::FORBIDDEN }))).await;
    let client = client();
    let mut logged = Vec::new();
    for _ in 0..2 {
        let passed = client.send(&node, 3, &call()).await;
        assert!(matches!(passed, ForwardOutcome::Refused), "{passed:?}");
        logged.push(client.log_secret_mismatch(&node.name));
    }
    assert_eq!(logged, [false, false], "sending has logged it");
    assert!(client.log_secret_mismatch("cleo"), "and for no other node");
}

/// OPS-7: if the connection is refused nothing was sent; if it breaks later the request may have
/// been.
#[tokio::test]
async fn ops_7_not_sent_and_lost_are_told_apart() {
    let client = client();
    let gone = listener().await;
    let nobody = node(&gone);
    drop(gone);
    let passed = client.send(&nobody, 3, &call()).await;
    assert!(matches!(passed, ForwardOutcome::NotSent), "{passed:?}");
    let rude = listener().await;
    let breaks_off = node(&rude);
    tokio::spawn(async move {
        while let Ok((mut line, _)) = rude.accept().await {
            let _ = line.read(&mut [0; 1024]).await;
        }
    });
    let passed = client.send(&breaks_off, 3, &call()).await;
    assert!(matches!(passed, ForwardOutcome::Lost), "{passed:?}");
}

/// A node that closes each HTTP/2 connection when it gets its first request, and says which stream
/// is the last that it processes.
async fn closing(last_stream: u8) -> Node {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let listener = listener().await;
    let node = node(&listener);
    tokio::spawn(async move {
        while let Ok((mut line, _)) = listener.accept().await {
            let go_away = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, last_stream, 0, 0, 0, 0];
            let mut seen = Vec::new();
            line.write_all(&SETTINGS).await.unwrap();
            while !seen.windows(4).any(|bytes| bytes == b"ann@") {
                assert_ne!(line.read_buf(&mut seen).await.unwrap(), 0, "a request comes");
            }
            line.write_all(&go_away).await.unwrap();
        }
    });
    node
}

/// OPS-7: a node that stops names the last request that it processes: those after it were not, and
/// that one may have been.
#[tokio::test]
async fn ops_7_a_closed_connection_names_its_last_request() {
    let mut call = call();
    // The body, unlike the headers, is sent as it is.
    call.body = Bytes::from_static(b"ann@");
    let passed = client().send(&closing(0).await, 3, &call).await;
    assert!(matches!(passed, ForwardOutcome::NotSent), "{passed:?}");
    let passed = client().send(&closing(1).await, 3, &call).await;
    assert!(matches!(passed, ForwardOutcome::Lost), "{passed:?}");
}

/// Readers that take nothing do not delay another one on the same connection, whatever was sent to
/// them.
#[tokio::test]
async fn a_stalled_stream_delays_no_other() {
    const STALLED: usize = 100;
    const READ_LEN: usize = 4 * STREAM_WINDOW as usize;
    let endless = || async {
        let piece = Ok::<_, std::convert::Infallible>(Bytes::from_static(&[0; 16 * 1024]));
        Body::from_stream(futures_util::stream::repeat(piece))
    };
    let node = serving(Router::new().fallback(any(endless))).await;
    let client = client();
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        stalled.push(client.open_stream(&node, "/").await.unwrap());
    }
    let mut body = client.open_stream(&node, "/").await.unwrap();
    let mut len = 0;
    while len < READ_LEN {
        let frame = tokio::time::timeout(Duration::from_secs(5), body.frame()).await;
        len += frame.expect("it is not delayed").unwrap().unwrap().data_ref().map_or(0, Bytes::len);
    }
}
