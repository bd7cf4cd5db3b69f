//! One attempt: the executor sends the payload and reports the outcome to the owner. A cancel or
//! the end of a drain reaches it through its token.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::fingerprint::hex;
use tidegate_core::id::Partition;
use tidegate_core::model::Claim;
use tidegate_core::{Blame, Fault, FaultClass, Hint, OperationId, Time, Verdict, bounds};
use tidegate_store::Clock;
use tidegate_store::attempt::StoredAttempt;
use tidegate_store::costs::Cost;
use tidegate_store::log::StoredOperation;
use tidegate_upstream::{AcceptedJob, Call, JobNote, Outcome};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::calls::StopSignal;
use crate::clock::EngineClock;
use crate::completion::CompletionKey;
use crate::engine::Executors;
use crate::envelope::Envelope;
use crate::figures::AttemptFigures;
use crate::prepare::fingerprint;
use crate::spent::costs;

/// A report on its way from its call until what it settles is durable: large, and moved often.
pub(crate) type BoxedReport = Box<Report>;

/// A worker's report.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub seq: tidegate_core::Seq,
    pub fence: tidegate_core::Fence,
    /// When the operation that was sent was accepted; `None` when nothing was sent.
    pub accepted_at: Option<Time>,
    /// When its call was sent.
    pub sent_at: Option<Time>,
    pub verdict: Verdict,
    pub hints: Vec<Hint>,
    pub body: bytes::Bytes,
    /// What the call cost, if the executor reported it.
    pub spent: Vec<Cost>,
    /// What to keep of a job that was accepted.
    pub job: Option<JobNote>,
    /// Which breakers a failure counts against.
    pub blame: Blame,
    /// What is measured of it.
    pub figures: AttemptFigures,
}

impl Report {
    /// Creates the report of a claim that was not executed, or whose call is lost track of.
    pub(crate) fn without_call(
        seq: tidegate_core::Seq,
        fence: tidegate_core::Fence,
        verdict: Verdict,
    ) -> Self {
        let (hints, body, spent) = (Vec::new(), bytes::Bytes::new(), Vec::new());
        Self {
            seq,
            fence,
            accepted_at: None,
            sent_at: None,
            verdict,
            hints,
            body,
            spent,
            job: None,
            blame: Blame::ByClass,
            figures: AttemptFigures::default(),
        }
    }

    /// Creates the report of an executor that panicked: the effect of its call is unknown.
    pub(crate) fn panicked(seq: tidegate_core::Seq, fence: tidegate_core::Fence) -> Self {
        let fault = Fault::new(FaultClass::Transient, "the executor panicked during the call");
        Self::without_call(seq, fence, Verdict::Lost(fault))
    }
}

/// What every attempt needs.
pub(crate) struct Carrier {
    pub executors: Arc<Executors>,
    pub partition: Partition,
    pub clock: EngineClock,
    /// Canceled at the end of a drain: calls in flight are abandoned.
    pub give_up: CancellationToken,
    pub completion_key: Option<CompletionKey>,
}

/// A durable claim, and what its call needs.
#[derive(Clone, Debug)]
pub(crate) struct ReadyCall {
    pub claim: Claim,
    pub operation: Arc<StoredOperation>,
    /// The attempt to poll.
    pub attempt: Option<Box<StoredAttempt>>,
}

impl Carrier {
    /// Makes one attempt, or polls an earlier one.
    #[expect(clippy::manual_async_fn, reason = "an async function would keep its arguments twice")]
    pub(crate) fn carry(self: Arc<Self>, ready: ReadyCall, stop: StopSignal) -> impl Future<Output = Report> {
        async move {
            let started = Instant::now();
            let outcome = self.send(&ready, self.clock.at(started), &stop).await;
            self.report(&ready, outcome, started)
        }
    }

    fn report(&self, ready: &ReadyCall, mut outcome: Outcome, started: Instant) -> Report {
        bound_job(&mut outcome);
        let ReadyCall { claim, operation, .. } = ready;
        let took = started.elapsed();
        log_attempt(self.id_of(operation), claim, operation, &outcome, took);
        let Outcome { verdict, hints, body, spending, job, blame, status, .. } = outcome;
        let figures = AttemptFigures::of_call(took, status);
        let spent = match spending.is_empty() {
            true => Vec::new(),
            false => costs(spending, self.id_of(operation), claim.fence, self.clock.now()),
        };
        let Claim { seq, fence, .. } = *claim;
        let (accepted_at, sent_at) = (Some(claim.accepted_at), None);
        Report { seq, fence, accepted_at, sent_at, verdict, hints, body, spent, job, blame, figures }
    }

    const fn id_of(&self, operation: &StoredOperation) -> OperationId {
        OperationId::new(operation.at, self.partition, operation.seq)
    }

