//! A job that its provider reports before its submit has ended, and the submit that fails then: the
//! job is known, so it is awaited, and no other provider gets it. By workers here, and by remote
//! ones, which learn which provider was granted and say whom a failure counts against.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::upstream::{JobNote, Outcome};
use tidegate::{ClaimId, Engine, ErrorKind, OperationId, RemoteClaim, Submission, WorkReport, WorkRequest};
use tidegate_core::alternatives::{Alternative, Alternatives, UnknownSubmit};
use tidegate_core::breaker::CooldownLadder;
use tidegate_core::fact::LimitShape;
use tidegate_core::{Blame, Charge, State, Verdict};
use tidegate_store::attempt::AttemptState;
use tidegate_upstream::{AcceptedJob, Call, CallFuture, CallRequirements, FieldRefusal, Upstream};

use crate::scripted_upstream::{LONG, fault, memory};

const HOUR: Duration = Duration::from_secs(3_600);
/// How long a submit takes, and a job longer than that.
const SUBMIT: Duration = Duration::from_secs(60);
const PROVIDERS: [&str; 2] = ["acme", "globex"];

/// Two providers. A submit fails after a minute, as its payload says; the job is done when it is
/// polled for the second time.
#[derive(Default)]
struct Providers {
    submits: Mutex<Vec<String>>,
    polls: Mutex<Vec<String>>,
}

fn verdict(payload: &str) -> Verdict {
    match payload {
        "\"retry\"" => Verdict::Retry { after: None, fault: fault("it is full") },
        "\"rejected\"" => Verdict::Rejected(fault("it does not want it")),
        "\"throttled\"" => Verdict::Throttled { after: None, scope: None, fault: fault("slow down") },
        _ => Verdict::Unknown(fault("no response")),
    }
}

impl Upstream for Providers {
    fn check(&self, _: &[u8], _: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let of = |name: &str| {
            let charges = ["health", "slots"].map(|limit| Charge::tokens(format!("{name}/{limit}"), 1));
            Alternative::new(name, charges.into())
        };
        let list = PROVIDERS.map(of).into();
        let on_unknown = UnknownSubmit::Failover;
        Ok(CallRequirements::default().with_alternatives(Alternatives {
            list,
            on_unknown,
            ..Default::default()
        }))
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            self.submits.lock().unwrap().push(call.alternative.unwrap().to_owned());
            tokio::time::sleep(SUBMIT).await;
            Outcome::unanswered(verdict(std::str::from_utf8(call.payload).unwrap()))
        })
    }

    fn poll<'a>(&'a self, _: Call<'a>, job: AcceptedJob<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            let mut polls = self.polls.lock().unwrap();
            polls.push(job.external_id.unwrap_or_default().to_owned());
            let verdict = match polls.len() {
                1 => Verdict::Accepted { poll_after: Some(SUBMIT * 2), timeout: HOUR },
                _ => Verdict::Done,
            };
            Outcome::unanswered(verdict)
        })
    }
}

async fn open(providers: &Arc<Providers>, is_remote: bool) -> Engine {
    let limits = PROVIDERS.iter().flat_map(|name| {
        let ladder = CooldownLadder([SUBMIT; 4]);
        let (breaker, slots) = (LimitShape::Breaker { ladder }, LimitShape::Cap { at_once: 9 });
        [(format!("{name}/health").into(), breaker), (format!("{name}/slots").into(), slots)]
    });
    let builder = Engine::builder(memory()).limits(limits.collect::<Vec<(Arc<str>, _)>>());
    let executor: Arc<dyn Upstream> = Arc::clone(providers) as _;
    let builder = if is_remote { builder.remote("job", executor) } else { builder.executor("job", executor) };
    builder.open().await.unwrap()
}

async fn submit(engine: &Engine, payload: &str) -> OperationId {
    engine.submit(Submission::new("job", "g", format!("{payload:?}"))).await.unwrap().id
}

/// Reports the job of the current attempt, as a webhook does.
async fn report_job(engine: &Engine, id: OperationId) {
    let current = engine.current_attempt(id).await.unwrap().unwrap();
    assert_eq!((current.alternative.as_deref(), current.awaiting_since), (Some("acme"), None));
    let note = JobNote { external_id: Some("job-1".into()), ..JobNote::default() };
    assert!(engine.poll_attempt(id, current.fence, Some(note), HOUR).await.unwrap());
}

