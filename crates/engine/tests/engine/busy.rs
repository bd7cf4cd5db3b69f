//! Many callers of limited upstreams: what one waits for, others do not, and what was refused
//! together does not come back together.

use std::sync::Arc;
use std::time::Duration;

use tidegate::Options;
use tidegate_contract::{FaultPlan, FaultyStore, StoreMethod};
use tidegate_core::fact::LimitShape;
use tidegate_core::{Fault, FaultClass, State, Verdict};
use tidegate_store::Store;
use tokio::time::Instant;

use crate::scripted_upstream::*;

fn throttled(after: Option<Duration>) -> Verdict {
    Verdict::Throttled { after, scope: None, fault: Fault::new(FaultClass::RateLimited, "429") }
}

/// When the calls of a quiet shop arrived, counted from their submission; with a busy shop beside
/// it or without. The busy one has two thousand calls waiting, and is told to slow down with every
/// third.
async fn arrivals_of_the_quiet_shop(is_other_busy: bool) -> Vec<Duration> {
    let upstream = ScriptedUpstream::new(|payload, _| {
        let third =
            payload.strip_prefix("busy|").is_some_and(|n| n.parse::<u32>().unwrap().is_multiple_of(3));
        let verdict = if third { throttled(Some(Duration::from_secs(1))) } else { Verdict::Done };
        (Duration::from_millis(40), verdict)
    });
    let (store, options) = (memory(), Options::default().with_workers(8));
    let limits = [("busy", drip(4, 2)), ("quiet", drip(5, 50))];
    let engine = open_with(&store, &upstream, options, &limits).await;
    let count = if is_other_busy { 2_000 } else { 0 };
    let busy = (0..count).map(|n| operation(&format!("busy-{}", n % 100), &format!("busy|{n}")));
    for receipt in engine.submit_all(busy.collect()).await {
        receipt.unwrap();
    }
    // The busy one has spent its budget, and its next calls wait.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let start = Instant::now();
    let quiet = (0..200).map(|n| operation(&format!("quiet-{}", n % 4), &format!("quiet|{n}")));
    for receipt in engine.submit_all(quiet.collect()).await {
        let view = engine.wait(receipt.unwrap().id, LONG).await.unwrap();
        assert_eq!(view.state, State::Succeeded);
    }
    let arrivals = upstream.arrivals.lock().unwrap().clone();
    let (quiet, busy): (Vec<_>, Vec<_>) =
        arrivals.into_iter().partition(|arrival| arrival.payload.starts_with("quiet"));
    assert_eq!(busy.len() > 10, is_other_busy, "{} calls of the busy shop", busy.len());
    quiet.into_iter().map(|arrival| arrival.at - start).collect()
}

/// LIM-13: each call of a shop leaves when it would leave if the busy shop beside it were not
/// there.
#[tokio::test(start_paused = true)]
async fn lim_13_a_busy_shop_slows_no_other() {
    let alone = arrivals_of_the_quiet_shop(false).await;
    let beside = arrivals_of_the_quiet_shop(true).await;
    assert_eq!(alone.len(), 200);
    assert!(alone[199] > Duration::from_secs(3), "its own limit is what it waits for: {:?}", alone[199]);
    for (n, (alone, beside)) in alone.iter().zip(&beside).enumerate() {
        assert!(alone.abs_diff(*beside) <= Duration::from_millis(2), "call {n}: {alone:?}, {beside:?}");
    }
}

/// LIM-12: a thousand upstreams that refuse without saying for how long are each asked again at a
/// time of their own, spread evenly over the first second.
#[tokio::test(start_paused = true)]
async fn lim_12_what_was_refused_together_comes_back_spread() {
    const COUNT: usize = 1_000;
    let upstream = ScriptedUpstream::new(|_, _| (Duration::ZERO, throttled(None)));
    let names: Vec<String> = (0..COUNT).map(|n| format!("gate-{n}")).collect();
    let limits: Vec<_> = names.iter().map(|name| (name.as_str(), LimitShape::Gate)).collect();
    let engine = open_with(&memory(), &upstream, Options::default(), &limits).await;
    let calls = names.iter().map(|name| operation(name, &format!("{name}|x")));
    for receipt in engine.submit_all(calls.collect()).await {
        receipt.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(1_010)).await;
    let mut arrivals = upstream.arrivals.lock().unwrap().clone();
    arrivals.sort_by(|a, b| (&a.payload, a.at).cmp(&(&b.payload, b.at)));
    let mut tenths = [0_usize; 10];
    for calls in arrivals.chunk_by(|a, b| a.payload == b.payload) {
        assert!(calls.len() >= 2, "{calls:?}");
        assert!(calls.iter().all(|call| call.attempt == 1), "{calls:?}");
        let wait = calls[1].at - calls[0].at;
        tenths[(wait.as_micros() as usize).saturating_sub(5_000) / 100_000] += 1;
    }
    // A hundred in each, five times the standard deviation more or less. What would be less than a
    // tenth of a second is a tenth.
    assert_eq!(tenths.iter().sum::<usize>(), COUNT);
    assert!(tenths.iter().all(|count| (50..=150).contains(count)), "{tenths:?}");
}

/// Callers that come back together are served in two halves, so that one half is applied while the
/// other is written; none gets an append of its own.
#[tokio::test(start_paused = true)]
async fn callers_that_come_together_are_served_in_halves() {
    const CALLERS: u64 = 64;
    const ROUNDS: u64 = 20;
    let faulty = Arc::new(FaultyStore::new(memory(), FaultPlan::none()));
    let store: Arc<dyn Store> = Arc::clone(&faulty) as _;
    let engine = open(&store, &all_done(0)).await;
    let before = faulty.calls_of(StoreMethod::Append);
    let mut callers = tokio::task::JoinSet::new();
    for n in 0..CALLERS {
        let engine = engine.clone();
        callers.spawn(async move {
            for _ in 0..ROUNDS {
                let later = operation(&format!("g-{n}"), "|x").with_delay(Duration::from_secs(60));
                engine.submit(later).await.unwrap();
            }
        });
    }
    callers.join_all().await;
    let appends = faulty.calls_of(StoreMethod::Append) - before;
    let each = CALLERS * ROUNDS / appends;
    assert!((28..=36).contains(&each), "{appends} appends, each of {each} operations");
}
