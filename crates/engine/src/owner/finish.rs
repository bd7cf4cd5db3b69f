//! What happens once a batch is durable: callers are answered, calls leave, those who listen hear of it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::FutureExt;
use tidegate_core::fact::After;
use tidegate_core::model::Claim;
use tidegate_core::{Fact, OperationId, Seq, State, Time, Verdict};
use tidegate_store::Clock;
use tidegate_store::log::Lsn;
use tokio_util::sync::CancellationToken;

use super::batch::Sealed;
use super::{Owner, Reply, Running};
use crate::carry::Report;
use crate::events::Change;

/// How long a claim may take to become durable before its call is held back.
const LATE: Duration = Duration::from_millis(60);

impl Owner {
    pub(super) fn finish(&mut self, mut sealed: Sealed, lsn: Lsn) {
        if let Some(parts) = sealed.snapshot.take() {
            self.store_snapshot(lsn, parts);
        }
        self.leaving -= sealed.claims.len();
        let claims = std::mem::take(&mut sealed.claims);
        if self.is_too_late(&claims) {
            claims.iter().for_each(|claim| self.give_back(claim));
        } else {
            claims.into_iter().for_each(|claim| self.dispatch(claim));
        }
        self.events.publish(self.clock.now(), std::mem::take(&mut sealed.changes));
        count(&sealed);
        self.answer(sealed);
    }

    /// Answers a batch that stands.
    pub(super) fn answer(&mut self, sealed: Sealed) {
        if !sealed.ended.is_empty() || sealed.spends {
            self.ended.notify_one();
        }
        for ended in &sealed.ended {
            self.payloads.forget(ended.seq);
            for waiter in self.waiters.remove(&ended.seq).into_iter().flatten() {
                // The waiter may have given up.
                let _ = waiter.send(());
            }
        }
        for reply in sealed.replies {
            match reply {
                Reply::Accept(reply, answers) => {
                    // The caller may be gone; what was accepted stays accepted.
                    let _ = reply.send(answers);
                }
                Reply::Other(answer) => answer(Ok(())),
            }
        }
    }

    /// Whether the disk held the batch up for so long that calls which leave now would arrive together with those
    /// that the limits allow meanwhile. Never twice in a row: a disk that is always slow must not stop everything.
    fn is_too_late(&mut self, claims: &[Claim]) -> bool {
        let claimed = claims.first().map(|claim| claim.until.before(self.options.lease));
        let late = claimed.is_some_and(|at| self.clock.now().since(at) > LATE);
        self.gave_back = late && !self.gave_back;
        self.gave_back
    }

    /// Gives a claim back before anything was sent: it is claimed again at once, at its real time.
    fn give_back(&self, claim: &Claim) {
        // The owner itself receives it.
        let _ = self.report.send(Report::bare(claim.seq, claim.fence, Verdict::GivenBack));
    }

    /// Lets a call leave: its claim is durable.
    fn dispatch(&mut self, claim: Claim) {
        let stop = CancellationToken::new();
        self.running.insert(claim.seq, Running { fence: claim.fence, stop: stop.clone() });
        let (carrier, report) = (self.carrier.clone(), self.report.clone());
        tokio::spawn(async move {
            let (seq, fence) = (claim.seq, claim.fence);
            // A panic in an executor is an attempt whose outcome is not known; the owner must hear of it.
            let attempt = AssertUnwindSafe(carrier.carry(claim, stop)).catch_unwind();
            let done = attempt.await.unwrap_or_else(|_| crate::carry::Report::panicked(seq, fence));
            // The owner may have stopped.
            let _ = report.send(done);
        });
    }

    fn store_snapshot(&self, lsn: Lsn, parts: Vec<bytes::Bytes>) {
        let (store, ownership) = (Arc::clone(&self.store), self.ownership());
        let under_way = Arc::clone(&self.snapshot_under_way);
        tokio::spawn(async move {
            let bytes: usize = parts.iter().map(bytes::Bytes::len).sum();
            match store.snapshot(ownership, lsn, parts).await {
                Ok(()) => tracing::debug!(lsn = lsn.0, bytes, "snapshot stored"),
                Err(error) => tracing::warn!(%error, "a snapshot was not stored; the log stays as it is"),
            }
            under_way.store(false, Ordering::Release);
        });
    }

    /// What a batch that is about to be written changes, if anybody wants to know.
    pub(super) fn changes(&self) -> Vec<Change> {
        if self.events.is_heard(self.clock.now()) {
            return self.building.facts.iter().filter_map(|fact| self.change(fact)).collect();
        }
        self.events.skip(self.building.facts.len());
        Vec::new()
    }

    fn change(&self, fact: &Fact) -> Option<Change> {
        let operation = |seq: Seq, state: Option<State>| {
            let active = self.model.active(seq);
            let state = state.or_else(|| active.as_ref().map(|active| active.state))?;
            let known = active.map(|a| (a.at, a.group, a.kind, a.attempt)).or_else(|| {
                let kept = self.payloads.get(seq)?;
                Some((kept.at, kept.group, kept.kind, 1))
            });
            let (at, group, kind, attempt) = known?;
            // It may have been claimed in the batch that accepted it.
            let attempt = if state == State::Queued { 0 } else { attempt };
            let id = OperationId::new(at, self.options.partition, seq);
            Some(Change::Operation { id, group, kind, state, attempt })
        };
        match fact {
            Fact::Accepted(accepted) => operation(accepted.seq, Some(State::Queued)),
            Fact::Claimed { seq, .. } => operation(*seq, Some(State::Running)),
            Fact::Ended { seq, state, .. } => operation(*seq, Some((*state).into())),
            Fact::Settled(settled) => match &settled.after {
                After::Ended { state, .. } => operation(settled.seq, Some((*state).into())),
                After::Held => operation(settled.seq, Some(State::Unknown)),
                _ => operation(settled.seq, Some(State::Waiting)),
            },
            Fact::Paused { group, .. } => Some(Change::Group { group: Arc::clone(group), now: "paused" }),
            Fact::Resumed { group, .. } => Some(Change::Group { group: Arc::clone(group), now: "resumed" }),
            Fact::LimitSet { limit, .. } => Some(Change::Limit { limit: Arc::clone(limit), now: "set" }),
            Fact::Thawed { limit, .. } => Some(Change::Limit { limit: Arc::clone(limit), now: "opened" }),
            _ => None,
        }
    }

    /// The id of an operation that has not ended.
    pub(crate) fn id_of(&self, seq: Seq, at: Time) -> OperationId {
        OperationId::new(at, self.options.partition, seq)
    }
}

fn count(sealed: &Sealed) {
    metrics::counter!("tidegate_operations_accepted_total").increment(sealed.accepted);
    metrics::histogram!("tidegate_batch_calls").record(sealed.reports.len() as f64);
    for report in &sealed.reports {
        let (result, _) = crate::carry::describe(&report.verdict);
        metrics::counter!("tidegate_attempts_total", "result" => result).increment(1);
    }
    for ended in &sealed.ended {
        let state = State::from(ended.state).as_str();
        metrics::counter!("tidegate_operations_ended_total", "state" => state).increment(1);
    }
}