/// DSP-11, DSP-18: whatever the response to a submit says after its job was reported, the job is
/// awaited: no other provider gets it, and its slot is held until it ends.
#[tokio::test(start_paused = true)]
async fn dsp_11_dsp_18_a_submit_that_fails_after_its_job_was_reported_is_awaited() {
    for payload in ["retry", "rejected", "throttled", "unknown"] {
        let providers = Arc::new(Providers::default());
        let engine = open(&providers, false).await;
        let id = submit(&engine, payload).await;
        while providers.submits.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        report_job(&engine, id).await;
        tokio::time::sleep(SUBMIT + Duration::from_secs(1)).await;
        assert_eq!(engine.get(id).await.unwrap().state, State::Running, "{payload}");
        assert_eq!(engine.limit("acme/slots").await.unwrap().in_flight, 1, "{payload}");
        assert_eq!(engine.wait(id, LONG).await.unwrap().state, State::Succeeded, "{payload}");
        assert_eq!(*providers.submits.lock().unwrap(), ["acme"], "{payload}");
        assert_eq!(*providers.polls.lock().unwrap(), ["job-1", "job-1"], "{payload}");
        let attempts = engine.attempts(id).await.unwrap();
        assert_eq!((attempts.len(), attempts[0].state), (1, AttemptState::Succeeded), "{payload}");
        assert_eq!(engine.limit("acme/slots").await.unwrap().in_flight, 0, "{payload}");
    }
}

async fn take(engine: &Engine) -> RemoteClaim {
    let request = WorkRequest { kinds: vec!["job".into()], max: 1, lease: Duration::from_secs(30) };
    let mut ready = engine.ready_kinds();
    ready.wait_for(|kinds| !kinds.is_empty()).await.unwrap();
    engine.take_work(vec![request]).await.unwrap().remove(0).remove(0)
}

async fn settle(engine: &Engine, claim: ClaimId, outcome: Outcome) -> tidegate::Result<(bool, State)> {
    let receipt = engine.settle_work(vec![WorkReport { claim, outcome }]).await.unwrap().remove(0)?;
    Ok((receipt.applied, receipt.state))
}

/// DSP-17, DSP-11: a remote worker learns which provider was granted and what it charges; a submit
/// that fails after its job was reported changes nothing for it either, and the job is handed out
/// with its id.
#[tokio::test(start_paused = true)]
async fn dsp_17_dsp_11_a_remote_submit_that_fails_after_its_job_was_reported_is_awaited() {
    let engine = open(&Arc::default(), true).await;
    let id = submit(&engine, "retry").await;
    let claim = take(&engine).await;
    assert_eq!((claim.alternative.as_deref(), claim.attempt), (Some("acme"), 1));
    assert_eq!(claim.limits.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["acme/health", "acme/slots"]);
    report_job(&engine, id).await;
    let late = settle(&engine, claim.claim, Outcome::unanswered(verdict("\"retry\""))).await;
    assert_eq!(late.unwrap(), (false, State::Running));
    let poll = take(&engine).await;
    let job = poll.job.unwrap();
    assert_eq!((poll.alternative.as_deref(), job.external_id.as_deref()), (Some("acme"), Some("job-1")));
    let done = settle(&engine, poll.claim, Outcome::unanswered(Verdict::Done)).await;
    assert_eq!(done.unwrap(), (true, State::Succeeded));
    assert_eq!(engine.limit("acme/slots").await.unwrap().in_flight, 0);
}

/// DSP-17, DSP-22: a failure that a remote worker reports counts against the limit that it blames,
/// or against none, and the next provider is granted; what the operation does not charge cannot be
/// blamed. What it notes of a failed attempt is kept.
#[tokio::test(start_paused = true)]
async fn dsp_17_dsp_22_a_remote_worker_says_whom_a_failure_counts_against() {
    let engine = open(&Arc::default(), true).await;
    let failures = async |limit: &str| engine.limit(limit).await.unwrap().failures;
    let id = submit(&engine, "retry").await;
    let claim = take(&engine).await.claim;
    let failed = |blame| Outcome::unanswered(verdict("\"retry\"")).with_blame(blame);
    let refused = settle(&engine, claim, failed(Blame::Limit("globex/health".into()))).await.unwrap_err();
    assert_eq!((refused.kind, refused.field.as_deref()), (ErrorKind::UnknownLimit, Some("blame")));
    let note = JobNote { external_id: None, memo: "full".into(), cost: Some(3) };
    let outcome = failed(Blame::Limit("acme/health".into())).with_job(note);
    assert_eq!(settle(&engine, claim, outcome).await.unwrap(), (true, State::Queued));
    assert_eq!((failures("acme/health").await, failures("globex/health").await), (1, 0));
    let next = take(&engine).await;
    assert_eq!(next.alternative.as_deref(), Some("globex"));
    settle(&engine, next.claim, failed(Blame::NoOne)).await.unwrap();
    assert_eq!(failures("globex/health").await, 0);
    assert_eq!(engine.get(id).await.unwrap().state, State::Failed, "both have failed");
    let attempts = engine.attempts(id).await.unwrap();
    assert_eq!((&attempts[0].memo[..], attempts[0].cost, attempts.len()), (&b"full"[..], Some(3), 2));
}
