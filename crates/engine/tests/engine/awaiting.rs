//! Jobs that end elsewhere: submitted by the engine, ended by a completion, a poll, a cancel or the
//! clock, over restarts and outages.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tidegate::{
    Completion, CompletionKey, CompletionProof, Engine, ErrorKind, Executors, InFlightCalls, Options,
    Submission,
};
use tidegate_contract::{FaultPlan, FaultyStore};
use tidegate_core::fact::LimitShape;
use tidegate_core::model::Resolution;
use tidegate_core::{Charge, OperationId, State, Verdict};
use tidegate_store::Store;
use tidegate_store::attempt::AttemptState;
use tidegate_upstream::{
    AcceptedJob, Call, CallFuture, CallRequirements, CallbackMeaning, FieldRefusal, JobNote, Outcome,
    Upstream,
};

use crate::scripted_upstream::{LONG, fault, memory};

/// What a job service saw: submissions and polls, with what they brought along.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Submitted { payload: String, token: String },
    Polled { job: String, memo: String, cancel: bool },
}

/// A service that accepts jobs at once and finishes them when a test says so. The payload says how
/// it behaves: `slow` answers after a minute, `lost` with an error, `poll` is polled every five
/// seconds.
#[derive(Default)]
struct JobService {
    seen: Mutex<Vec<Seen>>,
    /// The verdict of each poll, in order; then the job is not finished.
    polls: Mutex<Vec<Verdict>>,
}

const HOUR: Duration = Duration::from_secs(3_600);

fn accepted(payload: &str) -> Verdict {
    let poll_after = payload.contains("poll").then_some(Duration::from_secs(5));
    Verdict::Accepted { poll_after, timeout: HOUR }
}

impl JobService {
    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn tokens(&self) -> Vec<String> {
        let tokens = self.seen().into_iter().filter_map(|seen| match seen {
            Seen::Submitted { token, .. } => Some(token),
            Seen::Polled { .. } => None,
        });
        tokens.collect()
    }

    fn polls(&self) -> usize {
        self.seen().iter().filter(|seen| matches!(seen, Seen::Polled { .. })).count()
    }
}

impl Upstream for JobService {
    fn check(&self, _: &[u8], _: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let charges = vec![Charge::tokens("slots", 1)];
        Ok(CallRequirements::new(charges))
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let payload = String::from_utf8(call.payload.to_vec()).unwrap();
            let token = call.completion_token.unwrap_or_default().to_owned();
            self.seen.lock().unwrap().push(Seen::Submitted { payload: payload.clone(), token });
            if payload.contains("slow") {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            if payload.contains("lost") {
                return Outcome::unanswered(Verdict::Unknown(fault("500"))).with_body(&b"theirs"[..]);
            }
            let external_id = Some(format!("job of {payload}").into());
            let job = Some(JobNote { external_id, memo: Bytes::from_static(b"memo"), cost: Some(7) });
            Outcome::unanswered(accepted(&payload)).with_job(job)
        })
    }

    fn read_callback(&self, _: &[u8], content: &[u8]) -> Option<CallbackMeaning> {
        match content {
            b"done" => Some(CallbackMeaning::Succeeded),
            b"look" => Some(CallbackMeaning::NotFinished),
            _ => None,
        }
    }

    fn poll<'a>(&'a self, call: Call<'a>, job: AcceptedJob<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let payload = String::from_utf8(call.payload.to_vec()).unwrap();
            self.seen.lock().unwrap().push(Seen::Polled {
                job: job.external_id.unwrap_or_default().to_owned(),
                memo: String::from_utf8(job.memo.to_vec()).unwrap(),
                cancel: job.cancel_requested,
            });
            tokio::time::sleep(Duration::from_millis(100)).await;
            let mut polls = self.polls.lock().unwrap();
            let next = (!polls.is_empty()).then(|| polls.remove(0));
            let verdict = next.unwrap_or_else(|| match job.cancel_requested {
                true => Verdict::Canceled { may_have_happened: true },
                false => accepted(&payload),
            });
            Outcome::unanswered(verdict).with_body(&b"polled"[..])
        })
    }
}

fn options() -> Options {
    Options::default().with_workers(1).with_completion_key(CompletionKey::new(&[1; 16]))
}

async fn open(store: &Arc<dyn Store>, service: &Arc<JobService>, options: Options) -> Engine {
    let executors = Executors::from([("job".into(), Arc::clone(service) as Arc<dyn Upstream>)]);
    let limits = vec![("slots".into(), LimitShape::Cap { at_once: 2 })];
    let engine = Engine::builder(Arc::clone(store)).options(options).executors(executors).limits(limits);
    engine.open().await.unwrap()
}

