//! How long a Redis takes for an append: batches of 128 operations with payloads of 512 bytes, one after the other and
//! several at once. `append_rate [BATCHES] [URL]`; without a URL a server is started and ended.

use std::time::Duration;

use bytes::Bytes;
use tidegate_core::{Fact, Seq, Time};
use tidegate_fixture::redis::Redis as Server;
use tidegate_store::Log;
use tidegate_store::log::{Batch, Lsn, Ownership, StoredOperation};
use tidegate_store_redis::Redis;
use tokio::time::Instant;

const IN_BATCH: u64 = 128;
const IN_FLIGHT: u64 = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let batches: u64 = arguments.next().map(|count| count.parse()).transpose()?.unwrap_or(500);
    let named = arguments.next();
    let server = named.is_none().then(Server::start);
    let url = named.or_else(|| server.as_ref().map(Server::url)).unwrap_or_default();
    let store = Redis::open(&url).await?;
    let owner = store.own(0, "append_rate", Duration::from_secs(3_600)).await?;
    let mut waits = Vec::new();
    let mut last = store.load(0, &mut |_| ()).await?;
    for _ in 0..batches {
        let start = Instant::now();
        last = append(&store, owner, last).await?;
        waits.push(start.elapsed());
    }
    waits.sort_unstable();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1_000.0;
    println!(
        "{batches} appends of {IN_BATCH}: median {:.2} ms, p99 {:.2} ms, longest {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    );
    let start = Instant::now();
    for _ in 0..batches / IN_FLIGHT {
        let trips = (0..IN_FLIGHT).map(|ahead| append(&store, owner, Lsn(last.0 + ahead)));
        for done in futures_util::future::join_all(trips).await {
            last = done?;
        }
    }
    let each = start.elapsed().as_secs_f64() * 1_000.0 / ((batches / IN_FLIGHT * IN_FLIGHT) as f64);
    println!("{IN_FLIGHT} at once: {each:.2} ms each, {:.0} operations/s", IN_BATCH as f64 / each * 1_000.0);
    Ok(())
}

/// The append after `follows`, whose seqs follow from its number.
async fn append(store: &Redis, owner: Ownership, follows: Lsn) -> tidegate_store::Result<Lsn> {
    let first = follows.0 * IN_BATCH + 1;
    let operations = (first..first + IN_BATCH).map(|seq| StoredOperation {
        seq: Seq(seq),
        at: Time::from_millis(1_780_000_000_000),
        group: format!("shop:{}", seq % 1_000).into(),
        kind: "http".into(),
        key: None,
        envelope: Bytes::from_static(&[b'e'; 60]),
        payload: Bytes::from_static(&[b'p'; 512]),
    });
    let facts = (first..first + IN_BATCH).map(|seq| Fact::CancelAsked { seq: Seq(seq) }).collect();
    let batch = Batch { facts, operations: operations.collect(), follows: Some(follows), ..Batch::default() };
    store.append(owner, batch).await
}
