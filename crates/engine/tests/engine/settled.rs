//! Accepted once, in order, within the limits, settled once.

use std::time::Duration;

use tidegate::{ErrorKind, Options, RequestKey};
use tidegate_core::{Fault, FaultClass, OnUnknown, State, Verdict};
use tokio::time::Instant;

use crate::scripted_upstream::*;

/// OPS-6: the result of a submission can be awaited.
#[tokio::test(start_paused = true)]
async fn ops_6_a_result_can_be_awaited() {
    let (store, upstream) = (memory(), all_done(50));
    let engine = open(&store, &upstream).await;
    let receipt = engine.submit(operation("g", "hello")).await.unwrap();
    assert_eq!((receipt.state, receipt.deduplicated), (State::Queued, false));
    let view = engine.wait(receipt.id, LONG).await.unwrap();
    assert_eq!((view.state, view.attempt), (State::Succeeded, 1));
    assert_eq!(view.result.as_deref(), Some(b"answer to hello".as_slice()));
    assert!(view.finished_at.unwrap() >= view.created_at);
}

/// OPS-2: the set of kinds is open, and a kind without an executor is refused by name.
#[tokio::test(start_paused = true)]
async fn ops_2_kinds_are_registered() {
    let (store, upstream) = (memory(), all_done(1));
    let engine = open(&store, &upstream).await;
    let unknown = tidegate::Submission::new("nobody", "g", "x");
    let error = engine.submit(unknown).await.unwrap_err();
    assert_eq!((error.kind, error.field.as_deref()), (ErrorKind::UnknownKind, Some("kind")));
    assert!(error.message.contains("test"), "it says who there is: {}", error.message);
}

/// OPS-4 and OPS-5: in order inside each group, groups in parallel, never more than the workers.
#[tokio::test(start_paused = true)]
async fn ops_4_order_inside_and_ops_5_side_by_side() {
    let (store, upstream) = (memory(), all_done(100));
    let engine = open_with(&store, &upstream, Options::default().with_workers(3), &[]).await;
    let mut last = Vec::new();
    for n in 0..10 {
        for group in ["a", "b", "c", "d"] {
            last.push(engine.submit(operation(group, &format!("|{group}{n}"))).await.unwrap().id);
        }
    }
    for id in last {
        assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
    }
    assert_eq!(upstream.most_under_way(), 3);
    for group in ["a", "b", "c", "d"] {
        let order: Vec<_> =
            upstream.payloads().into_iter().filter(|p| p.starts_with(&format!("|{group}"))).collect();
        assert_eq!(order, (0..10).map(|n| format!("|{group}{n}")).collect::<Vec<_>>());
    }
    let first_eight: Vec<_> = upstream.payloads().into_iter().take(8).collect();
    assert!(first_eight.contains(&"|d0".to_owned()), "groups take turns: {first_eight:?}");
}

/// OPS-7: one key is one operation, while it runs and after it ended; a different request under it
/// is a conflict.
#[tokio::test(start_paused = true)]
async fn ops_7_one_key_one_operation() {
    let (store, upstream) = (memory(), all_done(100));
    let engine = open(&store, &upstream).await;
    let keyed = |text: &str| operation("g", text).with_dedupe_key("k");
    let first = engine.submit(keyed("x")).await.unwrap();
    let second = engine.submit(keyed("x")).await.unwrap();
    assert_eq!((second.id, second.deduplicated), (first.id, true));
    let conflict = engine.submit(keyed("y")).await.unwrap_err();
    assert_eq!((conflict.kind, conflict.operation), (ErrorKind::KeyConflict, Some(first.id)));
    engine.wait(first.id, LONG).await.unwrap();
    let third = engine.submit(keyed("x")).await.unwrap();
    assert_eq!((third.id, third.state, third.deduplicated), (first.id, State::Succeeded, true));
    assert_eq!(upstream.payloads(), ["x"]);
}

