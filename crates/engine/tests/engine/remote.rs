//! Remote workers: take, extend and settle through the engine, over restarts, outages and cancels.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate::upstream::{JobNote, LimitConfig, LimitKind, Outcome, RemoteKind, RemoteKindConfig};
use tidegate::{
    ClaimId, CompletionKey, CompletionProof, Engine, ErrorKind, Options, RemoteClaim, Submission,
    WorkReceipt, WorkReport, WorkRequest,
};
use tidegate_contract::{FaultPlan, FaultyStore, InjectedFault, StoreMethod};
use tidegate_core::{Fault, FaultClass, Fence, OperationId, State, Verdict};
use tidegate_store::Store;

use crate::scripted_upstream::{LONG, ScriptedUpstream, memory};

const LEASE: Duration = Duration::from_secs(30);

/// A kind with two slots, and one whose operations must not run twice.
async fn open(store: &Arc<dyn Store>) -> Engine {
    let slots = LimitConfig::new("slots", LimitKind::AtOnce { at_once: 2 });
    let resize = RemoteKind::new(&RemoteKindConfig::new("resize").with_limits(vec![slots]));
    let limits = resize.limits();
    let once = RemoteKind::new(&RemoteKindConfig::new("once").with_repeatable(false));
    let local = ScriptedUpstream::new(|_, _| (Duration::from_millis(1), Verdict::Done));
    let options = Options::default().with_completion_key(CompletionKey::new(&[1; 16]));
    Engine::builder(Arc::clone(store))
        .options(options)
        .executor("local", local)
        .remote("resize", Arc::new(resize))
        .remote("once", Arc::new(once))
        .limits(limits)
        .open()
        .await
        .unwrap()
}

async fn submit(engine: &Engine, kind: &str, group: &str) -> OperationId {
    engine.submit(Submission::new(kind, group, format!("\"{group}\""))).await.unwrap().id
}

async fn take(engine: &Engine, kinds: &[&str], max: usize) -> Vec<RemoteClaim> {
    let kinds = kinds.iter().map(|kind| Arc::from(*kind)).collect();
    let request = WorkRequest { kinds, max, lease: LEASE };
    engine.take_work(vec![request]).await.unwrap().pop().unwrap()
}

async fn settle(engine: &Engine, claim: ClaimId, verdict: Verdict) -> WorkReceipt {
    let outcome = Outcome::unanswered(verdict);
    engine.settle_work(vec![WorkReport { claim, outcome }]).await.unwrap().pop().unwrap().unwrap()
}

async fn state(engine: &Engine, id: OperationId) -> State {
    engine.get(id).await.unwrap().state
}

fn receipt(applied: bool, state: State) -> WorkReceipt {
    WorkReceipt { applied, state }
}

/// OPS-4, OPS-5: remote workers get operations in turn and within the limits of their kind; a
/// report settles its claim once, by fence. The engine's own workers take none of them.
#[tokio::test(start_paused = true)]
async fn ops_4_a_remote_worker_takes_and_settles_in_order() {
    let engine = open(&memory()).await;
    let mut ready = engine.ready_kinds();
    let local = submit(&engine, "local", "a").await;
    assert_eq!(engine.wait(local, LONG).await.unwrap().state, State::Succeeded);
    assert!(take(&engine, &["resize"], 9).await.is_empty());
    let mut ids = Vec::new();
    for group in ["a", "a", "b", "c"] {
        ids.push(submit(&engine, "resize", group).await);
    }
    assert!(ready.wait_for(|kinds| kinds.iter().any(|kind| &**kind == "resize")).await.is_ok());
    let claims = take(&engine, &["resize", "once"], 9).await;
    let taken: Vec<_> = claims.iter().map(|claim| (claim.claim.id, &*claim.group, claim.attempt)).collect();
    assert_eq!(taken, [(ids[0], "a", 1), (ids[2], "b", 1)], "in turn, and two slots");
    assert_eq!((&claims[0].payload[..], claims[0].lease), (&b"\"a\""[..], LEASE));
    assert!(claims[0].completion_token.is_some());
    let why = engine.why(ids[3]).await.unwrap();
    assert_eq!((why.waiting_for, why.name.as_deref()), ("lease", Some("resize/slots")));
    assert_eq!(settle(&engine, claims[0].claim, Verdict::Done).await, receipt(true, State::Succeeded));
    assert_eq!(settle(&engine, claims[0].claim, Verdict::Done).await, receipt(false, State::Succeeded));
    let older = ClaimId { fence: Fence(0), ..claims[1].claim };
    assert_eq!(settle(&engine, older, Verdict::Done).await, receipt(false, State::Running));
    let next: Vec<_> = take(&engine, &["resize"], 9).await.iter().map(|claim| claim.claim.id).collect();
    assert_eq!(next, [ids[3]], "the head of a waits longer than c");
    let stranger =
        ClaimId { id: OperationId::new(tidegate::Time::ZERO, 0, tidegate::Seq(99)), fence: Fence(1) };
    let outcome = Outcome::unanswered(Verdict::Done);
    let refused = engine.settle_work(vec![WorkReport { claim: stranger, outcome }]).await.unwrap();
    assert_eq!(refused[0].as_ref().unwrap_err().kind, ErrorKind::NoOperation);
}

