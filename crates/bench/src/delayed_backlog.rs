//! Operations that wait in servers and are not sent while a benchmark runs, submitted over HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::task::JoinSet;

use crate::call;
use crate::client::Client;

/// Connections that submit them.
const CONNECTIONS: usize = 8;

/// How many they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayedBacklog {
    pub operations: u64,
    pub groups: u64,
    /// Bytes of the body that each would send.
    pub payload: usize,
    /// Operations per request.
    pub batch: u64,
}

impl DelayedBacklog {
    /// Submits all of them, over connections to these servers in turn.
    pub(crate) async fn submit(self, addrs: &[SocketAddr]) -> Result<(), String> {
        let (next, mut tasks) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
        for addr in addrs.iter().cycle().take(CONNECTIONS) {
            tasks.spawn(self.submit_batches(*addr, Arc::clone(&next)));
        }
        while let Some(ended) = tasks.join_next().await {
            ended.map_err(|error| error.to_string())??;
        }
        Ok(())
    }

    /// Submits one batch after the other on one connection, until no one has any left.
    async fn submit_batches(self, addr: SocketAddr, next: Arc<AtomicU64>) -> Result<(), String> {
        let (mut client, body) = (Client::connect(addr).await?, call::body(self.payload));
        loop {
            let first = next.fetch_add(self.batch, Ordering::Relaxed);
            if first >= self.operations {
                return Ok(());
            }
            let batch = first..(first + self.batch).min(self.operations);
            let calls: Vec<_> = batch.map(|number| call::delayed(number % self.groups, &body)).collect();
            client.post(&call::batch(addr, &calls)).await?;
        }
    }
}
