//! A Redis whose scripts are flushed under load.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::load::{self, Load, RetryMode};
use super::nodes::Nodes;
use super::store::Store;
use crate::ALONE;

/// The scripts of a Redis are flushed again and again: no request fails.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_may_be_flushed_at_any_time() {
    const FLUSHES: usize = 40;
    const BETWEEN: Duration = Duration::from_millis(50);
    let _alone = ALONE.lock().await;
    let nodes = Nodes::start(4, Store::redis()).await;
    let load = Load::start(&nodes, RetryMode::Strict);
    let Store::Redis(redis) = &nodes.store else { panic!("it is a Redis") };
    let mut line = TcpStream::connect(("127.0.0.1", redis.port())).await.unwrap();
    for _ in 0..FLUSHES {
        line.write_all(b"SCRIPT FLUSH\r\n").await.unwrap();
        let mut ok = [0; 5];
        line.read_exact(&mut ok).await.unwrap();
        assert_eq!(&ok, b"+OK\r\n");
        sleep(BETWEEN).await;
    }
    let groups = load.end().await;
    load::check(&nodes, &groups, |_| 0).await;
}
