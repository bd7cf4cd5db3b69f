//! Fault scenarios: the store fails, replies are lost, executors panic, owners are fenced off,
//! processes stop.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{ErrorCode, Options};
use tidegate_contract::{FaultPlan, FaultRates, FaultyStore, InjectedFault, StoreMethod};
use tidegate_core::{Fact, OnUnknown, State, Verdict};
use tidegate_store::{Log, Store};

use crate::scripted_upstream::*;

fn faulty(plan: FaultPlan) -> (Arc<FaultyStore>, Arc<dyn Store>) {
    let faulty = Arc::new(FaultyStore::new(memory(), plan));
    (Arc::clone(&faulty), faulty)
}

/// A call is sent only after its claim is durable: when the upstream is called, the log already has
/// it.
#[tokio::test(start_paused = true)]
async fn a_call_leaves_after_its_claim_is_durable() {
    let store = memory();
    let (log, unclaimed) = (Arc::clone(&store), Arc::new(std::sync::Mutex::new(0)));
    let count = Arc::clone(&unclaimed);
    let upstream = ScriptedUpstream::new(move |payload, _| {
        let seq: u64 = payload.trim_start_matches('|').parse().unwrap();
        let mut claimed = false;
        let mut look = |facts: Vec<Fact>| {
            claimed |= facts.iter().any(|fact| matches!(fact, Fact::Claimed { seq: s, .. } if s.0 == seq));
        };
        futures_util::FutureExt::now_or_never(log.load(0, &mut look)).unwrap().unwrap();
        *count.lock().unwrap() += u32::from(!claimed);
        (Duration::ZERO, Verdict::Done)
    });
    let engine = open(&store, &upstream).await;
    for n in 1..=20 {
        let id = engine.submit(operation("g", &format!("|{n}"))).await.unwrap().id;
        engine.wait(id, LONG).await.unwrap();
    }
    assert_eq!((upstream.payloads().len(), *unclaimed.lock().unwrap()), (20, 0));
}

/// With a store that cannot be written, callers get an error, nothing accepted is lost, and the
/// engine recovers by itself.
#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_is_told_and_outlived() {
    let (down, store) = faulty(FaultPlan::none());
    let upstream = all_done(5_000);
    let engine = open(&store, &upstream).await;
    let before = engine.submit(operation("g", "|before")).await.unwrap().id;
    tokio::time::sleep(Duration::from_millis(100)).await;
    down.set_down(true);
    for _ in 0..3 {
        let refused = engine.submit(operation("g", "|during")).await.unwrap_err();
        assert_eq!(refused.code, ErrorCode::StoreUnavailable);
    }
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(engine.counts().await.unwrap().succeeded, 0, "what is known can be looked at meanwhile");
    down.set_down(false);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(engine.get(before).await.unwrap().state, State::Succeeded, "its answer was not forgotten");
    let after = engine.submit(operation("g", "|after")).await.unwrap().id;
    assert_eq!(engine.wait(after, LONG).await.unwrap().state, State::Succeeded);
    assert_eq!(upstream.payloads(), ["|before", "|after"]);
}

