//! No response: whether the request can have arrived decides what happens to its key.

use std::time::Duration;

use http::{Request, Response};
use tidegate_idempotency::proxy::ProxyUpstream;
use tidegate_idempotency::{Policy, RefusalDialect};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

use crate::service::{Count, by_hand, full, one_request, serving};
use crate::world::{World, at, holding};

/// Long enough for a stalled machine to establish its connection.
const SILENCE: Duration = Duration::from_millis(1_500);

/// IDM-18: nothing listens: 502, and the key is free even where unknown outcomes are held.
#[tokio::test]
async fn idm_18_refused_is_not_started() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let world = World::new(at(addr), holding()).await;
    for _ in 0..2 {
        let came = world.post("k", "{}").await;
        assert_eq!((came.status, came.code().as_str()), (502, "UPSTREAM_UNREACHABLE"), "{}", came.body);
        assert!(came.body.contains("refused the connection"), "{}", came.body);
        assert!(came.body.ends_with(",\"idempotency_key\":\"k\"}"), "{}", came.body);
    }
}

/// IDM-16: in the IETF's dialect errors of the proxy are problem documents like all others, also
/// for requests without a key.
#[tokio::test]
async fn idm_16_errors_of_the_proxy_are_problems() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let world = World::new(at(addr), holding().with_dialect(RefusalDialect::Ietf)).await;
    let without = world.ask(Request::get(world.url("/items")), full("")).await;
    for (came, key) in [(world.post("k", "{}").await, Some("k")), (without, None)] {
        assert_eq!((came.status, came.code().as_str()), (502, "UPSTREAM_UNREACHABLE"), "{}", came.body);
        assert_eq!(came.headers["content-type"], "application/problem+json");
        let problem: serde_json::Value = serde_json::from_str(&came.body).unwrap();
        assert_eq!(problem["type"], "urn:tidegate:problem:UPSTREAM_UNREACHABLE", "{problem}");
        assert_eq!((&problem["title"], &problem["status"]), (&"Bad Gateway".into(), &502.into()));
        assert_eq!(problem["idempotency_key"].as_str(), key, "{problem}");
    }
}

/// IDM-18: an unknown host name: nothing was sent, and the response distinguishes it from a refused
/// connection.
#[tokio::test]
async fn idm_18_no_such_name_is_not_started() {
    // Too long for a host name, so that no name server is asked.
    let name = "n".repeat(64);
    let world = World::new(ProxyUpstream::from_url(&format!("http://{name}:1")).unwrap(), holding()).await;
    let came = world.post("k", "{}").await;
    assert_eq!((came.status, came.code().as_str()), (502, "UPSTREAM_UNREACHABLE"));
    assert!(came.body.contains("name of the service behind the proxy was not found"), "{}", came.body);
}

