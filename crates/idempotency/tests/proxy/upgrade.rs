//! Upgraded connections: joined, unless the request has a key.

use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tidegate_idempotency::Policy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::service::{full, serving};
use crate::world::{World, at};

/// A service that upgrades to a protocol in which everything is sent twice.
async fn echoes() -> std::net::SocketAddr {
    serving(async |mut request: Request<Incoming>| {
        if !request.headers().contains_key("upgrade") {
            return Response::new(full("no upgrade"));
        }
        let upgrading = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut stream = TokioIo::new(upgrading.await.unwrap());
            let mut word = [0; 4];
            while stream.read_exact(&mut word).await.is_ok() {
                stream.write_all(&[word, word].concat()).await.unwrap();
            }
        });
        let answer =
            Response::builder().status(101).header("connection", "upgrade").header("upgrade", "echo");
        answer.body(full("")).unwrap()
    })
    .await
}

async fn ask(world: &World, method: &str, more: &str) -> (TcpStream, String) {
    let mut client = TcpStream::connect(world.addr).await.unwrap();
    let head = format!(
        "{method} /echo HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\n{more}content-length: 0\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.unwrap();
    let mut read = String::new();
    while !read.contains("\r\n\r\n") {
        let mut some = [0; 1];
        client.read_exact(&mut some).await.unwrap();
        read.push(char::from(some[0]));
    }
    (client, read.to_ascii_lowercase())
}

/// IDM-12: both connections are joined, and end together.
#[tokio::test]
async fn idm_12_a_connection_changes_its_protocol() {
    let world = World::new(at(echoes().await), Policy::default()).await;
    let (mut client, head) = ask(&world, "GET", "upgrade: echo\r\n").await;
    assert!(head.starts_with("http/1.1 101 "), "{head}");
    assert!(head.contains("upgrade: echo\r\n") && head.contains("connection: upgrade\r\n"), "{head}");
    for _ in 0..3 {
        client.write_all(b"ping").await.unwrap();
        let mut twice = [0; 8];
        client.read_exact(&mut twice).await.unwrap();
        assert_eq!(&twice, b"pingping");
    }
    client.shutdown().await.unwrap();
    assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0, "the other side ended too");
}

/// IDM-12: a request with a key stays a request, so that it cannot bypass the layer; HTTP/2 needs
/// no upgrade.
#[tokio::test]
async fn idm_12_a_request_with_a_key_does_not_change_the_protocol() {
    let world = World::new(at(echoes().await), Policy::default()).await;
    for (method, more) in [("POST", "upgrade: echo\r\nidempotency-key: k\r\n"), ("GET", "upgrade: h2c\r\n")] {
        let (_, head) = ask(&world, method, more).await;
        assert!(head.starts_with("http/1.1 200 "), "{head}");
    }
}