/// OPS-8: a worker that dies gives its claim back when its lease runs out: the operation runs
/// again, or waits for an operator if its kind must not run twice. Its late report changes nothing.
#[tokio::test(start_paused = true)]
async fn ops_8_a_dead_worker_gives_its_claim_back() {
    let engine = open(&memory()).await;
    let (again, once) = (submit(&engine, "resize", "a").await, submit(&engine, "once", "b").await);
    let dead = take(&engine, &["resize", "once"], 9).await;
    assert_eq!(dead.len(), 2);
    tokio::time::sleep(LEASE + Duration::from_secs(2)).await;
    assert_eq!(state(&engine, once).await, State::Unknown);
    let view = engine.get(once).await.unwrap();
    let attempts = engine.details(&view).await.unwrap().attempts;
    let shown: Vec<_> = attempts.iter().map(|a| (a.number, a.state, a.accepted_at())).collect();
    assert_eq!(shown, [(1, tidegate::AttemptState::Unknown, None)], "the one that left it unknown");
    let claim = take(&engine, &["resize"], 9).await.pop().unwrap();
    assert_eq!((claim.claim.id, claim.attempt, claim.in_doubt), (again, 2, true));
    assert!(!dead[0].in_doubt);
    assert_eq!(settle(&engine, dead[0].claim, Verdict::Done).await, receipt(false, State::Running));
    assert_eq!(settle(&engine, dead[1].claim, Verdict::Done).await, receipt(false, State::Unknown));
    assert_eq!(settle(&engine, claim.claim, Verdict::Done).await, receipt(true, State::Succeeded));
}

/// A worker that extends its claim keeps it, and learns of a cancel; whatever it reports then is
/// the end.
#[tokio::test(start_paused = true)]
async fn ops_9_an_extended_claim_holds_and_tells_of_a_cancel() {
    let engine = open(&memory()).await;
    let id = submit(&engine, "resize", "a").await;
    let claim = take(&engine, &["resize"], 1).await.pop().unwrap().claim;
    for _ in 0..4 {
        tokio::time::sleep(LEASE / 2).await;
        let extended = engine.extend_work(vec![(claim, LEASE)]).await.unwrap()[0];
        assert!(extended.until.is_some() && !extended.cancel_requested);
    }
    assert!(!engine.get(id).await.unwrap().cancel_requested);
    engine.cancel(id).await.unwrap();
    assert!(engine.get(id).await.unwrap().cancel_requested);
    assert_eq!(engine.why(id).await.unwrap().because, "It is running. A cancel was requested.");
    let extended = engine.extend_work(vec![(claim, LEASE)]).await.unwrap()[0];
    assert!(extended.until.is_some() && extended.cancel_requested);
    let stopped = Verdict::Canceled { may_have_happened: true };
    assert_eq!(settle(&engine, claim, stopped).await, receipt(true, State::Canceled));
    let late = engine.extend_work(vec![(claim, LEASE)]).await.unwrap()[0];
    assert_eq!((late.until, late.cancel_requested), (None, false));
    assert_eq!(settle(&engine, claim, Verdict::Done).await, receipt(false, State::Canceled));
}

/// OPS-8: a claim survives a restart of the server: the worker extends or settles it afterwards.
#[tokio::test(start_paused = true)]
async fn ops_8_a_claim_survives_a_restart() {
    let store = memory();
    let engine = open(&store).await;
    let (first, second) = (submit(&engine, "once", "a").await, submit(&engine, "once", "b").await);
    let claims = take(&engine, &["once"], 9).await;
    engine.drain().await;
    let engine = open(&store).await;
    assert_eq!((state(&engine, first).await, state(&engine, second).await), (State::Running, State::Running));
    for _ in 0..2 {
        assert!(engine.extend_work(vec![(claims[0].claim, LEASE)]).await.unwrap()[0].until.is_some());
        tokio::time::sleep(LEASE / 2 + Duration::from_secs(1)).await;
    }
    assert_eq!(settle(&engine, claims[0].claim, Verdict::Done).await, receipt(true, State::Succeeded));
    assert_eq!(state(&engine, second).await, State::Unknown, "its worker did not come back");
}