/// IDM-18: TLS that fails or never responds: nothing was sent.
#[tokio::test]
async fn idm_18_no_connection_is_not_started() {
    let closes = by_hand(async |stream: TcpStream| drop(stream)).await;
    let silent = by_hand(async |stream: TcpStream| {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    for (host, told) in [(closes, "No trusted TLS connection"), (silent, "cannot be reached")] {
        let mut upstream = ProxyUpstream::from_url(&format!("https://{host}")).unwrap();
        upstream.connect_timeout = Duration::from_millis(300);
        let world = World::new(upstream, holding()).await;
        for _ in 0..2 {
            let came = world.post("k", "{}").await;
            assert_eq!((came.status, came.code().as_str()), (502, "UPSTREAM_UNREACHABLE"), "{host}");
            assert!(came.body.contains(told), "{}", came.body);
        }
    }
}

/// A service that reads requests whole and closes without a response.
async fn rude(read: Count) -> std::net::SocketAddr {
    by_hand(move |mut stream: TcpStream| {
        let read = read.clone();
        async move {
            if !one_request(&mut stream).await.is_empty() {
                read.add(1);
            }
        }
    })
    .await
}

/// IDM-18: the request was read and then the connection ended: sent once, never retried by itself;
/// held or free, as configured.
#[tokio::test]
async fn idm_18_closed_after_the_request_is_unknown() {
    let read = Count::default();
    let world = World::new(at(rude(read.clone()).await), holding()).await;
    let came = world.post("k", "{}").await;
    assert_eq!((came.status, came.code().as_str()), (502, "UPSTREAM_RESET"));
    let came = world.post("k", "{}").await;
    assert_eq!((came.status, came.code().as_str()), (409, "IDEMPOTENCY_OUTCOME_UNKNOWN"));
    assert_eq!(read.get(), 1);

    let world = World::new(at(rude(read.clone()).await), Policy::default()).await;
    for _ in 0..2 {
        assert_eq!(world.post("k", "{}").await.code(), "UPSTREAM_RESET");
    }
    assert_eq!(read.get(), 3, "released: each repeat is sent once");
}

/// IDM-18: on a reused connection, too, a request that was read is not sent a second time.
#[tokio::test]
async fn idm_18_a_used_connection_that_closes_gets_no_request_twice() {
    let read = Count::default();
    let seen = read.clone();
    let addr = by_hand(move |mut stream: TcpStream| {
        let read = seen.clone();
        async move {
            // Responds to the first request of a connection and closes after the second.
            if !one_request(&mut stream).await.is_empty() {
                read.add(1);
                stream.write_all(b"HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nok").await.unwrap();
            }
            if !one_request(&mut stream).await.is_empty() {
                read.add(1);
            }
        }
    })
    .await;
    let world = World::new(at(addr), holding()).await;
    let mut resets = 0;
    for n in 1..=20 {
        let came = world.post(&format!("k{n}"), "{}").await;
        resets += usize::from(came.status == 502);
        assert_eq!(read.get(), n, "one request, one arrival");
    }
    assert!(resets > 0, "some went out on a connection that was used before");
}

/// IDM-18: silence is an unknown outcome: 504, then held.
#[tokio::test]
async fn idm_18_silence_is_unknown() {
    let read = Count::default();
    let seen = read.clone();
    let addr = by_hand(move |mut stream: TcpStream| {
        let read = seen.clone();
        async move {
            if !one_request(&mut stream).await.is_empty() {
                read.add(1);
            }
            std::future::pending::<()>().await;
        }
    })
    .await;
    let mut upstream = at(addr);
    upstream.answer_timeout = SILENCE;
    let world = World::new(upstream, holding()).await;
    let came = world.post("k", "{}").await;
    assert_eq!((came.status, came.code().as_str()), (504, "UPSTREAM_TIMEOUT"));
    let came = world.post("k", "{}").await;
    assert_eq!((came.status, came.code().as_str()), (409, "IDEMPOTENCY_OUTCOME_UNKNOWN"));
    assert_eq!(read.get(), 1);
}

/// IDM-18: a gateway behind the proxy that got no response knows no more than the proxy would: held
/// or free, as configured. A service's own error frees the key.
#[tokio::test]
async fn idm_18_a_gateways_word_leaves_the_outcome_unknown() {
    let gateways = [502, 504, 520, 522, 524].map(|status| (status, true));
    for (status, is_held) in gateways.into_iter().chain([(500, false), (503, false)]) {
        for (policy, holds) in [(holding(), is_held), (Policy::default(), false)] {
            let read = Count::default();
            let seen = read.clone();
            let addr = serving(move |_| {
                seen.add(1);
                async move { Response::builder().status(status).body(full("no answer")).unwrap() }
            })
            .await;
            let world = World::new(at(addr), policy).await;
            let came = world.post("k", "{}").await;
            assert_eq!((came.status, came.body.as_str()), (status, "no answer"));
            let again = world.post("k", "{}").await;
            if holds {
                assert_eq!(again.code(), "IDEMPOTENCY_OUTCOME_UNKNOWN", "{status}");
            } else {
                assert_eq!(again.status, status);
            }
            assert_eq!(read.get(), if holds { 1 } else { 2 }, "{status}");
        }
    }
}

/// IDM-18, IDM-11: a response that breaks off or stalls in the middle is not saved. Nothing of one
/// with known length was sent yet, so the client gets a response all the same.
#[tokio::test]
async fn idm_18_half_an_answer_is_unknown() {
    for (goes_silent, is_told, head) in [
        (false, true, "HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\nhalf"),
        (true, true, "HTTP/1.1 201 Created\r\ncontent-length: 100\r\n\r\nhalf"),
        (false, false, "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
    ] {
        let addr = by_hand(move |mut stream: TcpStream| async move {
            one_request(&mut stream).await;
            stream.write_all(head.as_bytes()).await.unwrap();
            if goes_silent {
                std::future::pending::<()>().await;
            }
        })
        .await;
        let mut upstream = at(addr);
        upstream.answer_timeout = SILENCE;
        let world = World::new(upstream, holding()).await;
        let request = http::Request::post(world.url("/items")).header("idempotency-key", "k");
        if is_told {
            let came = world.ask(request, full("{}")).await;
            assert_eq!((came.status, came.code().as_str()), (502, "IDEMPOTENCY_ANSWER_BROKEN"));
        } else {
            assert!(world.breaks(request, full("{}")).await, "the client sees that it broke");
        }
        assert_eq!(world.post("k", "{}").await.code(), "IDEMPOTENCY_OUTCOME_UNKNOWN");
    }
}

/// IDM-12: the service's own replay header passes.
#[tokio::test]
async fn idm_12_the_services_own_replay_header_passes() {
    let addr = serving(async |_| {
        let answer = Response::builder().header("idempotent-replayed", "by-the-service");
        answer.body(full("first")).unwrap()
    })
    .await;
    let world = World::new(at(addr), Policy::default()).await;
    assert_eq!(world.post("k", "{}").await.headers["idempotent-replayed"], "by-the-service");
    let again = world.post("k", "{}").await;
    assert_eq!(
        (again.headers["idempotent-replayed"].as_bytes(), again.body.as_str()),
        (&b"true"[..], "first")
    );
}