async fn submit(engine: &Engine, group: &str, payload: &str) -> OperationId {
    let submission = Submission::new("job", group, payload.to_owned());
    engine.submit(submission).await.unwrap().id
}

async fn pause(seconds: u64) {
    tokio::time::sleep(Duration::from_millis(1_000 * seconds + 10)).await;
}

async fn state(engine: &Engine, id: OperationId) -> State {
    engine.get(id).await.unwrap().state
}

async fn complete(engine: &Engine, id: OperationId, token: &str) -> tidegate::Result<bool> {
    let (proof, body) = (CompletionProof::Token(token.into()), Bytes::from_static(b"result"));
    let receipt = engine.complete(id, proof, Completion::Succeeded, body).await?;
    assert_eq!(receipt.operation.id, id);
    Ok(receipt.applied)
}

/// One worker submits job after job: those that are awaited hold slots and no worker, and each is
/// ended by the completion that names it.
#[tokio::test(start_paused = true)]
async fn a_completion_ends_what_is_awaited() {
    let (store, service) = (memory(), Arc::default());
    let engine = open(&store, &service, options()).await;
    let mut ids = Vec::new();
    for n in 0..3 {
        ids.push(submit(&engine, &format!("g{n}"), &format!("{n}")).await);
    }
    pause(1).await;
    assert_eq!(service.tokens().len(), 2, "two slots, however many workers");
    let why = engine.why(ids[0]).await.unwrap();
    assert_eq!((state(&engine, ids[0]).await, why.waiting_for), (State::Running, "completion"));
    assert!(why.because.starts_with("Awaiting its completion, sent 1.0 s ago"), "{}", why.because);
    assert!(complete(&engine, ids[0], &service.tokens()[0]).await.unwrap());
    let view = engine.get(ids[0]).await.unwrap();
    assert_eq!((view.state, view.result.as_deref()), (State::Succeeded, Some(&b"result"[..])));
    pause(1).await;
    assert_eq!(service.tokens().len(), 3, "its slot was free again");
    let attempts = store.read_attempts(0, vec![ids[0].seq(), ids[1].seq()]).await.unwrap();
    let found =
        attempts.iter().flatten().map(|one| (one.number, one.state, one.external_id.as_deref(), one.cost));
    let wanted = [
        (1, AttemptState::Succeeded, Some("job of 0"), Some(7)),
        (1, AttemptState::Awaiting, Some("job of 1"), Some(7)),
    ];
    assert_eq!(found.collect::<Vec<_>>(), wanted);
    let details = engine.details(&engine.get(ids[0]).await.unwrap()).await.unwrap();
    let [attempt] = &details.attempts[..] else { panic!("{details:?}") };
    assert_eq!((attempt.number, attempt.state, attempt.cost), (1, AttemptState::Succeeded, Some(7)));
    let took = attempt.ended_at.unwrap().since(attempt.accepted_at().unwrap());
    assert!(took >= Duration::from_secs(1), "{took:?}");
    assert_eq!(details.request.unwrap().body.unwrap().text.as_deref(), Some("0"));
}

/// A completion twice, late, with a wrong token or that of another operation changes nothing.
#[tokio::test(start_paused = true)]
async fn only_the_first_completion_with_the_right_token_counts() {
    let (store, service) = (memory(), Arc::default());
    let engine = open(&store, &service, options()).await;
    let (one, other) = (submit(&engine, "a", "a").await, submit(&engine, "b", "b").await);
    pause(1).await;
    let tokens = service.tokens();
    for wrong in ["", "1", "1.00", &tokens[1], &format!("{}0", tokens[0]), &tokens[0].to_uppercase()] {
        let refused = complete(&engine, one, wrong).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Unauthorized, "{wrong}");
    }
    let unknown = OperationId::new(tidegate_core::Time::from_millis(1), 0, tidegate_core::Seq(99));
    assert_eq!(complete(&engine, unknown, &tokens[0]).await.unwrap_err().kind, ErrorKind::Unauthorized);
    assert_eq!(state(&engine, one).await, State::Running);
    assert!(complete(&engine, one, &tokens[0]).await.unwrap());
    assert!(!complete(&engine, one, &tokens[0]).await.unwrap(), "twice");
    let failed = Completion::Failed(fault("too late"));
    let proof = CompletionProof::Token(tokens[0].clone());
    let receipt = engine.complete(one, proof, failed, Bytes::new()).await.unwrap();
    assert_eq!((receipt.applied, receipt.operation.state), (false, State::Succeeded), "another end");
    assert_eq!(state(&engine, other).await, State::Running);
}

