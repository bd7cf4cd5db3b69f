//! What passes: heads without hop-by-hop headers, bodies and trailers in both directions.

use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tidegate_idempotency::proxy::ProxyUpstream;
use tidegate_idempotency::{BoxError, LayerBody, Policy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::service::{by_hand, full, one_request, serving};
use crate::world::{World, at};

/// A service that returns what it was sent.
async fn mirror() -> std::net::SocketAddr {
    serving(async |request: Request<hyper::body::Incoming>| {
        let told: serde_json::Map<_, _> = request
            .headers()
            .iter()
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into()))
            .chain([("uri".to_owned(), request.uri().to_string().into())])
            .collect();
        let answer = Response::builder()
            .header("connection", "x-private")
            .header("x-private", "1")
            .header("keep-alive", "timeout=5")
            .header("x-public", "1");
        answer.body(full(serde_json::to_string(&told).unwrap())).unwrap()
    })
    .await
}

async fn seen(world: &World, request: http::request::Builder) -> (serde_json::Value, HeaderMap) {
    let came = world.ask(request, full("")).await;
    (serde_json::from_str(&came.body).unwrap(), came.headers)
}

/// IDM-12: hop-by-hop headers are removed in both directions; the origin of a request is added.
#[tokio::test]
async fn idm_12_heads_are_freed_of_the_connection() {
    let addr = mirror().await;
    let world = World::new(at(addr), Policy::default()).await;
    let request = Request::get(world.url("/a?b=c"))
        .header("connection", "keep-alive, x-mine")
        .header("x-mine", "1")
        .header("proxy-authorization", "Basic eA==")
        .header("te", "gzip, trailers")
        .header("upgrade", "h2c")
        .header("x-forwarded-for", "198.51.100.1")
        .header("x-yours", "1");
    let (told, headers) = seen(&world, request).await;
    for gone in ["x-mine", "proxy-authorization", "upgrade", "keep-alive"] {
        assert!(told.get(gone).is_none(), "{gone}: {told}");
    }
    let wanted = [
        ("uri", "/a?b=c"),
        ("x-yours", "1"),
        ("te", "trailers"),
        ("connection", "te"),
        ("x-forwarded-for", "198.51.100.1, 192.0.2.7"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", &world.addr.to_string()),
        ("host", &addr.to_string()),
    ];
    for (name, value) in wanted {
        assert_eq!(told[name], value, "{name}: {told}");
    }
    assert!(!headers.contains_key("x-private") && !headers.contains_key("keep-alive"), "{headers:?}");
    assert_eq!(headers["x-public"], "1");
}

/// IDM-12: the client's host, if configured; a path in the upstream's URL is a prefix.
#[tokio::test]
async fn idm_12_host_and_prefix() {
    let addr = mirror().await;
    let mut upstream = ProxyUpstream::from_url(&format!("http://{addr}/base/")).unwrap();
    upstream.preserve_host = true;
    let world = World::new(upstream, Policy::default()).await;
    let request = Request::get(world.url("/a//b?c")).header("host", "shop.example.com");
    let (told, _) = seen(&world, request).await;
    assert_eq!((&told["host"], &told["uri"]), (&"shop.example.com".into(), &"/base/a//b?c".into()));
}

/// IDM-12: no path escapes the prefix in the upstream's URL, with a key or without; nothing is
/// forwarded.
#[tokio::test]
async fn idm_12_no_path_leads_out_of_the_upstreams() {
    let addr = mirror().await;
    let world =
        World::new(ProxyUpstream::from_url(&format!("http://{addr}/public")).unwrap(), Policy::default())
            .await;
    for path in ["/../admin", "/a/%2e%2e/%2E./admin", "/..%2fadmin", "/..;/admin", "/..\\admin", "/.."] {
        for key in ["", "idempotency-key: k\r\n"] {
            let mut stream = TcpStream::connect(world.addr).await.unwrap();
            let request = format!(
                "POST {path} HTTP/1.1\r\nhost: a\r\n{key}content-length: 0\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("INVALID_TARGET"), "{answer}");
        }
    }
    let (told, _) = seen(&world, Request::get(world.url("/a/../b?next=/../c"))).await;
    assert_eq!(told["uri"], "/public/a/../b?next=/../c");
}

fn with_trailers(text: &'static str) -> LayerBody {
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "42".parse().unwrap());
    let frames = [Ok::<_, BoxError>(Frame::data(text.into())), Ok(Frame::trailers(trailers))];
    StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()
}

/// IDM-11, IDM-12: trailers pass in both directions, with and without a key, in HTTP/1.1 and
/// HTTP/2, and a replay has them too.
#[tokio::test]
async fn idm_12_trailers_pass_both_ways() {
    let addr = serving(async |request: Request<hyper::body::Incoming>| {
        let body = request.into_body().collect().await.unwrap();
        let sum = body.trailers().map(|trailers| trailers["x-sum"].clone());
        let answer = Response::builder().header("trailer", "x-sum");
        let answer = if let Some(sum) = sum { answer.header("x-was", sum) } else { answer };
        answer.body(with_trailers("answer")).unwrap()
    })
    .await;
    for http2 in [false, true] {
        let mut upstream = at(addr);
        upstream.http2 = http2;
        let world = World::new(upstream, Policy::default()).await;
        for (key, replayed) in [(None, false), (Some("k"), false), (Some("k"), true)] {
            let request =
                Request::post(world.url("/items")).header("te", "trailers").header("trailer", "x-sum");
            let request =
                key.into_iter().fold(request, |request, key| request.header("idempotency-key", key));
            let came = world.ask(request, with_trailers("request")).await;
            assert_eq!((came.body.as_str(), &came.headers["x-was"]), ("answer", &"42".parse().unwrap()));
            assert_eq!(came.trailers.unwrap()["x-sum"], "42", "{key:?}");
            assert_eq!(came.headers.contains_key("idempotent-replayed"), replayed);
        }
    }
}

/// IDM-12: a client that waits for `100 Continue` gets it from the proxy, and the service never
/// sees `Expect`.
#[tokio::test]
async fn idm_12_a_client_that_waits_to_continue() {
    let addr = by_hand(async |mut stream: TcpStream| {
        let request = one_request(&mut stream).await;
        let expects = request.to_ascii_lowercase().contains("expect");
        let body = if expects { "expected" } else { "went on" };
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let world = World::new(at(addr), Policy::default()).await;
    for key in ["", "idempotency-key: k\r\n"] {
        let mut client = TcpStream::connect(world.addr).await.unwrap();
        let head = format!(
            "POST /items HTTP/1.1\r\nhost: x\r\n{key}connection: close\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
        );
        client.write_all(head.as_bytes()).await.unwrap();
        let mut read = [0; 25];
        client.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"HTTP/1.1 100 Continue\r\n\r\n");
        client.write_all(b"{}").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("went on"), "{answer}");
    }
}

/// IDM-12: the proxy opens no tunnels.
#[tokio::test]
async fn idm_12_there_are_no_tunnels() {
    let world = World::new(at(mirror().await), Policy::default()).await;
    let mut client = TcpStream::connect(world.addr).await.unwrap();
    client.write_all(b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 501 "), "{answer}");
}

/// IDM-12: a request with a length and with chunks is one request behind the proxy too, and no part
/// of it becomes a second one.
#[tokio::test]
async fn idm_12_no_request_is_hidden_in_another() {
    let addr = serving(async |request: Request<hyper::body::Incoming>| {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Response::new(full(format!("{} {} bytes", parts.uri, body.len())))
    })
    .await;
    let world = World::new(at(addr), Policy::default()).await;
    for lines in [
        "content-length: 5\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
    ] {
        let mut client = TcpStream::connect(world.addr).await.unwrap();
        let hidden = "GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n";
        let chunk = format!("{:x}\r\n{hidden}\r\n0\r\n\r\n", hidden.len());
        let request = format!("POST /seen HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{lines}\r\n{chunk}");
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        let refused = answer.starts_with("HTTP/1.1 400 ");
        assert!(refused || answer.ends_with(&format!("/seen {} bytes", hidden.len())), "{answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
    }
}
