//! Operator commands and their effects.

use std::time::Duration;

use tidegate::{ErrorKind, GroupFilter, Options, SeenOutcome};
use tidegate_core::fact::LimitShape;
use tidegate_core::model::Resolution;
use tidegate_core::operation::FailureRule;
use tidegate_core::{Fault, FaultClass, OnFailure, State, Time, Verdict};

use crate::scripted_upstream::*;

/// OPS-9: a cancel reaches a call in flight, and the next operation of the group runs.
#[tokio::test(start_paused = true)]
async fn ops_9_cancel_reaches_a_running_call() {
    let (store, upstream) = (memory(), all_done(60_000));
    let engine = open(&store, &upstream).await;
    let first = engine.submit(operation("g", "|1")).await.unwrap().id;
    let second = engine.submit(operation("g", "|2")).await.unwrap().id;
    let third = engine.submit(operation("g", "|3")).await.unwrap().id;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(engine.get(first).await.unwrap().state, State::Running);
    assert_eq!(engine.cancel(second).await.unwrap().state, State::Canceled);
    engine.cancel(first).await.unwrap();
    let view = engine.wait(first, Duration::from_secs(1)).await.unwrap();
    assert_eq!(view.state, State::Canceled);
    assert!(view.fault.unwrap().may_have_happened);
    assert_eq!(engine.wait(third, LONG).await.unwrap().state, State::Succeeded);
    assert_eq!(upstream.payloads(), ["|1", "|3"]);
    assert_eq!(engine.cancel(first).await.unwrap_err().kind, ErrorKind::NotNow);
}

/// OPS-9 / OPS-24: a paused group takes nothing, says so, and continues when resumed.
#[tokio::test(start_paused = true)]
async fn ops_9_pause_and_resume_and_ops_24_why() {
    let (store, upstream) = (memory(), all_done(10));
    let engine = open(&store, &upstream).await;
    engine.pause("g", "anna", "template fix").await.unwrap();
    let first = engine.submit(operation("g", "|1")).await.unwrap().id;
    let second = engine.submit(operation("g", "|2")).await.unwrap().id;
    let waited = engine.wait(first, Duration::from_secs(60)).await.unwrap();
    assert_eq!(waited.state, State::Waiting);
    let why = engine.why(first).await.unwrap();
    assert_eq!((why.waiting_for, why.name.as_deref(), why.until), ("person", Some("anna"), None));
    assert_eq!(why.because, "Paused by anna 1 min 0 s ago: \"template fix\" — resume the group to continue.");
    let behind = engine.why(second).await.unwrap();
    assert_eq!((behind.waiting_for, behind.behind), ("turn", Some(first)));
    let page = engine.groups(tidegate::GroupFilter::Stopped, None, 10).await.unwrap();
    assert_eq!(page.groups[0].0.depth, 2);
    engine.resume("g").await.unwrap();
    assert_eq!(engine.wait(second, LONG).await.unwrap().state, State::Succeeded);
    assert_eq!(engine.resume("g").await.unwrap_err().kind, ErrorKind::NoGroup);
}

