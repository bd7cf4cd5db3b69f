//! Calls in flight while the store is unavailable: what is sent is what was accepted, it stays
//! within the limits however late it is sent, it is not resent while a response is awaited, and its
//! response is kept.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Engine, ErrorKind, InFlightCalls, OperationView, Options, Submission};
use tidegate_contract::rng::seeds;
use tidegate_contract::{FaultPlan, FaultRates, FaultyStore, InjectedFault, StoreMethod};
use tidegate_core::{OnUnknown, OperationId, State};
use tidegate_store::Store;
use tokio::time::Instant;

use crate::scripted_upstream::*;

fn faulty(plan: FaultPlan, is_shared: bool) -> (Arc<FaultyStore>, Arc<dyn Store>) {
    let faulty = FaultyStore::new(memory(), plan);
    let faulty = Arc::new(if is_shared { faulty.shared() } else { faulty });
    (Arc::clone(&faulty), faulty)
}

fn repeatable(group: &str, payload: &str) -> Submission {
    operation(group, payload).with_on_unknown(OnUnknown::Repeat)
}

/// Waits until an operation has ended, however often the store is unavailable meanwhile.
async fn ended(engine: &Engine, id: OperationId) -> OperationView {
    loop {
        match engine.wait(id, LONG).await {
            Ok(view) => return view,
            Err(error) => assert_eq!(error.kind, ErrorKind::StoreUnavailable, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// OPS-8: requests that were refused because the store was unavailable are never sent, and those
/// accepted later with the same sequence numbers are sent as they are.
#[tokio::test(start_paused = true)]
async fn ops_8_a_refused_request_is_never_sent() {
    let (down, store) = faulty(FaultPlan::none(), false);
    let upstream = all_done(1);
    // Room for some of them only: what a refused batch left behind would keep the accepted ones
    // out.
    let options = Options::default().with_payload_cache_bytes(8 * 1024);
    let engine = open_with(&store, &upstream, options, &[]).await;
    down.set_down(true);
    let refused = (0..50).map(|n| operation(&format!("r{n}"), &format!("|refused {n}"))).collect();
    for answer in engine.submit_all(refused).await {
        assert_eq!(answer.unwrap_err().kind, ErrorKind::StoreUnavailable);
    }
    down.set_down(false);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let accepted = (0..50).map(|n| operation(&format!("a{n}"), &format!("|accepted {n}"))).collect();
    for answer in engine.submit_all(accepted).await {
        let view = engine.wait(answer.unwrap().id, LONG).await.unwrap();
        assert_eq!(view.state, State::Succeeded);
    }
    let mut sent = upstream.payloads();
    sent.sort_unstable();
    let mut accepted: Vec<_> = (0..50).map(|n| format!("|accepted {n}")).collect();
    accepted.sort_unstable();
    assert_eq!(sent, accepted);
}

/// OPS-8 under random store faults: every body that reaches the upstream was accepted, or may have
/// been, and every accepted one reaches it. Each submission has a body of its own, which identifies
/// a refused request.
#[tokio::test(start_paused = true)]
async fn ops_8_the_bodies_that_are_sent_are_those_that_were_accepted() {
    for seed in seeds(30) {
        let odds = FaultRates { fail: 100, delay: 100, lose_reply: 60, delay_max: Duration::from_millis(30) };
        let (_, store) = faulty(FaultPlan::seeded(seed, odds).only(&[StoreMethod::Append]), seed % 2 == 1);
        let upstream = all_done(3);
        let options = Options::default().with_payload_cache_bytes(2_000 * (seed as usize % 3));
        let engine = open_with(&store, &upstream, options, &[]).await;
        let (mut accepted, mut maybe) = (Vec::new(), Vec::new());
        for n in 0..60 {
            let mut tries = 0;
            loop {
                let body = format!("|{n}, try {tries}");
                match engine.submit(repeatable(&format!("g{}", n % 5), &body)).await {
                    Ok(receipt) => break accepted.push((receipt.id, body)),
                    Err(error) if error.unsure => maybe.push(body),
                    Err(error) => assert_eq!(error.kind, ErrorKind::StoreUnavailable, "seed {seed}: {error}"),
                }
                tries += 1;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        for (id, body) in &accepted {
            let view = ended(&engine, *id).await;
            assert_eq!(view.result.as_deref(), Some(format!("answer to {body}").as_bytes()), "seed {seed}");
        }
        let sent = upstream.payloads();
        for body in &sent {
            let is_known = accepted.iter().any(|(_, known)| known == body) || maybe.contains(body);
            assert!(is_known, "seed {seed}: {body} was refused and sent");
        }
        assert!(accepted.iter().all(|(_, body)| sent.contains(body)), "seed {seed}");
    }
}

/// OPS-23: a call that outlasts both its lease and an outage of the store is not resent while this
/// process waits for it, and its response counts.
#[tokio::test(start_paused = true)]
async fn ops_23_a_long_call_outlasts_an_outage_of_the_store() {
    for is_shared in [false, true] {
        let (down, store) = faulty(FaultPlan::none(), is_shared);
        let upstream = all_done(90_000);
        let engine = open(&store, &upstream).await;
        let mut ids = Vec::new();
        for n in 0..8 {
            ids.push(engine.submit(repeatable(&format!("g{n}"), &format!("|{n}"))).await.unwrap().id);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        down.set_down(true);
        tokio::time::sleep(Duration::from_secs(35)).await;
        down.set_down(false);
        for id in ids {
            let view = engine.wait(id, LONG).await.unwrap();
            assert_eq!((view.state, view.attempt), (State::Succeeded, 1), "shared: {is_shared}");
        }
        assert_eq!(upstream.payloads().len(), 8, "shared: {is_shared}");
    }
}

/// OPS-8: an engine that lost its partition leaves its calls to the next one of the same process:
/// neither a call that is still in flight then nor one that completed in between is repeated.
#[tokio::test(start_paused = true)]
async fn ops_8_the_next_engine_of_a_process_settles_the_calls_of_the_last_one() {
    for gap in [3, 25] {
        let (_, store) = faulty(FaultPlan::none(), true);
        let upstream = all_done(10_000);
        let options = Options::default().with_in_flight(InFlightCalls::default());
        let first = open_with(&store, &upstream, options.clone(), &[]).await;
        let ask = first.submit(operation("ask", "|ask")).await.unwrap().id;
        let repeat = first.submit(repeatable("repeat", "|repeat")).await.unwrap().id;
        tokio::time::sleep(Duration::from_millis(100)).await;
        // Another owner for a moment: the first engine finds out at its next renewal.
        store.acquire_partition(0, &options.node, LONG).await.unwrap();
        first.stopped().await;
        tokio::time::sleep(Duration::from_secs(gap)).await;
        let next = open_with(&store, &upstream, options, &[]).await;
        for id in [ask, repeat] {
            let view = next.wait(id, LONG).await.unwrap();
            assert_eq!((view.state, view.attempt), (State::Succeeded, 1), "after {gap} s");
        }
        assert_eq!(upstream.payloads().len(), 2, "after {gap} s");
    }
}

/// OPS-23: an operation that another owner gave up as unknown and that returns here to be sent
/// again is not resent while this process still waits for its first call: that call's response
/// counts.
#[tokio::test(start_paused = true)]
async fn ops_23_a_repeat_does_not_start_while_the_first_call_is_open() {
    let (_, store) = faulty(FaultPlan::none(), true);
    let (here, elsewhere) = (all_done(100_000), all_done(1));
    let options = Options::default().with_in_flight(InFlightCalls::default());
    let first = open_with(&store, &here, options.clone(), &[]).await;
    let id = first.submit(repeatable("g", "|once")).await.unwrap().id;
    tokio::time::sleep(Duration::from_millis(100)).await;
    // Another process has the partition until the claim has expired, and takes nothing itself.
    let other = Options::default().with_workers(1);
    let other = open_with(&store, &elsewhere, other, &[]).await;
    first.stopped().await;
    other.pause("g", "test", "").await.unwrap();
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(other.get(id).await.unwrap().state, State::Waiting, "it waits to be repeated");
    other.drain().await;
    let next = open_with(&store, &here, options, &[]).await;
    next.resume("g").await.unwrap();
    let view = next.wait(id, LONG).await.unwrap();
    assert_eq!((view.state, view.attempt), (State::Succeeded, 2));
    assert_eq!((here.payloads().len(), elsewhere.payloads().len()), (1, 0));
}

/// OPS-23: the fence of a claim whose append failed is reused by the next owner. A claim that was
/// never sent here says nothing about the claim of that owner, whose call may be in flight.
#[tokio::test(start_paused = true)]
async fn ops_23_the_claim_of_another_owner_is_not_one_that_never_left() {
    let store = memory();
    let reach = || Arc::new(FaultyStore::new(Arc::clone(&store), FaultPlan::none()).shared());
    let (near, far) = (reach(), reach());
    let (here, elsewhere) = (all_done(1), all_done(100_000));
    let first = open(&(Arc::clone(&near) as Arc<dyn Store>), &here).await;
    let delayed = operation("g", "|once").with_delay(Duration::from_secs(1));
    let id = first.submit(delayed).await.unwrap().id;
    near.set_down(true);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let other = open(&(far as Arc<dyn Store>), &elsewhere).await;
    // Its clock starts at the machine's time, not at the time that the first one has reached.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(elsewhere.payloads().len(), 1, "the other owner has sent it");
    near.set_down(false);
    other.stopped().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(first.get(id).await.unwrap().state, State::Unknown);
    assert_eq!(here.payloads().len(), 0, "it was sent again while its call was under way");
}

/// LIM-14: however long the store holds claims up, calls reach the upstream within the limit.
#[tokio::test(start_paused = true)]
async fn lim_14_calls_that_leave_late_keep_within_the_limit() {
    const CAPACITY: f64 = 20.0;
    const PER_S: f64 = 50.0;
    for seed in seeds(10) {
        let odds = FaultRates { fail: 0, delay: 300, lose_reply: 0, delay_max: Duration::from_millis(1_500) };
        let (faults, store) = faulty(FaultPlan::none(), seed % 2 == 1);
        let upstream = all_done(40);
        let payload_cache_bytes = if seed % 3 == 0 { 0 } else { Options::default().payload_cache_bytes };
        let options = Options::default().with_workers(128).with_payload_cache_bytes(payload_cache_bytes);
        let engine = open_with(&store, &upstream, options, &[("api", drip(20, 50))]).await;
        let mut ids = Vec::new();
        for n in 0..400 {
            ids.push(operation(&format!("g{n}"), &format!("api|{n}")));
        }
        let ids: Vec<_> = engine.submit_all(ids).await.into_iter().map(|one| one.unwrap().id).collect();
        faults.set_plan(FaultPlan::seeded(seed, odds).only(&[StoreMethod::Append, StoreMethod::Read]));
        for id in ids {
            assert_eq!(ended(&engine, id).await.state, State::Succeeded, "seed {seed}");
        }
        assert!(faults.fault_counts().delayed > 10, "seed {seed}");
        let (mut level, mut last) = (CAPACITY, None::<Instant>);
        for arrival in upstream.arrivals.lock().unwrap().iter() {
            let since = last.map_or(0.0, |last| (arrival.at - last).as_secs_f64());
            level = (level + since * PER_S).min(CAPACITY) - 1.0;
            assert!(level > -1e-6, "seed {seed}: {} came too early", arrival.payload);
            last = Some(arrival.at);
        }
    }
}

/// LIM-14: a claim that became durable is not sent once another node may own the partition: the
/// reply came later than the last renewed lease.
#[tokio::test(start_paused = true)]
async fn lim_14_nothing_leaves_when_the_lease_may_have_run_out() {
    let (faults, store) = faulty(FaultPlan::none(), true);
    let upstream = all_done(1);
    let engine = open(&store, &upstream).await;
    let first = engine.submit(operation("g", "|1")).await.unwrap().id;
    engine.wait(first, LONG).await.unwrap();
    let late = InjectedFault::Delay(Duration::from_secs(9));
    let unrenewed = (0..5).fold(FaultPlan::none().at(StoreMethod::Append, 1, late), |plan, nth| {
        plan.at(StoreMethod::Renew, nth + 1, InjectedFault::Fail)
    });
    faults.set_plan(unrenewed);
    let started = Instant::now();
    let second = engine.submit(operation("g", "|2")).await.unwrap().id;
    assert!(started.elapsed() >= Duration::from_secs(9));
    assert_eq!(upstream.payloads().len(), 1, "no renewal has been answered for longer than the lease");
    assert_eq!(engine.wait(second, LONG).await.unwrap().state, State::Succeeded);
    assert_eq!(upstream.payloads().len(), 2);
}

/// OPS-8: nothing uses the store after a drain, so that its folder can be opened again at once.
#[tokio::test(start_paused = true)]
async fn ops_8_a_drained_engine_lets_go_of_its_store() {
    let slow =
        FaultPlan::none().at(StoreMethod::Snapshot, 1, InjectedFault::Delay(Duration::from_millis(900)));
    let ((counted, store), upstream) = (faulty(slow, false), all_done(0));
    let engine = open_with(&store, &upstream, Options::default().with_snapshot_after_facts(1), &[]).await;
    for n in 0.. {
        assert!(n < 1_000, "no snapshot");
        let id = engine.submit(operation("g", "|1")).await.unwrap().id;
        engine.wait(id, LONG).await.unwrap();
        if counted.calls_of(StoreMethod::Snapshot) == 1 {
            break;
        }
    }
    engine.drain().await;
    drop((engine, counted));
    assert_eq!(Arc::strong_count(&store), 1);
}
