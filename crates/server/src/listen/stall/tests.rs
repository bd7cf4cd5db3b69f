//! A peer that does not read.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const LEN: usize = 32 * 1024 * 1024;

async fn pair() -> (WriteTimeoutStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (WriteTimeoutStream::new(listener.accept().await.unwrap().0), there)
}

/// A write without progress times out; the paused clock advances at once while all tasks are idle.
#[tokio::test(start_paused = true)]
async fn a_write_that_nobody_reads_ends() {
    let (mut here, there) = pair().await;
    let error = here.write_all(&vec![0; LEN]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    drop(there);
}

/// A write that is read slowly continues for as long as it takes.
#[tokio::test]
async fn a_write_that_is_read_goes_through() {
    let (mut here, mut there) = pair().await;
    let reading = tokio::spawn(async move {
        let mut all = Vec::new();
        there.read_to_end(&mut all).await
    });
    here.write_all(&vec![0; LEN]).await.unwrap();
    here.shutdown().await.unwrap();
    assert_eq!(reading.await.unwrap().unwrap(), LEN);
}