/// LIM-20 / LIM-12: after a 429 that names two seconds it is retried after 2,000 ms, plus jitter,
/// with the attempt count unchanged.
#[tokio::test(start_paused = true)]
async fn lim_20_a_429_is_obeyed() {
    let throttled_once = std::sync::atomic::AtomicBool::new(false);
    let upstream = ScriptedUpstream::new(move |_, _| {
        let fault = Fault::new(FaultClass::RateLimited, "429");
        let verdict = if throttled_once.swap(true, std::sync::atomic::Ordering::Relaxed) {
            Verdict::Done
        } else {
            Verdict::Throttled { after: Some(Duration::from_secs(2)), scope: None, fault }
        };
        (Duration::ZERO, verdict)
    });
    let store = memory();
    let engine = open_with(&store, &upstream, Options::default(), &[("api", drip(10, 10))]).await;
    let told = engine.submit(operation("a", "api|1")).await.unwrap();
    let view = engine.wait(told.id, LONG).await.unwrap();
    assert_eq!((view.state, view.attempt), (State::Succeeded, 1));
    let arrivals = upstream.arrivals.lock().unwrap().clone();
    let waited = arrivals[1].at - arrivals[0].at;
    assert!(waited >= Duration::from_secs(2) && waited < Duration::from_millis(2_300), "{waited:?}");
    assert_eq!(arrivals[1].attempt, 1);
}

/// LIM-11 / LIM-6: calls are sent as the limit allows, not earlier, and no worker is held while
/// they wait.
#[tokio::test(start_paused = true)]
async fn lim_11_calls_leave_as_the_limit_allows() {
    let (store, upstream) = (memory(), all_done(1));
    let options = Options::default().with_workers(2);
    let engine = open_with(&store, &upstream, options, &[("api", drip(5, 10))]).await;
    let start = Instant::now();
    let mut ids = Vec::new();
    for n in 0..25 {
        ids.push(engine.submit(operation(&format!("g{n}"), "api|x")).await.unwrap().id);
    }
    let free = engine.submit(operation("free", "|y")).await.unwrap();
    engine.wait(free.id, LONG).await.unwrap();
    assert!(start.elapsed() < Duration::from_millis(100), "what needs no limit is not held up");
    for id in ids {
        engine.wait(id, LONG).await.unwrap();
    }
    let arrivals = upstream.arrivals.lock().unwrap().clone();
    let api: Vec<_> =
        arrivals.iter().filter(|a| a.payload.starts_with("api")).map(|a| a.at - start).collect();
    for (n, at) in api.iter().enumerate() {
        let allowed = 5.0 + at.as_secs_f64() * 10.0;
        assert!((n + 1) as f64 <= allowed + 1e-6, "call {n} left at {at:?}");
    }
    assert!(api[24] < Duration::from_millis(2_100), "and nothing of the rate was wasted: {:?}", api[24]);
}

/// OPS-11 / OPS-12: a transient failure is retried, later each time, until its attempts are spent.
#[tokio::test(start_paused = true)]
async fn ops_12_a_budget_ends_it_with_the_last_cause() {
    let upstream = ScriptedUpstream::new(|_, attempt| {
        (Duration::ZERO, Verdict::Retry { after: None, fault: fault(&format!("502 number {attempt}")) })
    });
    let store = memory();
    let engine = open(&store, &upstream).await;
    let few = operation("g", "x").with_max_attempts(4);
    let id = engine.submit(few).await.unwrap().id;
    let view = engine.wait(id, LONG).await.unwrap();
    assert_eq!((view.state, view.attempt), (State::Failed, 4));
    assert_eq!(view.fault.unwrap().message, "502 number 4");
    let at: Vec<_> = upstream.arrivals.lock().unwrap().iter().map(|a| a.at).collect();
    for (n, (low, high)) in [(350, 650), (700, 1_300), (1_400, 2_600)].into_iter().enumerate() {
        let waited = (at[n + 1] - at[n]).as_millis();
        assert!((low..=high + 5).contains(&waited), "wait {n} was {waited} ms");
    }
}

/// OPS-23: unknown outcomes are repeated, or checked first, as the operation says.
#[tokio::test(start_paused = true)]
async fn ops_23_unknown_outcomes_follow_their_rule() {
    let upstream = ScriptedUpstream::new(|_, attempt| {
        let verdict = if attempt == 1 { Verdict::Unknown(fault("reset")) } else { Verdict::Done };
        (Duration::ZERO, verdict)
    });
    let store = memory();
    let engine = open(&store, &upstream).await;
    for (rule, look) in [(OnUnknown::Repeat, false), (OnUnknown::Reconcile, true)] {
        let submission = operation("g", "x").with_on_unknown(rule);
        let id = engine.submit(submission).await.unwrap().id;
        assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
        assert_eq!(upstream.arrivals.lock().unwrap().last().unwrap().reconcile_first, look);
    }
}

