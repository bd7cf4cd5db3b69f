//! How fast a directory takes appends: batches of 64 operations with payloads of 512 bytes, and as many results, each
//! on the disk before it is answered. `append_rate [BATCHES] [IN_FLIGHT]`; the directory is made and removed.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::fact::{Accepted, After, Settled};
use tidegate_core::{EndState, Fact, Fence, OnFailure, OnUnknown, Seq, Time};
use tidegate_store::log::{Batch, Ownership, StoredOperation, StoredResult};
use tidegate_store::{Clock, Log, WallClock};
use tidegate_store_embedded::{Embedded, Options};
use tokio::time::Instant;

const IN_BATCH: u64 = 64;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse());
    let batches: u64 = arguments.next().transpose()?.unwrap_or(20_000);
    let in_flight: u64 = arguments.next().transpose()?.unwrap_or(2);
    let dir = tempfile::tempdir()?;
    let store = Arc::new(Embedded::open(dir.path(), Options::new(Arc::new(WallClock)))?);
    let owner = store.own(0, "append_rate", Duration::from_secs(3_600)).await?;
    let start = Instant::now();
    let mut lanes = tokio::task::JoinSet::new();
    for lane in 0..in_flight {
        let numbers = (lane..batches).step_by(usize::try_from(in_flight)?);
        lanes.spawn(append_all(Arc::clone(&store), owner, numbers.collect()));
    }
    let mut waits = Vec::new();
    while let Some(lane) = lanes.join_next().await {
        waits.extend(lane??);
    }
    let seconds = start.elapsed().as_secs_f64();
    waits.sort_unstable();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize].as_secs_f64() * 1_000.0;
    let (rows, lifecycles) = (batches * (2 * IN_BATCH + 1), batches * IN_BATCH);
    println!(
        "{batches} appends, {in_flight} in flight, {seconds:.1} s: {:.0} rows/s, {:.0} operations with results/s",
        rows as f64 / seconds,
        lifecycles as f64 / seconds
    );
    println!(
        "append p50 {:.2} ms, p99 {:.2} ms, p99.9 {:.2} ms, longest {:.2} ms",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
    Ok(())
}

async fn append_all(
    store: Arc<Embedded>,
    owner: Ownership,
    numbers: Vec<u64>,
) -> tidegate_store::Result<Vec<Duration>> {
    let mut waits = Vec::with_capacity(numbers.len());
    for number in numbers {
        let batch = batch(1 + number * IN_BATCH);
        let start = Instant::now();
        store.append(owner, batch).await?;
        waits.push(start.elapsed());
    }
    Ok(waits)
}

fn batch(first: u64) -> Batch {
    let (at, mut batch) = (WallClock.now(), Batch::default());
    for seq in (first..first + IN_BATCH).map(Seq) {
        let (group, kind): (Arc<str>, Arc<str>) = (format!("group:{}", seq.0 % 1_000).into(), "http".into());
        batch.facts.extend(life(seq, at, &group, &kind));
        batch.operations.push(StoredOperation {
            seq,
            at,
            group,
            kind,
            key: None,
            envelope: Bytes::from_static(&[b'e'; 64]),
            payload: Bytes::from_static(&[b'p'; 512]),
        });
        batch.results.push(StoredResult {
            seq,
            at,
            state: EndState::Succeeded,
            attempt: 1,
            fault: None,
            body: Bytes::from_static(&[b'r'; 16]),
        });
    }
    batch
}

fn life(seq: Seq, at: Time, group: &Arc<str>, kind: &Arc<str>) -> [Fact; 3] {
    let (fence, after) = (Fence(seq.0), After::Ended { state: EndState::Succeeded, hold: false });
    [
        Fact::Accepted(Box::new(Accepted {
            seq,
            at,
            group: Arc::clone(group),
            kind: Arc::clone(kind),
            charges: Vec::new(),
            deadline: None,
            not_before: None,
            max_attempts: 8,
            priority: 0,
            on_unknown: OnUnknown::Repeat,
            on_failure: OnFailure::Skip,
            dedupe: None,
            again: false,
        })),
        Fact::Claimed { seq, fence, at, until: at },
        Fact::Settled(Box::new(Settled { seq, fence, at, after, fault: None, hints: Vec::new() })),
    ]
}
