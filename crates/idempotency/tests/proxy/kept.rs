//! The layer in front of the proxy: natural differences between attempts do not count, and a client
//! that disconnects stops nothing.

use std::sync::Arc;

use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tidegate_idempotency::Policy;
use tidegate_idempotency::proxy::ProxyUpstream;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::service::{Count, full, serving};
use crate::world::{PATIENCE, World, at};

async fn counting(count: Count) -> std::net::SocketAddr {
    serving(move |_| {
        let n = count.add(1);
        async move { Response::builder().status(201).body(full(format!("run {n}"))).unwrap() }
    })
    .await
}

/// IDM-20, IDM-12: what clients and proxies add to each attempt does not make it another request;
/// the body and the path do.
#[tokio::test]
async fn idm_20_what_differs_by_nature_does_not_count() {
    let count = Count::default();
    let world = World::new(at(counting(count.clone()).await), Policy::default()).await;
    for n in 1..=3 {
        let request = Request::post(world.url("/items"))
            .header("idempotency-key", "k")
            .header("date", format!("Sun, 15 Nov 2026 10:00:0{n} GMT"))
            .header("x-request-id", n)
            .header("traceparent", format!("00-{n:032}-{n:016}-01"))
            .header("x-forwarded-for", format!("192.0.2.{n}"))
            .header("via", format!("1.1 proxy-{n}"));
        let came = world.ask(request, full("{}")).await;
        assert_eq!((came.status, came.body.as_str()), (201, "run 1"));
        assert_eq!(came.headers.contains_key("idempotent-replayed"), n > 1);
    }
    assert_eq!(world.post("k", "{ }").await.code(), "IDEMPOTENCY_KEY_CONFLICT");
    assert_eq!(count.get(), 1);
}

/// IDM-17: the client disconnects while the service works: the request is completed, and the retry
/// gets its response.
#[tokio::test]
async fn idm_17_a_client_that_hangs_up_stops_nothing() {
    let (began, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let count = Count::default();
    let (told, awaited, counted) = (Arc::clone(&began), Arc::clone(&go), count.clone());
    let addr = serving(move |_| {
        let (began, go, count) = (Arc::clone(&told), Arc::clone(&awaited), counted.clone());
        async move {
            count.add(1);
            began.notify_one();
            go.notified().await;
            Response::new(full("done"))
        }
    })
    .await;
    let policy = Policy::default().with_in_flight(tidegate_idempotency::InFlightPolicy::Wait(PATIENCE));
    let world = World::new(at(addr), policy).await;
    let mut client = TcpStream::connect(world.addr).await.unwrap();
    let request = "POST /items HTTP/1.1\r\nhost: x\r\nidempotency-key: k\r\ncontent-length: 2\r\n\r\n{}";
    client.write_all(request.as_bytes()).await.unwrap();
    began.notified().await;
    drop(client);
    go.notify_one();
    let again = world.post("k", "{}").await;
    assert_eq!((again.body.as_str(), count.get()), ("done", 1));
    assert_eq!(again.headers["idempotent-replayed"], "true");
}

/// IDM-12, IDM-19: links of the service to itself lead through the proxy, in the first response and
/// in its replay alike, whichever name the client uses.
#[tokio::test]
async fn idm_19_the_links_of_a_replay_are_those_of_the_first_response() {
    let addr = serving(|request: Request<Incoming>| {
        let path = request.uri().path().to_owned();
        let host = request.headers()["host"].to_str().unwrap().to_owned();
        let link = format!("<http://{host}{path}?page=2>; rel=next, <http://other.example/x>; rel=help");
        let answer = Response::builder().status(201).header("location", format!("http://{host}{path}/7"));
        let answer = answer.header("link", link).body(full("made")).unwrap();
        async move { answer }
    })
    .await;
    let upstream = ProxyUpstream::from_url(&format!("http://{addr}/base")).unwrap();
    let world = World::new(upstream.clone(), Policy::default()).await;
    for host in ["shop.example.com", "www.example.com"] {
        let request = Request::post(world.url("/orders")).header("idempotency-key", "k").header("host", host);
        let came = world.ask(request, full("{}")).await;
        assert_eq!(
            (came.status, came.headers.contains_key("idempotent-replayed")),
            (201, host != "shop.example.com")
        );
        assert_eq!(came.headers["location"], "/orders/7");
        assert_eq!(came.headers["link"], "</orders?page=2>; rel=next, <http://other.example/x>; rel=help");
    }
    let mut as_sent = upstream;
    as_sent.rewrite_links = false;
    let world = World::new(as_sent, Policy::default()).await;
    let came = world.ask(Request::post(world.url("/orders")), full("{}")).await;
    assert_eq!(came.headers["location"], format!("http://{addr}/base/orders/7").as_str());
}

/// IDM-19: a response that was saved as gzip is replayed as gzip to clients that accept it, and
/// plain to those that do not.
#[tokio::test]
async fn idm_19_a_replay_can_be_read_by_its_client() {
    let text = "a page of text, ".repeat(100);
    let packed = tidegate_encoding::encode(tidegate_encoding::Coding::Gzip, text.as_bytes()).await.unwrap();
    let sent = packed.clone();
    let addr = serving(move |_| {
        let answer = Response::builder().header("content-encoding", "gzip").header("etag", "\"7\"");
        let answer = answer.body(full(sent.clone())).unwrap();
        async move { answer }
    })
    .await;
    let world = World::new(at(addr), Policy::default()).await;
    let ask = async |accepted: Option<&str>| {
        let mut request = Request::post(world.url("/x")).header("idempotency-key", "k");
        if let Some(accepted) = accepted {
            request = request.header("accept-encoding", accepted);
        }
        let answer = world.begin(request, full("{}")).await;
        let headers = answer.headers().clone();
        (headers, answer.into_body().collect().await.unwrap().to_bytes())
    };
    assert_eq!(ask(Some("gzip")).await.1, packed);
    for accepted in ["br, gzip;q=0.5", "*"] {
        let (headers, body) = ask(Some(accepted)).await;
        assert_eq!((&headers["content-encoding"], &body), (&"gzip".parse().unwrap(), &packed), "{accepted}");
    }
    for accepted in [None, Some("identity"), Some("br"), Some("gzip;q=0")] {
        let (headers, body) = ask(accepted).await;
        assert_eq!(body, text, "{accepted:?}");
        assert!(!headers.contains_key("content-encoding"), "{headers:?}");
        assert_eq!(headers["etag"], "W/\"7\"");
        assert_eq!(headers["vary"], "accept-encoding");
        assert_eq!(headers["content-length"], text.len().to_string().as_str());
        assert_eq!(headers["idempotent-replayed"], "true");
    }
}