/// A completion may come before the response to the submission, which then changes nothing; a retry
/// is submitted again under another token, and the first one is stale.
#[tokio::test(start_paused = true)]
async fn a_completion_may_come_before_the_response() {
    let (store, service) = (memory(), Arc::default());
    let engine = open(&store, &service, options()).await;
    let early = submit(&engine, "a", "slow").await;
    pause(1).await;
    assert!(complete(&engine, early, &service.tokens()[0]).await.unwrap());
    let next = submit(&engine, "a", "slow next").await;
    pause(1).await;
    assert_eq!(service.tokens().len(), 2, "its call is abandoned, and its worker free");
    let proof = CompletionProof::Token(service.tokens()[1].clone());
    let retry = Completion::Retry(fault("busy"));
    assert!(engine.complete(next, proof, retry, Bytes::new()).await.unwrap().applied);
    pause(70).await;
    assert_eq!(state(&engine, early).await, State::Succeeded);
    let tokens = service.tokens();
    assert_eq!((tokens.len(), state(&engine, next).await), (3, State::Running), "submitted again, once");
    assert!(!complete(&engine, next, &tokens[1]).await.unwrap(), "of an earlier attempt");
    assert!(complete(&engine, next, &tokens[2]).await.unwrap());
}

/// Polls bring along what was kept of the job, and end it.
#[tokio::test(start_paused = true)]
async fn a_poll_ends_what_is_awaited() {
    let (store, service) = (memory(), Arc::<JobService>::default());
    let again = Verdict::Unknown(fault("cannot be reached"));
    *service.polls.lock().unwrap() = vec![accepted("poll"), again, Verdict::Done];
    let engine = open(&store, &service, options()).await;
    let id = submit(&engine, "a", "poll").await;
    let view = engine.wait(id, LONG).await.unwrap();
    assert_eq!(
        (view.state, view.attempt, view.result.as_deref()),
        (State::Succeeded, 1, Some(&b"polled"[..]))
    );
    let polled = Seen::Polled { job: "job of poll".into(), memo: "memo".into(), cancel: false };
    assert_eq!(service.seen()[1..], [polled.clone(), polled.clone(), polled]);
}

/// A cancel is passed on, also during a poll, and the operation ends as canceled.
#[tokio::test(start_paused = true)]
async fn a_cancel_is_passed_on() {
    for (payload, wait) in [("plain", 1), ("poll", 6)] {
        let (store, service) = (memory(), Arc::<JobService>::default());
        let engine = open(&store, &service, options()).await;
        let id = submit(&engine, "a", payload).await;
        tokio::time::sleep(Duration::from_millis(1_000 * wait - 950)).await;
        engine.cancel(id).await.unwrap();
        let view = engine.wait(id, LONG).await.unwrap();
        assert_eq!(view.state, State::Canceled, "{payload}");
        assert!(view.fault.unwrap().may_have_happened);
        assert!(matches!(service.seen().last(), Some(Seen::Polled { cancel: true, .. })), "{payload}");
        assert!(!complete(&engine, id, &service.tokens()[0]).await.unwrap(), "after a cancel");
    }
}

/// A completion that does not come in time leaves the outcome unknown, and resolves it when it
/// comes after all. An operator may complete with no token, but not what does not await it.
#[tokio::test(start_paused = true)]
async fn a_completion_that_does_not_come_is_unknown() {
    let (store, service) = (memory(), Arc::default());
    let engine = open(&store, &service, options()).await;
    let id = submit(&engine, "a", "a").await;
    let view = engine.wait_for_outcome(id, 2 * HOUR).await.unwrap();
    assert_eq!(view.state, State::Unknown);
    let row = store.read_attempts(0, vec![id.seq()]).await.unwrap().remove(0).remove(0);
    assert_eq!((row.state, row.external_id.as_deref()), (AttemptState::Unknown, Some("job of a")));
    let report = |id| engine.complete(id, CompletionProof::Authorized, Completion::Succeeded, Bytes::new());
    assert_eq!(report(id).await.unwrap_err().kind, ErrorKind::NotNow);
    assert!(complete(&engine, id, &service.tokens()[0]).await.unwrap(), "late, but the outcome was unknown");
    let view = engine.get(id).await.unwrap();
    assert_eq!((view.state, view.result.as_deref()), (State::Succeeded, Some(&b"result"[..])));
    let row = store.read_attempts(0, vec![id.seq()]).await.unwrap().remove(0).remove(0);
    assert_eq!((row.state, row.external_id.as_deref()), (AttemptState::Succeeded, Some("job of a")));
    assert!(!complete(&engine, id, &service.tokens()[0]).await.unwrap(), "twice");
    let next = submit(&engine, "b", "b").await;
    pause(1).await;
    assert!(report(next).await.unwrap().applied);
    assert_eq!(state(&engine, next).await, State::Succeeded);
}

