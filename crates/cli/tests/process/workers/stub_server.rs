//! The smallest HTTP server that a test can script: one request for each connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request as it came. The names of its headers are in small letters.
pub(super) struct StubRequest {
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// Serves on any port until the runtime ends.
pub(super) async fn serve(
    answer: impl Fn(StubRequest) -> (u16, String) + Send + Sync + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (addr, answer) = (listener.local_addr().unwrap(), Arc::new(answer));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = Arc::clone(&answer);
            // A caller that was killed gets no answer.
            tokio::spawn(async move { exchange(stream, &*answer).await });
        }
    });
    addr
}

async fn exchange(stream: TcpStream, answer: &(impl Fn(StubRequest) -> (u16, String) + Sync)) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let first = read_line(&mut stream).await?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    while let Some((name, value)) = read_line(&mut stream).await?.split_once(": ") {
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let len = headers.get("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
    let mut body = vec![0; len];
    stream.read_exact(&mut body).await.ok()?;
    let body = String::from_utf8(body).ok()?;
    let (status, body) = answer(StubRequest { path, headers, body });
    let head = format!("HTTP/1.1 {status} -\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await.ok()
}

async fn read_line(stream: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    Some(line.trim_end().to_owned())
}
