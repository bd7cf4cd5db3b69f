//! Large bodies through the paced proxy, both ways: the server's memory does not grow with them.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::ALONE;
use crate::child::{RunningServer, configure};

/// How long a body is, in bytes: many times what the server may need for it.
const LEN: usize = 128 << 20;
/// What the server may need more than before, in KiB.
const GROWN_MAX: u64 = 64 << 10;

/// Reads a head, and what came behind it.
async fn head(stream: &mut TcpStream) -> (String, usize) {
    let mut bytes = Vec::new();
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            return (String::from_utf8_lossy(&bytes[..at]).into_owned(), bytes.len() - at - 4);
        }
        assert!(stream.read_buf(&mut bytes).await.unwrap() > 0, "a head");
    }
}

async fn discard(stream: &mut TcpStream, mut left: usize) {
    let mut piece = vec![0; 64 << 10];
    while left > 0 {
        let most = left.min(piece.len());
        let read = stream.read(&mut piece[..most]).await.unwrap();
        assert!(read > 0, "{left} bytes did not come");
        left -= read;
    }
}

async fn fill(stream: &mut TcpStream) {
    let piece = vec![b'x'; 64 << 10];
    for _ in 0..LEN / piece.len() {
        stream.write_all(&piece).await.unwrap();
    }
}

/// An upstream that reads one large body and answers with another.
async fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (head, begun) = head(&mut stream).await;
        assert!(head.to_ascii_lowercase().contains(&format!("content-length: {LEN}")), "{head}");
        discard(&mut stream, LEN - begun).await;
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {LEN}\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.unwrap();
        fill(&mut stream).await;
        stream.flush().await.unwrap();
        // Until the other end has read it.
        let _ = stream.read(&mut [0]).await;
    });
    addr
}

/// A line of a process's status, in KiB.
fn memory(process: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// LIM-28: 128 MiB pass in each direction, and the server holds a few pieces of them at a time.
#[tokio::test(flavor = "multi_thread")]
async fn lim_28_large_bodies_take_no_memory() {
    let _alone = ALONE.lock().await;
    let upstream = upstream().await;
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), 8, &format!("[[upstream]]\nname = \"up\"\nbase_url = \"http://{upstream}\"\n"));
    let server = tokio::task::block_in_place(|| RunningServer::start(dir.path(), "warn", None));
    let before = memory(server.pid(), "VmRSS:");
    let mut stream = TcpStream::connect(server.address.trim_start_matches("http://")).await.unwrap();
    let request = format!("PUT /proxy/up/x HTTP/1.1\r\nhost: localhost\r\ncontent-length: {LEN}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    fill(&mut stream).await;
    let (head, begun) = head(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    discard(&mut stream, LEN - begun).await;
    let grown = memory(server.pid(), "VmHWM:").saturating_sub(before);
    println!("{} MiB each way, with {grown} KiB more than before", LEN >> 20);
    assert!(grown < GROWN_MAX, "{grown} KiB");
}
