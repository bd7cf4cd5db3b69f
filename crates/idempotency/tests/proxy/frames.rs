//! HTTP/2 to the upstream: used when configured, and the meaning of a reset stream.

use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tidegate_idempotency::Policy;
use tokio::net::TcpStream;

use crate::service::{Count, by_hand, full, serving};
use crate::world::{World, at, holding};

/// IDM-12: an upstream configured for HTTP/2 sees HTTP/2 and its own authority.
#[tokio::test]
async fn idm_12_http2_behind() {
    let addr = serving(async |request| {
        let told = format!("{:?} {}", request.version(), request.uri());
        Response::new(full(told))
    })
    .await;
    let mut upstream = at(addr);
    upstream.http2 = true;
    let world = World::new(upstream, Policy::default()).await;
    let first = world.post("k", "{}").await;
    assert_eq!(first.body, format!("HTTP/2.0 http://{addr}/items"));
    let again = world.post("k", "{}").await;
    assert_eq!((again.body, again.headers["idempotent-replayed"].as_bytes()), (first.body, &b"true"[..]));
}

/// A service that resets every stream.
async fn resetting(reason: h2::Reason, seen: Count) -> std::net::SocketAddr {
    by_hand(move |stream: TcpStream| {
        let seen = seen.clone();
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                seen.add(1);
                h2::server::SendResponse::<Bytes>::send_reset(&mut respond, reason);
            }
        }
    })
    .await
}

/// IDM-18: a refused stream was not processed; any other reset leaves the outcome unknown. Neither
/// leaves the key in flight.
#[tokio::test]
async fn idm_18_a_reset_stream_is_unknown_and_a_refused_one_not_started() {
    for (reason, then) in [
        (h2::Reason::REFUSED_STREAM, (502, "UPSTREAM_UNREACHABLE")),
        (h2::Reason::INTERNAL_ERROR, (409, "IDEMPOTENCY_OUTCOME_UNKNOWN")),
        (h2::Reason::CANCEL, (409, "IDEMPOTENCY_OUTCOME_UNKNOWN")),
    ] {
        let seen = Count::default();
        let mut upstream = at(resetting(reason, seen.clone()).await);
        upstream.http2 = true;
        upstream.answer_timeout = Duration::from_secs(10);
        let world = World::new(upstream, holding()).await;
        assert_eq!(world.post("k", "{}").await.status, 502, "{reason:?}");
        assert_eq!(seen.get(), 1, "{reason:?}");
        let again = world.post("k", "{}").await;
        assert_eq!((again.status, again.code().as_str()), then, "{reason:?}");
    }
}
