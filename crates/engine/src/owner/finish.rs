//! Finishes a durable batch: replies to callers, sends calls, notifies listeners.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_core::fact::SettleEffect;
use tidegate_core::model::{EndedOperation, OperationIdentity};
use tidegate_core::{EndState, Fact, OperationId, Seq, State, Time, Verdict};
use tidegate_store::Clock;
use tidegate_store::log::Lsn;

use super::batch::SealedBatch;
use super::spare_lists::SpareLists;
use super::{Owner, Reply};
use crate::envelope::Envelope;
use crate::events::{Change, OperationLabels};

/// The most finished batches whose lists are kept: one is collected, others are written.
const SPARES_MAX: usize = 4;

impl Owner {
    pub(super) fn finish(&mut self, mut sealed: SealedBatch, lsn: Lsn) {
        if let Some(parts) = sealed.snapshot.take() {
            self.store_snapshot(lsn, parts);
        }
        self.throttled += self.count(&sealed);
        // There are any number of limits that calls opened.
        let now = self.clock.now();
        sealed.closed.retain(|name| self.model.limit(name, now).is_some_and(|limit| !limit.opened));
        self.closings.count(std::mem::take(&mut sealed.closed));
        self.ahead.became_durable(&sealed.operations);
        for operation in std::mem::take(&mut sealed.operations) {
            self.payloads.keep(operation);
        }
        self.record_journeys(&sealed);
        self.release(&mut sealed.claims);
        self.events.publish(self.clock.now(), std::mem::take(&mut sealed.changes));
        self.answer(sealed);
    }

    /// Replies for a durable batch.
    pub(super) fn answer(&mut self, mut sealed: SealedBatch) {
        if !sealed.ended.is_empty() || sealed.spends {
            self.ended.notify_one();
        }
        for ended in &sealed.ended {
            self.payloads.forget(ended.seq);
        }
        for seq in sealed.ended.iter().map(|ended| ended.seq).chain(sealed.unknown.drain(..)) {
            for waiter in self.waiters.remove(&seq).into_iter().flatten() {
                // The waiter may have given up.
                let _ = waiter.send(());
            }
        }
        for taker in sealed.takers.drain(..) {
            self.hand_out(taker);
        }
        for reply in sealed.replies.drain(..) {
            match reply {
                Reply::Accept(reply, answers) => {
                    // The caller may be gone; what was accepted stays accepted.
                    let _ = reply.send(answers);
                }
                Reply::Other(answer) => answer(Ok(())),
            }
        }
        if self.spare.len() < SPARES_MAX {
            self.spare.push(SpareLists::of(sealed));
        }
    }

    fn store_snapshot(&self, lsn: Lsn, parts: Vec<bytes::Bytes>) {
        let (store, ownership) = (Arc::clone(&self.store), self.ownership());
        let under_way = Arc::clone(&self.snapshot_under_way);
        self.tasks.spawn(async move {
            let bytes: usize = parts.iter().map(bytes::Bytes::len).sum();
            match store.snapshot(ownership, lsn, parts).await {
                Ok(()) => tracing::debug!(lsn = lsn.0, bytes, "snapshot stored"),
                Err(error) => tracing::warn!(%error, "a snapshot was not stored; the log stays as it is"),
            }
            under_way.store(false, Ordering::Release);
        });
    }

    /// The changes of a batch about to be written, if anyone listens.
    pub(super) fn changes(&self) -> Vec<Change> {
        if self.events.has_listeners(self.clock.now()) {
            let ended = self.building.ended.iter().map(|ended| (ended.seq, ended)).collect();
            return self.building.facts.iter().filter_map(|fact| self.change(fact, &ended)).collect();
        }
        self.events.skip(self.building.facts.len());
        Vec::new()
    }

    /// The change that a fact is for listeners. `ended` has the operations that end in this batch:
    /// the model knows them no more.
    fn change(&self, fact: &Fact, ended: &HashMap<Seq, &EndedOperation>) -> Option<Change> {
        let operation = |seq: Seq, state: Option<State>| {
            let active = self.model.active(seq);
            let state = state.or_else(|| active.as_ref().map(|active| active.state))?;
            let kept = self.payloads.get(seq).or_else(|| self.building.operation(seq));
            let known = active.map(|a| (a.at, a.group, a.kind, a.attempt)).or_else(|| {
                let ended = ended.get(&seq)?;
                let OperationIdentity { accepted_at, group, kind } = ended.identity.clone()?;
                Some((accepted_at, group, kind, ended.attempt))
            });
            let labels = kept.map(|kept| {
                let Envelope { upstream, user, .. } = Envelope::decode(&kept.envelope);
                OperationLabels { dedupe_key: kept.key.clone(), upstream, user }
            });
            let (at, group, kind, attempt) = known?;
            // It may have been claimed in the batch that accepted it.
            let attempt = if state == State::Queued { 0 } else { attempt };
            let id = OperationId::new(at, self.options.partition, seq);
            Some(Change::Operation { id, group, kind, state, attempt, labels })
        };
        match fact {
            Fact::Accepted(accepted) => operation(accepted.seq, Some(State::Queued)),
            Fact::Claimed { seq, .. } => operation(*seq, Some(State::Running)),
            Fact::Ended { seq, state, .. } => operation(*seq, Some((*state).into())),
            Fact::Settled(settled) => match &settled.effect {
                SettleEffect::Ended { state, .. } => operation(settled.seq, Some((*state).into())),
                SettleEffect::Held => operation(settled.seq, Some(State::Unknown)),
                // For a user, nothing has changed: the claim awaits its completion.
                _ if self.model.claim_status(settled.seq, settled.fence).is_some() => None,
                _ => operation(settled.seq, Some(State::Waiting)),
            },
            Fact::Paused { group, .. } => Some(Change::Group { group: Arc::clone(group), now: "paused" }),
            Fact::Resumed { group, .. } => Some(Change::Group { group: Arc::clone(group), now: "resumed" }),
            Fact::LimitSet { limit, .. } => Some(Change::Limit { limit: Arc::clone(limit), now: "set" }),
            Fact::Thawed { limit, .. } => Some(Change::Limit { limit: Arc::clone(limit), now: "opened" }),
            _ => None,
        }
    }

    /// Returns the id of an operation that has not ended.
    pub(crate) fn id_of(&self, seq: Seq, at: Time) -> OperationId {
        OperationId::new(at, self.options.partition, seq)
    }

    /// Counts what a batch settled; returns the attempts that an upstream throttled.
    fn count(&mut self, sealed: &SealedBatch) -> u64 {
        metrics::counter!("tidegate_operations_accepted_total").increment(sealed.operations.len() as u64);
        metrics::histogram!("tidegate_batch_calls").record(sealed.reports.len() as f64);
        let mut throttled = 0;
        for report in &sealed.reports {
            self.series.count(&report.figures, &report.verdict);
            throttled += u64::from(matches!(report.verdict, Verdict::Throttled { .. }));
        }
        for state in [EndState::Succeeded, EndState::Failed, EndState::Canceled] {
            let count = sealed.ended.iter().filter(|ended| ended.state == state).count();
            if count > 0 {
                let state = State::from(state).as_str();
                metrics::counter!("tidegate_operations_ended_total", "state" => state)
                    .increment(count as u64);
            }
        }
        throttled
    }
}