/// LIM-27: a deadline that cannot be met is refused with the time at which it could run.
#[tokio::test(start_paused = true)]
async fn lim_27_too_late_is_told_at_once() {
    let (store, upstream) = (memory(), all_done(1));
    let engine = open_with(&store, &upstream, Options::default(), &[("api", drip(1, 1))]).await;
    engine.submit(operation("g", "api|1")).await.unwrap();
    engine.submit(operation("g", "api|2")).await.unwrap();
    let late = operation("g", "api|3").with_deadline(Duration::from_millis(500));
    let error = engine.submit(late).await.unwrap_err();
    assert_eq!((error.kind, error.field.as_deref()), (ErrorKind::TooLate, Some("deadline_ms")));
    assert!(error.earliest.is_some());
    let costly = operation("h", "nothing|4");
    assert_eq!(engine.submit(costly).await.unwrap_err().kind, ErrorKind::UnknownLimit);
    let far = Some(Duration::from_secs(400 * 24 * 3_600));
    let over = [
        ("deadline_ms", operation("h", "").with_deadline(far)),
        ("delay_ms", operation("h", "").with_delay(far)),
    ];
    for (field, submission) in over {
        let error = engine.submit(submission).await.unwrap_err();
        assert_eq!((error.kind, error.field.as_deref()), (ErrorKind::Invalid, Some(field)));
    }
}

/// OPS-7: a request that is spelled differently and means the same is the same request, also in a
/// batch; a different one is a conflict.
#[tokio::test(start_paused = true)]
async fn ops_7_a_request_is_compared_by_its_value() {
    let (store, upstream) = (memory(), all_done(10));
    let engine = open(&store, &upstream).await;
    let keyed = |group: &str, payload: &str| operation(group, payload).with_dedupe_key("k");
    let first = engine.submit(keyed("g", r#"{"a":1,"b":{"c":[1.0,"é"]}}"#)).await.unwrap();
    let other = keyed("g", r#"{ "b": {"c": [1, "\u00e9"]}, "a": 1 }"#);
    let again = engine.submit(other.clone()).await.unwrap();
    assert_eq!((again.id, again.deduplicated), (first.id, true));
    for answer in engine.submit_all(vec![other.clone(), other]).await {
        assert_eq!(answer.unwrap().id, first.id);
    }
    for wrong in [
        keyed("g", r#"{"a":2,"b":{"c":[1.0,"é"]}}"#),
        keyed("h", r#"{"a":1,"b":{"c":[1.0,"é"]}}"#),
        keyed("g", "not JSON"),
    ] {
        assert_eq!(engine.submit(wrong).await.unwrap_err().kind, ErrorKind::KeyConflict);
    }
    engine.wait(first.id, LONG).await.unwrap();
    assert_eq!(upstream.payloads().len(), 1);
}

/// IDM-12: a request that is repeated under its key finds the operation that it submitted, for as
/// long as the key is remembered and only if it is not new since; the key is shown nowhere.
#[tokio::test(start_paused = true)]
async fn idm_12_a_repeated_request_finds_its_operation() {
    let (store, upstream) = (memory(), all_done(10));
    let engine = open(&store, &upstream).await;
    let window = Duration::from_secs(3_600);
    let keyed = |payload: &str, new_since: Option<u64>| {
        let new_since = new_since.map(Duration::from_secs);
        operation("g", payload).with_request_key(RequestKey { name: "app k".into(), window, new_since })
    };
    let first = engine.submit(keyed("|1", Some(0))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let again = engine.submit(keyed("|1", None)).await.unwrap();
    assert_eq!((again.id, again.deduplicated), (first.id, true), "taken over from a dead process");
    let stalled = engine.submit(keyed("|1", Some(61))).await.unwrap();
    assert_eq!(stalled.id, first.id, "accepted by another while this one stalled");
    assert_eq!(engine.get(first.id).await.unwrap().dedupe_key, None);
    let own = engine.submit(keyed("|1", None).with_dedupe_key("app k")).await.unwrap();
    assert!(!own.deduplicated, "a dedupe key is another thing");
    let other = engine.submit(keyed("|2", None)).await.unwrap_err();
    assert_eq!((other.kind, other.field.as_deref()), (ErrorKind::KeyConflict, Some("Idempotency-Key")));
    let fresh = engine.submit(keyed("|1", Some(1))).await.unwrap();
    assert_ne!(fresh.id, first.id, "an operator made the key new");
    assert_eq!(engine.submit(keyed("|1", None)).await.unwrap().id, fresh.id);
    tokio::time::sleep(window).await;
    assert!(!engine.submit(keyed("|2", None)).await.unwrap().deduplicated, "the key is forgotten");
}
