//! Lets remote workers take, extend and settle claims. The owner's take decides as for its own
//! workers, so order, limits and fairness hold; only kinds that are left to remote workers are
//! handed out, and only their claims are extended or settled this way.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::model::ActiveOperation;
use tidegate_core::{Blame, LimitName, OperationId, State, Time, Verdict, bounds};
use tidegate_store::Clock;
use tidegate_upstream::JobNote;
use tokio::sync::{oneshot, watch};

use super::Engine;
use crate::carry::Report;
use crate::error::{Error, ErrorKind, Result};
use crate::owner::{Command, Owner, Taker};
use crate::work::{ClaimId, LeaseExtension, ReadyKinds, RemoteClaim, WorkReceipt, WorkReport, WorkRequest};

impl Engine {
    /// Claims operations that may run now, for each request in turn, and returns them once their
    /// claims are durable. It does not wait for work; see [`Engine::ready_kinds`]. When the caller
    /// is gone by then, its claims are returned to the queue.
    ///
    /// # Errors
    /// When the engine is stopping, or the store cannot be written.
    pub async fn take_work(&self, requests: Vec<WorkRequest>) -> Result<Vec<Vec<RemoteClaim>>> {
        let (reply, answer) = oneshot::channel();
        let ask = Command::Update(Box::new(move |owner: &mut Owner| {
            let now = owner.clock.now();
            for kind in requests.iter().flat_map(|request| &request.kinds) {
                owner.asked.insert(Arc::clone(kind), now);
            }
            owner.building.takers.push(Taker::new(requests, reply));
        }));
        self.commands.send(ask).await.map_err(|_| self.stop_reason())?;
        answer.await.map_err(|_| self.stop_reason())
    }

    /// Records how long ago remote workers asked for kinds without a take, for
    /// [`why`](Engine::why).
    ///
    /// # Errors
    /// When the engine is stopping.
    pub async fn record_demand(&self, asked: Vec<(Arc<str>, Duration)>) -> Result<()> {
        let record = Command::Update(Box::new(move |owner: &mut Owner| {
            let now = owner.clock.now();
            for (kind, ago) in asked {
                let at = now.before(ago);
                let last = owner.asked.entry(kind).or_insert(at);
                *last = at.max(*last);
            }
        }));
        self.commands.send(record).await.map_err(|_| self.stop_reason())
    }

    /// The remote kinds of which an operation may be claimed now. A take may still find nothing,
    /// because a limit or another caller was faster.
    #[must_use]
    pub fn ready_kinds(&self) -> watch::Receiver<ReadyKinds> {
        self.ready_kinds.clone()
    }

    /// Extends claims of remote workers by `lease` from now on.
    ///
    /// # Errors
    /// When the engine is stopping, or the store cannot be written.
    pub async fn extend_work(&self, claims: Vec<(ClaimId, Duration)>) -> Result<Vec<LeaseExtension>> {
        self.update_owner(move |owner| {
            claims.into_iter().map(|(claim, lease)| extend(owner, claim, lease)).collect()
        })
        .await
    }

    /// Settles claims of remote workers, each by its fence: one that has ended, or that another
    /// worker has by now, is left as it is, and the receipt says so.
    ///
    /// # Errors
    /// Of all, when the engine is stopping or the store cannot be written; of one, when there is no
    /// such operation, or when the report cannot be kept. Then its claim stays as it is.
    pub async fn settle_work(&self, settlements: Vec<WorkReport>) -> Result<Vec<Result<WorkReceipt>>> {
        let ids: Vec<OperationId> = settlements.iter().map(|settlement| settlement.claim.id).collect();
        let settled: Vec<Result<Option<State>>> = self
            .update_owner(move |owner| settlements.into_iter().map(|one| settle(owner, one)).collect())
            .await?;
        let mut receipts = Vec::with_capacity(ids.len());
        for (id, state) in ids.into_iter().zip(settled) {
            receipts.push(match state {
                Ok(Some(state)) => Ok(WorkReceipt { applied: true, state }),
                Ok(None) => self.get(id).await.map(|view| WorkReceipt { applied: false, state: view.state }),
                Err(error) => Err(error),
            });
        }
        Ok(receipts)
    }
}