/// After a reply that is lost after the commit, the caller is told to repeat with its key, and the
/// operation runs once.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_found_again_by_its_key() {
    let (_, store) = faulty(FaultPlan::none().at(StoreMethod::Append, 2, InjectedFault::LoseReply));
    let upstream = all_done(1);
    let engine = open(&store, &upstream).await;
    let keyed = || operation("g", "|once").with_dedupe_key("k");
    let mut unsure = 0;
    let id = loop {
        match engine.submit(keyed()).await {
            Ok(receipt) => break receipt.id,
            Err(error) => {
                assert_eq!(error.code, ErrorCode::StoreUnavailable);
                assert!(unsure > 0 || error.unsure, "the first one may have been accepted: {error}");
                unsure += 1;
                assert!(unsure < 100);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    };
    engine.wait(id, LONG).await.unwrap();
    let again = engine.submit(keyed()).await.unwrap();
    assert_eq!((again.id, again.deduplicated), (id, true));
    assert_eq!(upstream.payloads(), ["|once"]);
}

/// OPS-8 under random store faults: nothing accepted is lost, order is kept, one key stays one
/// operation.
#[tokio::test(start_paused = true)]
async fn ops_8_random_store_faults_lose_nothing() {
    for seed in tidegate_contract::rng::seeds(20) {
        let odds = FaultRates { fail: 60, delay: 100, lose_reply: 60, delay_max: Duration::from_millis(30) };
        let (_, store) = faulty(FaultPlan::seeded(seed, odds).only(&[StoreMethod::Append]));
        let upstream = all_done(3);
        let engine = open(&store, &upstream).await;
        let mut accepted = Vec::new();
        for n in 0..60 {
            let group = format!("g{}", n % 5);
            let key = format!("k{n}");
            loop {
                let one = operation(&group, &format!("|{group}:{n:03}"))
                    .with_dedupe_key(key.as_str())
                    .with_on_unknown(OnUnknown::Repeat);
                match engine.submit(one).await {
                    Ok(receipt) => break accepted.push(receipt.id),
                    Err(error) => assert_eq!(error.code, ErrorCode::StoreUnavailable, "seed {seed}: {error}"),
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        for id in &accepted {
            let mut view = engine.wait(*id, LONG).await;
            while view.as_ref().is_err_and(|error| error.code == ErrorCode::StoreUnavailable) {
                tokio::time::sleep(Duration::from_millis(50)).await;
                view = engine.wait(*id, LONG).await;
            }
            assert_eq!(view.unwrap().state, State::Succeeded, "seed {seed}");
        }
        for group in 0..5 {
            let prefix = format!("|g{group}:");
            let order: Vec<_> = upstream.payloads().into_iter().filter(|p| p.starts_with(&prefix)).collect();
            assert!(order.is_sorted(), "seed {seed}: {order:?}");
        }
    }
}

/// OPS-8: a newer owner on the same log fences the older one off; pending operations continue
/// there.
#[tokio::test(start_paused = true)]
async fn ops_8_a_newer_owner_takes_over() {
    let (store, slow, quick) = (memory(), all_done(10_000), all_done(1));
    let old = open(&store, &slow).await;
    let ids = [
        old.submit(operation("g", "|1").with_on_unknown(OnUnknown::Repeat)).await.unwrap().id,
        old.submit(operation("g", "|2")).await.unwrap().id,
    ];
    tokio::time::sleep(Duration::from_millis(100)).await;
    let new = open(&store, &quick).await;
    for id in ids {
        assert_eq!(new.wait(id, LONG).await.unwrap().state, State::Succeeded);
    }
    let refused = old.submit(operation("g", "|3")).await.unwrap_err();
    assert_eq!(refused.code, ErrorCode::Stopping);
    old.stopped().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(quick.payloads(), ["|1", "|2"]);
    assert_eq!(new.get(ids[0]).await.unwrap().attempt, 2, "the old owner's late answer changed nothing");
}

/// OPS-8: where others share the store, a fenced-off owner may be alive with its call in flight.
/// That call's operation restarts when its claim has expired, not before; the others need not wait.
#[tokio::test(start_paused = true)]
async fn ops_8_on_a_shared_store_a_claim_runs_out_before_its_call_is_made_again() {
    let (slow, quick) = (all_done(3_600_000), all_done(1));
    let store: Arc<dyn Store> = Arc::new(FaultyStore::new(memory(), FaultPlan::none()).shared());
    let old = open(&store, &slow).await;
    let left = operation("left", "|left").with_on_unknown(OnUnknown::Repeat);
    let left = old.submit(left).await.unwrap().id;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let new = open(&store, &quick).await;
    let other = new.submit(operation("other", "|other")).await.unwrap().id;
    assert_eq!(new.wait(other, Duration::from_secs(1)).await.unwrap().state, State::Succeeded);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(quick.payloads(), ["|other"], "its claim still holds");
    assert_eq!(new.wait(left, LONG).await.unwrap().state, State::Succeeded);
    assert_eq!(quick.payloads(), ["|other", "|left"]);
    drop(old);
}

/// An owner stays the owner for as long as it lives, and releases the partition when it is drained.
#[tokio::test(start_paused = true)]
async fn a_partition_is_owned_until_the_drain() {
    let store = memory();
    let engine = open(&store, &all_done(1)).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let held = store.acquire_partition(0, "another", LONG).await.unwrap_err();
        assert_eq!(held.kind(), tidegate_store::StoreErrorKind::Held);
    }
    engine.drain().await;
    store.acquire_partition(0, "another", LONG).await.unwrap();
}

/// After an append of unknown outcome the owner continues with a new epoch, so that an earlier
/// append that is still in flight cannot succeed.
#[tokio::test(start_paused = true)]
async fn a_lost_reply_begins_a_new_epoch() {
    let (_, store) = faulty(FaultPlan::none().at(StoreMethod::Append, 2, InjectedFault::LoseReply));
    let first = store.acquire_partition(0, &Options::default().node, LONG).await.unwrap();
    let engine = open(&store, &all_done(1)).await;
    for n in 0..5 {
        // One of them is the one whose reply is lost.
        let _ = engine.submit(operation("g", &format!("|{n}"))).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    engine.drain().await;
    let last = store.acquire_partition(0, "another", LONG).await.unwrap();
    assert_eq!(last.epoch.0 - first.epoch.0, 3, "opened, began again, and now this one");
}

/// OPS-23: a claim whose append lost its reply is valid, but its call was not sent: it is sent, and
/// no operator has to resolve it.
#[tokio::test(start_paused = true)]
async fn ops_23_a_call_that_never_left_is_not_unknown() {
    for shared in [false, true] {
        for lost in 2..5 {
            let plan = FaultPlan::none().at(StoreMethod::Append, lost, InjectedFault::LoseReply);
            let faulty = FaultyStore::new(memory(), plan);
            let faulty = Arc::new(if shared { faulty.shared() } else { faulty });
            let store: Arc<dyn Store> = Arc::clone(&faulty) as _;
            let upstream = all_done(1);
            let engine = open(&store, &upstream).await;
            let ask =
                |key: &'static str| operation("g", key).with_dedupe_key(key).with_on_unknown(OnUnknown::Ask);
            for key in ["|1", "|2", "|3"] {
                while engine.submit(ask(key)).await.is_err() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            tokio::time::sleep(Duration::from_secs(5)).await;
            assert_eq!(engine.counts().await.unwrap().succeeded, 3, "append {lost} lost its reply");
            assert_eq!(upstream.payloads(), ["|1", "|2", "|3"]);
            assert_eq!(faulty.fault_counts().lost, 1);
        }
    }
}

/// OPS-23: an executor that panics leaves an unknown outcome, and the engine continues.
#[tokio::test(start_paused = true)]
async fn ops_23_a_panic_is_an_unknown_outcome() {
    let upstream = ScriptedUpstream::new(|payload, _| match payload {
        "|bad" => panic!("a bug in the executor"),
        _ => (Duration::ZERO, Verdict::Done),
    });
    let store = memory();
    let engine = open(&store, &upstream).await;
    let bad = engine.submit(operation("g", "|bad")).await.unwrap().id;
    assert_eq!(engine.wait(bad, Duration::from_secs(5)).await.unwrap().state, State::Unknown);
    let good = engine.submit(operation("h", "|good")).await.unwrap().id;
    assert_eq!(engine.wait(good, LONG).await.unwrap().state, State::Succeeded);
}

/// A drain finishes what is in flight, takes nothing more, and leaves the rest for the next owner.
#[tokio::test(start_paused = true)]
async fn a_drain_finishes_what_runs_and_keeps_the_rest() {
    let (store, upstream) = (memory(), all_done(1_000));
    let engine = open(&store, &upstream).await;
    let first = engine.submit(operation("g", "|1")).await.unwrap().id;
    let second = engine.submit(operation("g", "|2")).await.unwrap().id;
    tokio::time::sleep(Duration::from_millis(100)).await;
    engine.drain().await;
    assert_eq!(upstream.payloads(), ["|1"]);
    assert_eq!(engine.submit(operation("g", "|3")).await.unwrap_err().code, ErrorCode::Stopping);
    let next = open(&store, &upstream).await;
    assert_eq!(next.get(first).await.unwrap().state, State::Succeeded);
    assert_eq!(next.wait(second, LONG).await.unwrap().state, State::Succeeded);
    assert_eq!(upstream.payloads(), ["|1", "|2"]);
}

/// A partition that is handed over accepts until its last call has ended; the next owner has
/// everything.
#[tokio::test(start_paused = true)]
async fn a_hand_over_accepts_until_the_last_call_has_ended() {
    let (store, upstream) = (memory(), all_done(1_000));
    let engine = open(&store, &upstream).await;
    let mut ids = vec![engine.submit(operation("g", "|1")).await.unwrap().id];
    tokio::time::sleep(Duration::from_millis(100)).await;
    let leaving = engine.clone();
    let gone = tokio::spawn(async move { leaving.hand_over().await });
    tokio::time::sleep(Duration::from_millis(100)).await;
    for n in 2..5 {
        ids.push(engine.submit(operation("g", &format!("|{n}"))).await.unwrap().id);
    }
    assert_eq!(upstream.payloads(), ["|1"], "it takes nothing more");
    gone.await.unwrap();
    assert_eq!(engine.submit(operation("g", "|5")).await.unwrap_err().code, ErrorCode::Stopping);
    let next = open(&store, &upstream).await;
    for id in ids {
        assert_eq!(next.wait(id, LONG).await.unwrap().state, State::Succeeded);
    }
    assert_eq!(upstream.payloads(), ["|1", "|2", "|3", "|4"]);
}

/// A call that outlasts the drain is abandoned as unknown, not reported as done and not lost.
#[tokio::test(start_paused = true)]
async fn a_call_that_outlasts_the_drain_is_unknown() {
    let (store, upstream) = (memory(), all_done(3_600_000));
    let options = Options::default().with_drain(Duration::from_secs(5));
    let engine = open_with(&store, &upstream, options, &[]).await;
    let id = engine.submit(operation("g", "|1")).await.unwrap().id;
    tokio::time::sleep(Duration::from_millis(100)).await;
    engine.drain().await;
    let next = open(&store, &all_done(1)).await;
    assert_eq!(next.get(id).await.unwrap().state, State::Unknown);
}

/// LIM-24: a new owner starts its buckets from the grants in the log: no burst above the limit.
#[tokio::test(start_paused = true)]
async fn lim_24_no_burst_after_a_restart() {
    let (store, upstream) = (memory(), all_done(1));
    let limits = [("api", drip(10, 1))];
    let engine = open_with(&store, &upstream, Options::default(), &limits).await;
    for n in 0..30 {
        engine.submit(operation(&format!("g{n}"), "api|x")).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(upstream.payloads().len(), 10);
    engine.drain().await;
    let next = open_with(&store, &upstream, Options::default(), &limits).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(upstream.payloads().len(), 10, "nothing more is allowed yet");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(upstream.payloads().len(), 30);
    drop(next);
}

/// Snapshots replace the log as it grows, and a new owner restores the same state from them.
#[tokio::test(start_paused = true)]
async fn snapshots_bound_the_replay() {
    let (store, upstream) = (memory(), all_done(1));
    let options = Options::default().with_snapshot_after_facts(50);
    let engine = open_with(&store, &upstream, options, &[]).await;
    engine.pause("held", "anna", "").await.unwrap();
    for n in 0..300 {
        let group = if n % 10 == 0 { "held" } else { "free" };
        engine.submit(operation(group, &format!("|{n}"))).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(10)).await;
    engine.drain().await;
    let mut facts = 0;
    let mut count = |part: Vec<Fact>| facts += part.len();
    Log::load(&*store, 0, &mut count).await.unwrap();
    assert!(facts < 300, "{facts} facts instead of 900 and more");
    let next = open(&store, &upstream).await;
    let counts = next.counts().await.unwrap();
    assert_eq!((counts.succeeded, counts.queued + counts.waiting), (270, 30));
}
