//! Requests that were not sent are distinguished from those that may have been.

use std::time::Duration;

use hyper::Request;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tidegate_core::{FaultClass, Verdict};
use tidegate_upstream::http::UpstreamConfig;
use tidegate_upstream::http::send_state::WithdrawableBody;
use tidegate_upstream::{HttpUpstreams, Outcome, Upstream};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

use crate::peer::{Peer, answer};
use crate::{GET, NOBODY, NOW, POST, call, carry, message, payload, upstreams};

fn assert_not_sent(outcome: &Outcome) {
    let Verdict::Retry { after: None, fault } = &outcome.verdict else { panic!("{outcome:?}") };
    assert_eq!(fault.class, FaultClass::Transient);
    assert!(fault.message.contains("was not sent: "), "{}", fault.message);
}

/// OPS-23: no listener, or an unknown host: not sent.
#[tokio::test]
async fn ops_23_no_connection_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    for request in [POST, GET] {
        assert_not_sent(&carry(&upstreams(format!("http://127.0.0.1:{port}")), request).await);
    }
    let outcome = carry(&upstreams(NOBODY), POST).await;
    assert_not_sent(&outcome);
}

/// OPS-23: with a failed handshake the request is not sent.
#[tokio::test]
async fn ops_23_a_failed_handshake_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 64]).await.unwrap() > 0);
    });
    assert_not_sent(&carry(&upstreams(url), POST).await);
    server.await.unwrap();
}

/// OPS-23: a timeout while the connection is still being made means not sent, whichever limit it
/// was.
#[tokio::test]
async fn ops_23_time_spent_connecting_is_not_sent() {
    // It accepts connections and never responds to the handshake.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let short = Duration::from_millis(200);

    let slow = UpstreamConfig::new("echo", &url).with_connect_timeout(short);
    let slow = HttpUpstreams::new(vec![slow]).unwrap();
    assert_not_sent(&carry(&slow, POST).await);

    let payload = payload(POST);
    let deadline = Some(NOW.after(short));
    let outcome = upstreams(&url).carry(call(&payload, "op-1").with_deadline(deadline)).await;
    assert_not_sent(&outcome);
}

/// A deadline that has passed sends nothing.
#[tokio::test]
async fn a_passed_deadline_sends_nothing() {
    let peer = Peer::saying("").await;
    let payload = payload(POST);
    let outcome = upstreams(peer.url()).carry(call(&payload, "op-1").with_deadline(NOW)).await;
    assert_not_sent(&outcome);
    assert!(message(&outcome.verdict).contains("deadline"));
    assert!(peer.seen().is_empty());
}

/// OPS-8: an upstream missing from the configuration loses nothing: operations accepted for it
/// wait.
#[tokio::test]
async fn ops_8_what_was_accepted_for_a_missing_upstream_waits() {
    let none = HttpUpstreams::new(Vec::new()).unwrap();
    let payload = payload(POST);
    let outcome = none.carry(call(&payload, "op-1")).await;
    let Verdict::Throttled { fault, after: Some(_), .. } = outcome.verdict else { panic!("{outcome:?}") };
    assert!(fault.message.contains("No upstream is called \"echo\""), "{fault}");
}

/// OPS-23: a request withdrawn before the connection asked for it never reaches the wire.
#[tokio::test]
async fn ops_23_a_withdrawn_request_never_leaves() {
    let peer = Peer::saying(answer("200 OK", "", "")).await;
    for (method, bytes) in [("GET", ""), ("HEAD", ""), ("DELETE", ""), ("POST", ""), ("POST", "body")] {
        let (body, departure) = WithdrawableBody::new(bytes.into());
        let body = if method == "POST" { body.with_declared_length() } else { body };
        assert!(departure.withdraw());
        let stream = TcpStream::connect(peer.url().trim_start_matches("http://")).await.unwrap();
        let (mut requests, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        let connection = tokio::spawn(connection);
        let request = Request::builder().method(method).uri("/").header("host", "peer").body(body).unwrap();
        assert!(requests.send_request(request).await.is_err(), "{method} {bytes}");
        // Only the request learns of its end.
        drop(connection.await.unwrap());
        peer.one_gone().await;
    }
    assert!(peer.seen().is_empty());
    assert_eq!(peer.started(), 0, "a byte of it came");
}