    async fn send(&self, ready: &ReadyCall, now: Time, stop: &StopSignal) -> Outcome {
        let ReadyCall { claim, operation, attempt } = ready;
        let Some(executor) = self.executors.get(&claim.kind) else {
            let fault = Fault::new(
                FaultClass::Transient,
                format!("no executor handles kind {:?} on this node", claim.kind),
            );
            let verdict = match claim.poll {
                true => Verdict::Unknown(fault),
                false => Verdict::Retry { after: None, fault },
            };
            return Outcome::unanswered(verdict);
        };
        if stop.is_stopped() && !claim.poll {
            return Outcome::unanswered(Verdict::Canceled { may_have_happened: false });
        }
        if self.give_up.is_cancelled() {
            return Outcome::unanswered(Verdict::Returned);
        }
        let id = self.id_of(operation);
        let token = self.completion_key.as_ref().map(|key| key.token(id, claim.attempt_fence));
        let id = id.to_string();
        let call = Call::new(&id, &operation.payload, now)
            .with_attempt(claim.attempt)
            .with_fence(claim.attempt_fence)
            .with_reconcile_first(claim.reconcile_first)
            .with_doubt(claim.in_doubt)
            .with_on_unknown(claim.on_unknown)
            .with_deadline(claim.deadline)
            .with_completion_token(token.as_deref())
            .with_alternative(claim.alternative.as_deref());
        if claim.poll {
            let attempt = attempt.as_deref();
            let job = AcceptedJob {
                since: attempt.map_or(call.now, |attempt| attempt.at),
                external_id: attempt.and_then(|attempt| attempt.external_id.as_deref()),
                memo: attempt.map_or(&[][..], |attempt| &attempt.memo[..]),
                cancel_requested: claim.cancel_requested,
            };
            // A poll that is stopped leaves the job as it is; the next one passes the cancel on.
            return tokio::select! {
                biased;
                outcome = executor.poll(call, job) => outcome,
                () = stop.stopped() => Outcome::unanswered(Verdict::Returned),
                () = self.give_up.cancelled() => Outcome::unanswered(Verdict::Returned),
            };
        }
        // A response that is there counts, whatever else has happened meanwhile.
        tokio::select! {
            biased;
            outcome = executor.carry(call) => outcome,
            () = stop.stopped(), if !executor.finishes_canceled_calls() => {
                Outcome::unanswered(Verdict::Canceled { may_have_happened: true })
            }
            () = self.give_up.cancelled() => {
                let fault = Fault::new(FaultClass::Transient, "the process stopped before the response came");
                Outcome::unanswered(Verdict::Lost(fault))
            }
        }
    }
}

/// Bounds what is kept of an accepted job. A memo that is too long cannot be kept, and without it
/// no one knows how the job ends.
fn bound_job(outcome: &mut Outcome) {
    if let Some(job) = &mut outcome.job {
        if let Some(id) = job.external_id.as_ref().filter(|id| id.len() > bounds::EXTERNAL_ID_LEN_MAX) {
            job.external_id = Some(id[..id.floor_char_boundary(bounds::EXTERNAL_ID_LEN_MAX)].into());
        }
        if job.memo.len() > bounds::MEMO_LEN_MAX {
            job.memo.clear();
            let fault = Fault::new(FaultClass::Transient, "what the executor has to remember is too long");
            outcome.verdict = Verdict::Unknown(fault);
        }
    }
}

/// Logs one line for each attempt, with its trace ids; never a body, never a secret (OPS-22).
fn log_attempt(
    id: OperationId,
    claim: &Claim,
    operation: &StoredOperation,
    outcome: &Outcome,
    took: Duration,
) {
    if !tracing::enabled!(target: "tidegate::attempt", tracing::Level::INFO) {
        return;
    }
    let envelope = Envelope::decode(&operation.envelope);
    let hash = fingerprint(&operation.group, &operation.kind, &operation.payload).to_be_bytes();
    let (result, fault) = describe(&outcome.verdict);
    tracing::info!(
        target: "tidegate::attempt",
        request_id = envelope.request_id.as_deref(),
        deployment_id = envelope.deployment_id.as_deref(),
        operation_id = %id,
        group = %operation.group,
        kind = %operation.kind,
        key = operation.key.as_deref(),
        fingerprint = %hex(&hash),
        attempt = claim.attempt,
        duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        status = outcome.status,
        fault = fault.map(tracing::field::display),
        result,
        "attempt"
    );
}

/// The stable name of a verdict, and its fault.
pub(crate) const fn describe(verdict: &Verdict) -> (&'static str, Option<&Fault>) {
    match verdict {
        Verdict::Done => ("done", None),
        Verdict::Accepted { .. } => ("accepted", None),
        Verdict::Throttled { fault, .. } => ("throttled", Some(fault)),
        Verdict::Retry { fault, .. } => ("retry", Some(fault)),
        Verdict::Rejected(fault) => ("rejected", Some(fault)),
        Verdict::Unknown(fault) | Verdict::Lost(fault) | Verdict::PollFailed { fault, .. } => {
            ("unknown", Some(fault))
        }
        Verdict::Returned => ("given_back", None),
        Verdict::Unavailable(fault) => ("given_back", Some(fault)),
        Verdict::Canceled { .. } => ("canceled", None),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::{Fence, OnUnknown, Seq};

    use super::*;

    /// A task is moved several times until it runs, so it must not keep anything twice.
    #[test]
    fn the_task_of_a_call_is_small() {
        let (seq, fence, at) = (Seq(1), Fence(1), Time::ZERO);
        let (kind, group): (Arc<str>, Arc<str>) = ("http".into(), "g".into());
        let operation = StoredOperation {
            seq,
            at,
            group: Arc::clone(&group),
            kind: Arc::clone(&kind),
            key: None,
            envelope: bytes::Bytes::new(),
            payload: bytes::Bytes::new(),
        };
        let claim = Claim {
            seq,
            fence,
            attempt_fence: fence,
            accepted_at: at,
            until: at,
            kind,
            group,
            attempt: 1,
            deadline: None,
            reconcile_first: false,
            in_doubt: false,
            on_unknown: OnUnknown::Ask,
            poll: false,
            cancel_requested: false,
            alternative: None,
        };
        let carrier = Carrier {
            executors: Arc::default(),
            partition: 0,
            clock: EngineClock::starting_at(at),
            give_up: CancellationToken::new(),
            completion_key: None,
        };
        let ready = ReadyCall { claim, operation: Arc::new(operation), attempt: None };
        let task = Arc::new(carrier).carry(ready, StopSignal::default());
        assert!(size_of_val(&task) <= 640, "{} bytes", size_of_val(&task));
    }
}