/// OPS-8: what was accepted for a kind that is missing from the configuration waits and spends no
/// attempt, and a worker that has a claim keeps it.
#[tokio::test(start_paused = true)]
async fn ops_8_what_was_accepted_for_a_missing_kind_waits() {
    let store = memory();
    let engine = open(&store).await;
    let (held, queued) = (submit(&engine, "once", "a").await, submit(&engine, "once", "b").await);
    let claim = take(&engine, &["once"], 1).await.pop().unwrap().claim;
    assert_eq!(claim.id, held);
    engine.drain().await;
    let local = ScriptedUpstream::new(|_, _| (Duration::from_millis(1), Verdict::Done));
    let engine = Engine::builder(Arc::clone(&store)).executor("local", local).open().await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(engine.get(queued).await.unwrap().attempt, 0);
    let why = engine.why(queued).await.unwrap();
    assert_eq!((why.waiting_for, why.name.as_deref()), ("person", Some("once")));
    assert!(why.because.contains("the kind once is not configured"), "{}", why.because);
    assert!(engine.extend_work(vec![(claim, LEASE)]).await.unwrap()[0].until.is_some());
    assert_eq!(settle(&engine, claim, Verdict::Done).await, receipt(true, State::Succeeded));
    engine.drain().await;
    let engine = open(&store).await;
    let claim = take(&engine, &["once"], 9).await.pop().unwrap();
    assert_eq!((claim.claim.id, claim.attempt), (queued, 1));
}