/// OPS-24: an operation whose upstream is gone from the configuration waits for a person, and no
/// start is promised; nor to what is behind it.
#[tokio::test(start_paused = true)]
async fn ops_24_an_upstream_that_is_not_configured_needs_a_person() {
    let gone = Verdict::Throttled { after: Some(Duration::from_secs(15)), scope: None, fault: fault("gone") };
    let (store, upstream) = (memory(), ScriptedUpstream::new(move |_, _| (Duration::ZERO, gone.clone())));
    let limits = [("gh", LimitShape::Gate), ("echo", LimitShape::Gate)];
    let engine = open_with(&store, &upstream, Options::default(), &limits).await;
    let first = engine.submit(operation("g", "gh|1")).await.unwrap().id;
    let second = engine.submit(operation("g", "gh|2")).await.unwrap().id;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let why = engine.why(first).await.unwrap();
    assert_eq!((why.waiting_for, why.starts_at.is_some()), ("bucket", true), "{why:?}");
    engine.drain().await;
    let engine = open_with(&store, &upstream, Options::default(), &limits[1..]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let why = engine.why(first).await.unwrap();
    assert_eq!((why.waiting_for, why.name.as_deref()), ("person", Some("gh")), "{why:?}");
    assert_eq!((why.until, why.starts_at), (None, None));
    assert!(why.because.starts_with("Waiting because the upstream gh is not configured"), "{why:?}");
    let behind = engine.why(second).await.unwrap();
    assert_eq!((behind.waiting_for, behind.starts_at), ("turn", None), "{behind:?}");
}

/// OPS-23: an unknown outcome that must not be repeated waits for an operator.
#[tokio::test(start_paused = true)]
async fn ops_23_a_person_resolves() {
    let upstream = ScriptedUpstream::new(|payload, _| {
        let unknown = payload == "|pay";
        (Duration::ZERO, if unknown { Verdict::Unknown(fault("reset")) } else { Verdict::Done })
    });
    let store = memory();
    let engine = open(&store, &upstream).await;
    let pay = engine.submit(operation("g", "|pay")).await.unwrap().id;
    let next = engine.submit(operation("g", "|next")).await.unwrap().id;
    assert_eq!(engine.wait(pay, LONG).await.unwrap().state, State::Unknown);
    assert_eq!(engine.get(next).await.unwrap().state, State::Queued);
    assert!(engine.why(pay).await.unwrap().because.contains("outcome is unknown"));
    let refused = engine.resume("g").await.unwrap_err();
    assert_eq!((refused.kind, refused.operation), (ErrorKind::NotNow, Some(pay)));
    let since = engine.now();
    for (seen, difference) in [
        (SeenOutcome::default().with_attempt(Some(2)), "it is at attempt 1 now"),
        (SeenOutcome::default().with_before(Some(Time::ZERO)), "its outcome is unknown only since"),
    ] {
        let decided = engine.resolve_as_seen(pay, Resolution::Repeat, seen, bytes::Bytes::new()).await;
        let refused = decided.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotNow);
        assert!(refused.message.contains(difference), "{}", refused.message);
    }
    let seen = SeenOutcome::default().with_attempt(Some(1)).with_before(Some(since.after(LONG)));
    let resolved =
        engine.resolve_as_seen(pay, Resolution::Succeeded, seen, bytes::Bytes::new()).await.unwrap();
    assert_eq!(resolved.state, State::Succeeded);
    assert_eq!(engine.wait(next, LONG).await.unwrap().state, State::Succeeded);
    assert_eq!(upstream.payloads(), ["|pay", "|next"], "it was sent once");
    assert_eq!(engine.resolve(pay, Resolution::Repeat).await.unwrap_err().kind, ErrorKind::NotNow);
}

/// OPS-25: a group is held after a failure; OPS-9: the failed operation reruns before the others,
/// under its id.
#[tokio::test(start_paused = true)]
async fn ops_25_hold_and_ops_9_rerun() {
    let broken = std::sync::atomic::AtomicBool::new(true);
    let upstream = ScriptedUpstream::new(move |payload, _| {
        let fails = payload == "|bad" && broken.swap(false, std::sync::atomic::Ordering::Relaxed);
        let fault = Fault::new(FaultClass::Forbidden, "403 Missing Permissions");
        (Duration::ZERO, if fails { Verdict::Rejected(fault) } else { Verdict::Done })
    });
    let store = memory();
    let engine = open(&store, &upstream).await;
    let bad = operation("g", "|bad").with_on_failure(OnFailure::Hold);
    let bad = engine.submit(bad).await.unwrap().id;
    let next = engine.submit(operation("g", "|next")).await.unwrap().id;
    let failed = engine.wait(bad, LONG).await.unwrap();
    assert_eq!((failed.state, failed.fault.unwrap().class), (State::Failed, FaultClass::Forbidden));
    assert_eq!(engine.wait(next, Duration::from_secs(9)).await.unwrap().state, State::Waiting);
    let again = engine.rerun(bad).await.unwrap();
    assert_eq!((again.id, again.state), (bad, State::Waiting));
    assert_eq!(engine.rerun(bad).await.unwrap_err().kind, ErrorKind::NotNow);
    engine.resume("g").await.unwrap();
    assert_eq!(engine.wait(next, LONG).await.unwrap().state, State::Succeeded);
    assert_eq!(upstream.payloads(), ["|bad", "|bad", "|next"]);
}

/// OPS-9, OPS-23: a call of which an earlier run may have taken effect says so after a rerun, too.
#[tokio::test(start_paused = true)]
async fn ops_9_ops_23_a_rerun_keeps_what_may_have_happened() {
    let is_first = std::sync::atomic::AtomicBool::new(true);
    let upstream = ScriptedUpstream::new(move |_, _| {
        let fault = Fault::new(FaultClass::NotFound, "404");
        let is_first = is_first.swap(false, std::sync::atomic::Ordering::Relaxed);
        (Duration::ZERO, Verdict::Rejected(if is_first { fault.in_doubt() } else { fault }))
    });
    let store = memory();
    let engine = open(&store, &upstream).await;
    let id = engine.submit(operation("g", "|pay")).await.unwrap().id;
    assert!(engine.wait(id, LONG).await.unwrap().fault.unwrap().may_have_happened);
    engine.rerun(id).await.unwrap();
    let ended = engine.wait(id, LONG).await.unwrap();
    assert_eq!((ended.state, ended.fault.unwrap().may_have_happened), (State::Failed, true));
}

