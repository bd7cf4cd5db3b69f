//! A long queue: payloads that are not in memory are read ahead, in few reads, and what is sent is
//! what was accepted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Options, Submission};
use tidegate_contract::rng::seeds;
use tidegate_contract::{FaultPlan, FaultRates, FaultyStore, StoreMethod};
use tidegate_core::{OnUnknown, Verdict};
use tidegate_store::Store;

use crate::scripted_upstream::*;

const GROUPS: usize = 100;
/// Long enough that nothing runs while the queue is filled, in virtual time.
const DELAY: Duration = Duration::from_secs(600);

fn queued(number: usize) -> Submission {
    let body = format!("|{number:05}");
    let operation = operation(&format!("g{}", number * 7 % GROUPS), &body);
    operation.with_delay(DELAY).with_on_unknown(OnUnknown::Repeat)
}

/// A store in which `operations` operations wait, and whose reads are counted.
async fn filled(operations: usize) -> (Arc<FaultyStore>, Arc<dyn Store>) {
    let faulty = Arc::new(FaultyStore::new(memory(), FaultPlan::none()));
    let store: Arc<dyn Store> = Arc::clone(&faulty) as _;
    let engine = open(&store, &all_done(1)).await;
    for answer in engine.submit_all((0..operations).map(queued).collect()).await {
        answer.unwrap();
    }
    engine.drain().await;
    (faulty, store)
}

/// Calls of different length, so that they end one by one and each take is small.
fn uneven() -> Arc<ScriptedUpstream> {
    ScriptedUpstream::new(|payload, _| {
        let number: u64 = payload.trim_start_matches('|').parse().unwrap_or_default();
        (Duration::from_millis(number * 7_919 % 97 + 1), Verdict::Done)
    })
}

/// OPS-4: every waiting operation is sent once, as it was accepted and in order, and a read serves
/// many calls.
#[tokio::test(start_paused = true)]
async fn ops_4_a_long_queue_is_read_in_few_reads() {
    const OPERATIONS: usize = 3_000;
    let (faulty, store) = filled(OPERATIONS).await;
    let reads_before = faulty.calls_of(StoreMethod::Read);
    let upstream = uneven();
    let engine = open(&store, &upstream).await;
    while engine.counts().await.unwrap().succeeded < OPERATIONS as u64 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let reads = faulty.calls_of(StoreMethod::Read) - reads_before;
    assert!(reads < OPERATIONS as u64 / 50, "{reads} reads for {OPERATIONS} calls");
    let sent = upstream.payloads();
    let mut sorted = sent.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..OPERATIONS).map(|number| format!("|{number:05}")).collect::<Vec<_>>());
    let mut last = BTreeMap::new();
    for payload in sent {
        let group = payload.trim_start_matches('|').parse::<usize>().unwrap() * 7 % GROUPS;
        let before = last.insert(group, payload.clone());
        assert!(before.is_none_or(|before| before < payload), "group {group} is out of order");
    }
}

/// OPS-8: the same while reads and appends fail and operations arrive, whatever fits into memory:
/// every accepted body is sent, and no other.
#[tokio::test(start_paused = true)]
async fn ops_8_a_long_queue_survives_a_store_that_fails() {
    const OPERATIONS: usize = 400;
    for seed in seeds(12) {
        let (faulty, store) = filled(OPERATIONS).await;
        let odds = FaultRates { fail: 60, delay: 100, lose_reply: 30, delay_max: Duration::from_millis(30) };
        faulty.set_plan(FaultPlan::seeded(seed, odds).only(&[StoreMethod::Append, StoreMethod::Read]));
        let upstream = uneven();
        let payload_cache_bytes = [16 * 1024 * 1024, 20_000, 2_000, 0][seed as usize % 4];
        let options = Options::default().with_payload_cache_bytes(payload_cache_bytes);
        let engine = open_with(&store, &upstream, options, &[]).await;
        tokio::time::sleep(DELAY).await;
        let (mut accepted, mut maybe) = ((0..OPERATIONS).collect::<Vec<_>>(), Vec::new());
        for number in OPERATIONS..OPERATIONS + 100 {
            match engine.submit(queued(number).with_delay(None)).await {
                Ok(_) => accepted.push(number),
                Err(error) if error.unsure => maybe.push(number),
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        faulty.set_plan(FaultPlan::none());
        tokio::time::sleep(Duration::from_secs(600)).await;
        let counts = engine.counts().await.unwrap();
        assert_eq!(
            (counts.queued, counts.running, counts.unknown, counts.failed),
            (0, 0, 0, 0),
            "seed {seed}"
        );
        let mut sent: Vec<usize> =
            upstream.payloads().iter().map(|body| body.trim_start_matches('|').parse().unwrap()).collect();
        sent.sort_unstable();
        sent.dedup();
        sent.retain(|number| !maybe.contains(number));
        assert_eq!(sent, accepted, "seed {seed}");
        engine.drain().await;
    }
}