/// A caller that is gone before its claims are durable gets none: they are returned at once, and no
/// attempt is spent.
#[tokio::test(start_paused = true)]
async fn a_claim_without_a_caller_is_returned() {
    let engine = open(&memory()).await;
    let id = submit(&engine, "resize", "a").await;
    let request = WorkRequest { kinds: vec!["resize".into()], max: 1, lease: LEASE };
    {
        let mut asked = std::pin::pin!(engine.take_work(vec![request]));
        // The command is sent, and its caller hangs up.
        assert!(futures_util::poll!(&mut asked).is_pending());
    }
    let claim = loop {
        if let Some(claim) = take(&engine, &["resize"], 1).await.pop() {
            break claim;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    };
    assert_eq!((claim.claim.id, claim.attempt), (id, 1));
}

/// A worker's job that ends elsewhere awaits its completion without a worker, is asked about by any
/// worker, and keeps its slot.
#[tokio::test(start_paused = true)]
async fn a_remote_job_is_asked_about_and_completed() {
    let engine = open(&memory()).await;
    let polled = submit(&engine, "resize", "a").await;
    let completed = submit(&engine, "resize", "b").await;
    let claims = take(&engine, &["resize"], 9).await;
    let note =
        || Some(JobNote { external_id: Some("j-1".into()), memo: Bytes::from_static(b"{}"), cost: None });
    for (claim, poll_after) in [(&claims[0], Some(Duration::from_secs(5))), (&claims[1], None)] {
        let verdict = Verdict::Accepted { poll_after, timeout: LEASE * 100 };
        let outcome = Outcome::unanswered(verdict).with_job(note());
        let settled = engine.settle_work(vec![WorkReport { claim: claim.claim, outcome }]).await.unwrap();
        assert_eq!(settled[0].as_ref().unwrap(), &receipt(true, State::Running));
    }
    submit(&engine, "resize", "c").await;
    assert!(take(&engine, &["resize"], 9).await.is_empty(), "both slots are taken, and nothing is due");
    let token = CompletionProof::Token(claims[1].completion_token.clone().unwrap());
    let done =
        engine.complete(completed, token, tidegate::Completion::Succeeded, Bytes::new()).await.unwrap();
    assert!(done.applied);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let next = take(&engine, &["resize"], 9).await;
    let poll = next.iter().find(|claim| claim.job.is_some()).unwrap();
    assert_eq!((poll.claim.id, next.len()), (polled, 2), "the same operation again, and the one of c");
    assert_eq!(poll.completion_token, claims[0].completion_token, "of the same attempt");
    let job = poll.job.as_ref().unwrap();
    assert_eq!((job.external_id.as_deref(), &job.memo[..]), (Some("j-1"), &b"{}"[..]));
    let again = Verdict::Accepted { poll_after: Some(Duration::from_secs(5)), timeout: LEASE };
    assert!(settle(&engine, poll.claim, again).await.applied);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let poll = take(&engine, &["resize"], 9).await.pop().unwrap();
    assert_eq!(poll.job.unwrap().external_id.as_deref(), Some("j-1"), "what is left out stays");
    assert_eq!(settle(&engine, poll.claim, Verdict::Done).await, receipt(true, State::Succeeded));
    assert_eq!(state(&engine, polled).await, State::Succeeded);
}

/// A report that comes twice, or after its poll lapsed, changes nothing while no worker has the
/// claim.
#[tokio::test(start_paused = true)]
async fn a_report_without_a_worker_changes_nothing() {
    let engine = open(&memory()).await;
    submit(&engine, "resize", "a").await;
    let claim = take(&engine, &["resize"], 1).await.pop().unwrap().claim;
    let awaiting = || Verdict::Accepted { poll_after: Some(Duration::from_secs(5)), timeout: LEASE * 100 };
    assert_eq!(settle(&engine, claim, awaiting()).await, receipt(true, State::Running));
    assert_eq!(settle(&engine, claim, awaiting()).await, receipt(false, State::Running));
    let extended = engine.extend_work(vec![(claim, LEASE)]).await.unwrap()[0];
    assert_eq!(extended.until, None);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let poll = take(&engine, &["resize"], 1).await.pop().unwrap();
    assert!(poll.job.is_some());
    assert_eq!(settle(&engine, poll.claim, Verdict::Done).await, receipt(true, State::Succeeded));
}

/// A completion that comes after its time, and before the job is started again, is its end.
#[tokio::test(start_paused = true)]
async fn a_late_completion_spares_the_next_attempt() {
    let engine = open(&memory()).await;
    let id = submit(&engine, "resize", "a").await;
    let claim = take(&engine, &["resize"], 1).await.pop().unwrap();
    let awaiting = Verdict::Accepted { poll_after: None, timeout: Duration::from_secs(2) };
    assert!(settle(&engine, claim.claim, awaiting).await.applied);
    while state(&engine, id).await == State::Running {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_ne!(state(&engine, id).await, State::Unknown);
    for applied in [true, false] {
        let token = CompletionProof::Token(claim.completion_token.clone().unwrap());
        let done = engine.complete(id, token, tidegate::Completion::Succeeded, Bytes::new()).await.unwrap();
        assert_eq!((done.applied, done.operation.state), (applied, State::Succeeded));
    }
    tokio::time::sleep(LEASE).await;
    assert!(take(&engine, &["resize"], 1).await.is_empty());
}

/// A report or an extension of an earlier poll neither settles nor shortens a later one, which has
/// a fence of its own; nor does the report that the job was accepted, sent again.
#[tokio::test(start_paused = true)]
async fn a_late_report_leaves_the_next_poll_alone() {
    let engine = open(&memory()).await;
    let id = submit(&engine, "resize", "a").await;
    let first = take(&engine, &["resize"], 1).await.pop().unwrap().claim;
    let awaiting = || Verdict::Accepted { poll_after: Some(Duration::from_secs(5)), timeout: LEASE * 100 };
    assert!(settle(&engine, first, awaiting()).await.applied);
    tokio::time::sleep(Duration::from_secs(6)).await;
    let slow = take(&engine, &["resize"], 1).await.pop().unwrap().claim;
    assert_eq!(settle(&engine, first, awaiting()).await, receipt(false, State::Running));
    assert!(engine.extend_work(vec![(slow, LEASE)]).await.unwrap()[0].until.is_some());
    tokio::time::sleep(LEASE + Duration::from_secs(10)).await;
    let poll = take(&engine, &["resize"], 1).await.pop().unwrap().claim;
    for late in [first, slow] {
        let extended = engine.extend_work(vec![(late, Duration::from_secs(1))]).await.unwrap()[0];
        assert_eq!(extended.until, None);
        let failed = Verdict::Rejected(Fault::new(FaultClass::Validation, "a stale poll"));
        assert_eq!(settle(&engine, late, failed).await, receipt(false, State::Running));
    }
    tokio::time::sleep(LEASE - Duration::from_secs(1)).await;
    assert_eq!(settle(&engine, poll, Verdict::Done).await, receipt(true, State::Succeeded));
    assert_eq!(state(&engine, id).await, State::Succeeded);
}

/// What cannot be kept is refused, and the worker keeps its claim: a memo that is too long, and a
/// limit that the operation does not charge.
#[tokio::test(start_paused = true)]
async fn a_report_that_cannot_be_kept_leaves_the_claim() {
    let engine = open(&memory()).await;
    submit(&engine, "resize", "a").await;
    let claim = take(&engine, &["resize"], 1).await.pop().unwrap().claim;
    let report = |verdict: Verdict, memo: usize| {
        let job = JobNote { external_id: None, memo: vec![b'x'; memo].into(), cost: None };
        let outcome = Outcome::unanswered(verdict).with_job((memo > 0).then_some(job));
        engine.settle_work(vec![WorkReport { claim, outcome }])
    };
    let awaiting = || Verdict::Accepted { poll_after: None, timeout: LEASE };
    let throttled = |limit: &str| {
        let fault = Fault::new(FaultClass::RateLimited, "slow down");
        Verdict::Throttled { after: Some(LEASE), scope: Some(limit.into()), fault }
    };
    for (verdict, memo, field) in [(awaiting(), 17_000, "memo"), (throttled("local"), 0, "limit")] {
        let refused = report(verdict, memo).await.unwrap().pop().unwrap().unwrap_err();
        assert_eq!(refused.field.as_deref(), Some(field));
        assert!(engine.extend_work(vec![(claim, LEASE)]).await.unwrap()[0].until.is_some());
    }
    let settled = report(throttled("slots"), 0).await.unwrap().pop().unwrap().unwrap();
    assert!(settled.applied);
}

/// OPS-23: when an append fails, the claims that it may contain were handed to no one: they are
/// returned, and a report that it may have lost is settled again.
#[tokio::test(start_paused = true)]
async fn ops_23_an_outage_loses_no_claim_and_no_report() {
    let faulty = Arc::new(FaultyStore::new(memory(), FaultPlan::none()));
    let lose_next =
        || faulty.set_plan(FaultPlan::none().at(StoreMethod::Append, 1, InjectedFault::LoseReply));
    let engine = open(&(Arc::clone(&faulty) as Arc<dyn Store>)).await;
    let id = submit(&engine, "resize", "a").await;
    lose_next();
    let request = WorkRequest { kinds: vec!["resize".into()], max: 1, lease: LEASE };
    assert!(engine.take_work(vec![request]).await.is_err());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let claim = take(&engine, &["resize"], 1).await.pop().unwrap();
    assert_eq!((claim.claim.id, claim.attempt), (id, 1), "returned, not waited for");
    lose_next();
    let outcome = Outcome::unanswered(Verdict::Done);
    assert!(engine.settle_work(vec![WorkReport { claim: claim.claim, outcome }]).await.is_err());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(settle(&engine, claim.claim, Verdict::Done).await, receipt(false, State::Succeeded));
}

/// A take gets no more payloads than fit in one answer; the others are not lost with it.
#[tokio::test(start_paused = true)]
async fn a_take_is_bounded_in_bytes() {
    let engine = open(&memory()).await;
    let payload = format!("\"{}\"", "x".repeat(1024 * 1024 - 2));
    for n in 0..18 {
        engine.submit(Submission::new("once", format!("g{n}"), payload.clone())).await.unwrap();
    }
    let first = take(&engine, &["once"], 18).await;
    assert_eq!(first.len(), 16);
    let others = take(&engine, &["once"], 18).await;
    assert!(others.len() == 2 && others.iter().all(|claim| claim.attempt == 1), "{others:?}");
}

/// `why` says that no worker asks for the kind.
#[tokio::test(start_paused = true)]
async fn what_waits_for_a_worker_says_so() {
    let engine = open(&memory()).await;
    let id = submit(&engine, "resize", "a").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let why = engine.why(id).await.unwrap();
    assert_eq!((why.waiting_for, why.name.as_deref()), ("worker", Some("resize")));
    assert!(
        why.because.contains("none has asked for kind resize since this node took over"),
        "{}",
        why.because
    );
    let claim = take(&engine, &["resize"], 1).await.pop().unwrap();
    let retry = Verdict::Returned;
    settle(&engine, claim.claim, retry).await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    let why = engine.why(id).await.unwrap();
    assert_eq!(why.because, "Waiting for a worker: none has asked for kind resize for 7.0 s.");
}