/// OPS-24, OPS-25: a group that is held says why, with nothing in its queue too.
#[tokio::test(start_paused = true)]
async fn ops_24_ops_25_a_held_group_without_a_queue_says_why() {
    let upstream = ScriptedUpstream::new(|_, _| {
        let fault = Fault::new(FaultClass::Forbidden, "403 Missing Permissions");
        (Duration::ZERO, Verdict::Rejected(fault))
    });
    let store = memory();
    let engine = open(&store, &upstream).await;
    let bad = engine.submit(operation("g", "|bad").with_on_failure(OnFailure::Hold)).await.unwrap().id;
    assert_eq!(engine.wait(bad, LONG).await.unwrap().state, State::Failed);
    let (group, why, line) = engine.group("g").await.unwrap();
    assert_eq!((group.depth, line.len()), (0, 0));
    let listed = engine.groups(GroupFilter::Held, None, 9).await.unwrap().groups.remove(0).1;
    for why in [why, listed] {
        let because = why.unwrap().because;
        let says = because.contains("operation of the group failed") && because.contains("403 Missing");
        assert!(says, "{because}");
    }
}

/// OPS-9, OPS-4: of two callers who rerun an operation at once one does, and what succeeds by it is
/// not sent again.
#[tokio::test(start_paused = true)]
async fn ops_9_ops_4_an_operation_is_rerun_once() {
    let broken = std::sync::atomic::AtomicBool::new(true);
    let upstream = ScriptedUpstream::new(move |_, _| {
        let fault = Fault::new(FaultClass::Forbidden, "403");
        let fails = broken.swap(false, std::sync::atomic::Ordering::Relaxed);
        (Duration::ZERO, if fails { Verdict::Rejected(fault) } else { Verdict::Done })
    });
    let store = memory();
    let engine = open(&store, &upstream).await;
    let id = engine.submit(operation("g", "|1")).await.unwrap().id;
    assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Failed);
    let rerun = tokio::join!(engine.rerun(id), engine.rerun(id), engine.rerun(id));
    let refused = [rerun.0, rerun.1, rerun.2].map(|one| one.err().map(|error| error.kind));
    assert_eq!(refused, [None, Some(ErrorKind::NotNow), Some(ErrorKind::NotNow)]);
    assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded);
    assert_eq!(upstream.payloads(), ["|1", "|1"]);
}

/// OPS-25: where a submission does not specify what follows a failure, the rule for its group or
/// kind does, also on a rerun.
#[tokio::test(start_paused = true)]
async fn ops_25_a_rule_holds_groups() {
    let upstream = ScriptedUpstream::new(|payload, _| {
        let fault = Fault::new(FaultClass::Validation, "422");
        (Duration::ZERO, if payload == "|bad" { Verdict::Rejected(fault) } else { Verdict::Done })
    });
    let store = memory();
    let rule = FailureRule { group: Some("shop:*".into()), kind: None, on_failure: OnFailure::Hold };
    let options = Options::default().with_on_failure(vec![rule]);
    let engine = open_with(&store, &upstream, options, &[]).await;
    for (group, said, held) in
        [("shop:a", None, true), ("guild:1", None, false), ("shop:b", Some(OnFailure::Skip), false)]
    {
        let bad = operation(group, "|bad").with_on_failure(said);
        let bad = engine.submit(bad).await.unwrap().id;
        assert_eq!(engine.wait(bad, LONG).await.unwrap().state, State::Failed);
        let is_held = |page: tidegate::GroupPage| page.groups.iter().any(|(view, _)| &*view.name == group);
        for _ in 0..2 {
            let page = engine.groups(tidegate::GroupFilter::Held, None, 10).await.unwrap();
            assert_eq!(is_held(page), held, "{group}");
            if held {
                engine.resume(group).await.unwrap();
            }
            engine.rerun(bad).await.unwrap();
            assert_eq!(engine.wait(bad, LONG).await.unwrap().state, State::Failed);
        }
    }
}

/// Limits can be changed and reopened at run time; names and figures out of bounds are refused.
#[tokio::test(start_paused = true)]
async fn limits_at_run_time() {
    let (store, upstream) = (memory(), all_done(1));
    let engine = open_with(&store, &upstream, Options::default(), &[("api", drip(1, 1))]).await;
    assert_eq!(engine.set_limit("api", drip(50, 50)).await.unwrap().shape, drip(50, 50));
    assert_eq!(engine.set_limit("nope", drip(5, 5)).await.unwrap_err().kind, ErrorKind::NoLimit);
    assert_eq!(engine.set_limit("api", drip(0, 5)).await.unwrap_err().kind, ErrorKind::Invalid);
    let cap = tidegate_core::fact::LimitShape::Cap { at_once: 2 };
    assert_eq!(engine.set_limit("api", cap).await.unwrap_err().kind, ErrorKind::NotNow);
    assert_eq!(engine.thaw("nope").await.unwrap_err().kind, ErrorKind::NoLimit);
    assert!(engine.thaw("api").await.unwrap().frozen_until.is_none());
}