/// Only the attempt that left the outcome unknown resolves it, not an earlier one that an operator
/// had repeated. What the upstream answered is shown until then.
#[tokio::test(start_paused = true)]
async fn only_the_last_attempt_resolves_an_unknown_outcome() {
    let (store, service) = (memory(), Arc::default());
    let engine = open(&store, &service, options()).await;
    let id = submit(&engine, "a", "lost").await;
    for _ in 0..2 {
        let view = engine.wait_for_outcome(id, LONG).await.unwrap();
        assert_eq!((view.state, view.result.as_deref()), (State::Unknown, Some(&b"theirs"[..])));
        if service.tokens().len() == 1 {
            engine.resolve(id, Resolution::Repeat).await.unwrap();
            pause(1).await;
        }
    }
    let tokens = service.tokens();
    assert_eq!(tokens.len(), 2);
    assert!(!complete(&engine, id, &tokens[0]).await.unwrap(), "an earlier attempt");
    assert_eq!(state(&engine, id).await, State::Unknown);
    assert!(complete(&engine, id, &tokens[1]).await.unwrap());
    assert_eq!(state(&engine, id).await, State::Succeeded);
}

/// A callback in the service's own format is read by the executor: it ends the job, or has it
/// polled at once; without a rule nothing happens.
#[tokio::test(start_paused = true)]
async fn a_callback_in_another_format_is_read_by_the_executor() {
    let (store, service) = (memory(), Arc::<JobService>::default());
    let engine = open(&store, &service, options()).await;
    let id = submit(&engine, "a", "poll").await;
    pause(1).await;
    let token = service.tokens().remove(0);
    let call_back = |text: &'static str| {
        engine.receive_callback(id, &token, text.as_bytes(), |_| Bytes::from_static(b"theirs"))
    };
    let wrong = engine.receive_callback(id, "1.0", b"done", |_| Bytes::new()).await;
    assert_eq!(wrong.unwrap_err().kind, ErrorKind::Unauthorized);
    assert!(call_back("what?").await.unwrap().is_none());
    assert_eq!(service.polls(), 0);
    assert!(!call_back("look").await.unwrap().unwrap().applied);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(service.polls(), 1, "polled at once, four seconds early");
    let receipt = call_back("done").await.unwrap().unwrap();
    assert_eq!((receipt.applied, receipt.operation.state), (true, State::Succeeded));
    assert_eq!(receipt.operation.result.as_deref(), Some(&b"theirs"[..]));
}

/// OPS-8: an awaiting operation survives a crash on a store of its own and on a shared one, is
/// polled by the next owner, and is completed by the token of the first.
#[tokio::test(start_paused = true)]
async fn ops_8_an_awaiting_operation_survives_a_restart() {
    for is_shared in [false, true] {
        let faulty = FaultyStore::new(memory(), FaultPlan::none());
        let store: Arc<dyn Store> = Arc::new(if is_shared { faulty.shared() } else { faulty });
        let service = Arc::<JobService>::default();
        let engine = open(&store, &service, options()).await;
        let (plain, polled) = (submit(&engine, "a", "plain").await, submit(&engine, "b", "poll").await);
        tokio::time::sleep(Duration::from_millis(5_060)).await;
        assert_eq!(service.polls(), 1, "the poll is in flight");
        // Gone without a drain; what its process knew is lost.
        drop(engine);
        pause(7).await;
        let fresh = options().with_in_flight(InFlightCalls::default());
        let engine = open(&store, &service, fresh).await;
        assert_eq!(
            (state(&engine, plain).await, state(&engine, polled).await),
            (State::Running, State::Running)
        );
        pause(6).await;
        assert!(service.polls() > 1, "it is polled again");
        let tokens = service.tokens();
        assert_eq!(tokens.len(), 2, "nothing was submitted again");
        assert!(complete(&engine, plain, &tokens[0]).await.unwrap());
        assert!(complete(&engine, polled, &tokens[1]).await.unwrap());
        let next = submit(&engine, "a", "next").await;
        pause(1).await;
        assert_eq!(service.tokens().len(), 3, "no slot is lost: {next}");
    }
}

/// A drain does not wait for what is awaited.
#[tokio::test(start_paused = true)]
async fn a_drain_does_not_wait_for_what_is_awaited() {
    let (store, service) = (memory(), Arc::default());
    let engine = open(&store, &service, options()).await;
    submit(&engine, "a", "plain").await;
    pause(1).await;
    let started = tokio::time::Instant::now();
    engine.drain().await;
    assert!(started.elapsed() < Duration::from_secs(5));
}