/// Whether a remote worker has the claim, and it is of this very operation.
fn is_current(owner: &Owner, ClaimId { id, fence }: ClaimId) -> bool {
    let status = owner.model.claim_status(id.seq(), fence);
    let is_of = |accepted_at: Time| owner.id_of(id.seq(), accepted_at) == id;
    status.is_some_and(|status| status.is_remote && status.worker == Some(fence) && is_of(status.accepted_at))
}

fn extend(owner: &mut Owner, claim: ClaimId, lease: Duration) -> LeaseExtension {
    let (seq, fence) = (claim.id.seq(), claim.fence);
    let until = owner.clock.now().after(lease);
    let status = owner.model.claim_status(seq, fence).filter(|_| is_current(owner, claim));
    let held = status.is_some() && owner.model.renew(seq, fence, until, &mut owner.building.facts);
    LeaseExtension {
        until: held.then_some(until),
        cancel_requested: status.is_some_and(|status| status.cancel_requested),
    }
}

/// Settles a claim and returns the state of its operation; `None` when it is not current.
fn settle(owner: &mut Owner, settlement: WorkReport) -> Result<Option<State>> {
    let WorkReport { claim, mut outcome } = settlement;
    let (seq, fence) = (claim.id.seq(), claim.fence);
    let active = owner.model.active(seq).filter(|_| is_current(owner, claim));
    let Some(active) = active else {
        metrics::counter!("tidegate_work_stale_total").increment(1);
        return Ok(None);
    };
    if let Some(job) = &outcome.job {
        check_job(job)?;
    }
    outcome.hints.retain_mut(|hint| match limit_name(owner, &active, &hint.limit) {
        Some(name) => {
            hint.limit = name;
            true
        }
        // It says nothing about this operation.
        None => false,
    });
    if let Verdict::Throttled { scope: Some(limit), .. } = &mut outcome.verdict {
        let name = limit_name(owner, &active, limit);
        *limit = name.ok_or_else(|| unknown_limit("limit", limit))?;
    }
    if let Blame::Limit(limit) = &mut outcome.blame {
        let name = limit_name(owner, &active, limit);
        *limit = name.ok_or_else(|| unknown_limit("blame", limit))?;
    }
    let (result, _) = crate::carry::describe(&outcome.verdict);
    let kind = active.kind.to_string();
    metrics::counter!("tidegate_work_settled_total", "kind" => kind, "result" => result).increment(1);
    let report = Report {
        accepted_at: Some(active.at),
        hints: outcome.hints,
        body: outcome.body,
        job: outcome.job,
        blame: outcome.blame,
        ..Report::without_call(seq, fence, outcome.verdict)
    };
    if !owner.settle(report.into()) {
        return Ok(None);
    }
    let ended = || owner.building.ended.iter().rev().find(|ended| ended.seq == seq);
    let state = owner.model.active(seq).map(|active| active.state);
    Ok(state.or_else(|| ended().map(|ended| ended.state.into())))
}

/// Refuses to keep of a job what is too long: without it no one knows how the job ends.
fn check_job(job: &JobNote) -> Result<()> {
    let id = job.external_id.as_ref().map_or(0, |id| id.len());
    for (field, len, most) in
        [("memo", job.memo.len(), bounds::MEMO_LEN_MAX), ("external_id", id, bounds::EXTERNAL_ID_LEN_MAX)]
    {
        if len > most {
            let message = format!("The field {field:?} is {len} bytes long; the most is {most}.");
            return Err(Error::new(ErrorKind::TooLarge, message).field(field));
        }
    }
    Ok(())
}

fn unknown_limit(field: &str, name: &str) -> Error {
    let message = format!("The operation charges no limit called {name:?}.");
    Error::new(ErrorKind::UnknownLimit, message).field(field)
}

/// The full name of a limit that a worker may name as `cost` does, within its kind; `None` when
/// the operation charges no limit of that kind or upstream.
fn limit_name(owner: &Owner, active: &ActiveOperation, name: &Arc<str>) -> Option<Arc<str>> {
    let own: Arc<str> = LimitName::new(&active.kind, name).into();
    if owner.model.limit(&own, owner.clock.now()).is_some() {
        return Some(own);
    }
    let upstream = LimitName::parse(name).upstream();
    let mut charged = owner.model.charged_limits(active.seq);
    charged.any(|limit| LimitName::parse(limit).upstream() == upstream).then(|| Arc::clone(name))
}
