//! Requests that are not processed: those that come back to the proxy that forwarded them, and
//! those without a host.

use std::sync::{Arc, OnceLock};

use http::{Request, Response};
use tidegate_idempotency::Policy;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;

use crate::service::{Count, by_hand, full, serving};
use crate::world::{PATIENCE, World, at, holding};

/// IDM-12, IDM-18: a proxy that leads to itself forwards a request once and reports the loop; no
/// key is held or kept.
#[tokio::test]
async fn idm_12_a_loop_ends_after_one_round() {
    let rounds = Count::default();
    let proxy: Arc<OnceLock<std::net::SocketAddr>> = Arc::default();
    let (count, to) = (rounds.clone(), Arc::clone(&proxy));
    let relay = by_hand(move |mut stream: TcpStream| {
        count.add(1);
        let to = *to.get().unwrap();
        async move {
            let mut onward = TcpStream::connect(to).await.unwrap();
            let _ = copy_bidirectional(&mut stream, &mut onward).await;
        }
    })
    .await;
    let world = World::new(at(relay), holding().with_keep_server_errors(true)).await;
    proxy.set(world.addr).unwrap();
    for _ in 0..2 {
        let came = world.post("k", "{}").await;
        assert_eq!((came.status, came.code().as_str()), (508, "UPSTREAM_LOOP"), "{}", came.body);
        assert!(!came.headers.contains_key("idempotent-replayed"));
    }
    let came = world.ask(Request::get(world.url("/")), full("")).await;
    assert_eq!((came.status, came.code().as_str()), (508, "UPSTREAM_LOOP"), "{}", came.body);
    assert!(rounds.get() <= 3, "{} connections for three requests", rounds.get());
}

/// IDM-12: the proxy's pseudonym is appended to those of others, which pass.
#[tokio::test]
async fn idm_12_via_is_added_to() {
    let addr = serving(async |request| {
        let via = request.headers().get_all("via").iter().map(|line| line.to_str().unwrap());
        Response::new(full(via.collect::<Vec<_>>().join(", ")))
    })
    .await;
    let (one, other) =
        (World::new(at(addr), Policy::default()).await, World::new(at(addr), Policy::default()).await);
    let asked = |world: &World| Request::get(world.url("/")).header("via", "1.1 a, 1.1 tidegate-00");
    let (one, other) = (one.ask(asked(&one), full("")).await, other.ask(asked(&other), full("")).await);
    assert!(one.body.starts_with("1.1 a, 1.1 tidegate-00, 1.1 tidegate-"), "{}", one.body);
    assert_ne!(one.body, other.body, "each has a name of its own");
}

/// IDM-12: HTTP/1.1 without a host, or with two, is rejected and not forwarded; HTTP/1.0 needs
/// none.
#[tokio::test]
async fn idm_12_a_host_is_needed() {
    let count = Count::default();
    let seen = count.clone();
    let addr = serving(move |_| {
        seen.add(1);
        async { Response::new(full("done")) }
    })
    .await;
    let world = World::new(at(addr), holding()).await;
    for (head, status, sent) in [
        ("POST / HTTP/1.1\r\nidempotency-key: k\r\n", "HTTP/1.1 400", 0),
        ("POST / HTTP/1.1\r\nhost: a\r\nhost: b\r\n", "HTTP/1.1 400", 0),
        ("POST / HTTP/1.0\r\n", "HTTP/1.0 200", 1),
    ] {
        let mut stream = TcpStream::connect(world.addr).await.unwrap();
        let request = format!("{head}connection: close\r\ncontent-length: 0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut came = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut came)).await.unwrap().unwrap();
        assert!(came.starts_with(status), "{head}: {came}");
        assert_eq!((count.get(), came.contains("INVALID_HOST")), (sent, sent == 0), "{head}: {came}");
    }
}
