//! Applies commands to the model, one at a time.

use std::sync::Arc;

use tidegate_core::model::{
    AcceptOutcome, ClaimReport, DraftRefusal, LimitRefusal, SettleOutcome, TakeOutcome, WorkerSlots,
};
use tidegate_core::operation::MICRO;
use tidegate_core::{LimitName, OperationId, State, Time, Verdict};
use tidegate_store::Clock;
use tidegate_store::log::StoredOperation;

use super::{AcceptDecision, Command, Owner, Reply};
use crate::calls::CallEvent;
use crate::carry::{BoxedReport, Report};
use crate::error::{Error, ErrorKind, Result};
use crate::prepare::PreparedSubmission;
use crate::submission::Receipt;

impl Owner {
    pub(super) fn apply(&mut self, command: Command) {
        self.building.commands += 1;
        match command {
            Command::Accept(prepared, reply)
                if self.draining.as_ref().is_some_and(|drain| !drain.accepts) =>
            {
                let stopping = || {
                    Err(Error::new(ErrorKind::Stopping, "the engine is stopping; nothing more is accepted"))
                };
                let answers = prepared.iter().map(|_| stopping()).collect();
                self.building.replies.push(Reply::Accept(reply, answers));
            }
            Command::Accept(prepared, reply) => {
                let now = self.clock.now();
                let answers = prepared.into_iter().map(|one| self.accept(now, one)).collect();
                self.building.replies.push(Reply::Accept(reply, answers));
            }
            Command::Query(look) => {
                let tell = look(self);
                self.building.replies.push(Reply::Other(tell));
            }
            Command::Update(ask) => ask(self),
            Command::Drain(drain) => self.draining = Some(drain),
        }
    }

    fn accept(&mut self, now: Time, prepared: PreparedSubmission) -> Result<AcceptDecision> {
        let PreparedSubmission { draft, key, envelope, payload, deadline_field, from } = prepared;
        let (group, kind) = (draft.group.clone(), draft.kind.clone());
        let accept = self.model.accept(now, draft, &mut self.building.facts);
        if matches!(accept, AcceptOutcome::New(_) | AcceptOutcome::Duplicate(_)) {
            self.building.drained.extend(from);
        }
        match accept {
            AcceptOutcome::New(seq) => {
                let at = self.model.clock();
                let stored = StoredOperation { seq, at, group, kind, key, envelope, payload };
                self.building.bytes += stored.payload.len();
                self.building.operations.push(Arc::new(stored));
                let id = OperationId::new(at, self.options.partition, seq);
                Ok(AcceptDecision::New(Receipt { id, state: State::Queued, deduplicated: false }))
            }
            AcceptOutcome::Duplicate(seq) => Ok(AcceptDecision::Earlier(seq)),
            AcceptOutcome::Conflict(seq) => Ok(AcceptDecision::Conflict(seq)),
            AcceptOutcome::Refused(refusal @ DraftRefusal::TooLate { .. }) => {
                Err(refusal_error(refusal, now).field(deadline_field))
            }
            AcceptOutcome::Refused(refusal) => Err(refusal_error(refusal, now)),
        }
    }

    /// Applies an event of a call.
    pub(super) fn apply_call_event(&mut self, event: CallEvent) {
        match event {
            CallEvent::Reported(report) => {
                self.building.commands += 1;
                let report = self.calls.finish_call(report);
                if self.is_overtaken(&report) {
                    tracing::debug!(seq = report.seq.0, "a submit failed whose job is known already");
                } else {
                    self.settle(report);
                }
            }
            CallEvent::Fetched(fetched) => self.fetched(fetched),
            CallEvent::WorkFetched(out, fetched) => self.work_fetched(*out, fetched),
            CallEvent::ReadAhead(read) => self.keep_ahead(read),
        }
    }

    /// Whether the response to a submit denies a job that its provider has reported meanwhile. The
    /// job is awaited all the same: to submit it elsewhere would be to pay for it twice.
    fn is_overtaken(&self, report: &Report) -> bool {
        if matches!(report.verdict, Verdict::Accepted { .. } | Verdict::Done | Verdict::Canceled { .. }) {
            return false;
        }
        let status = self.model.claim_status(report.seq, report.fence);
        status.is_some_and(|status| {
            let is_submit = status.fence == report.fence && status.worker != Some(report.fence);
            is_submit && status.awaiting_since.is_some()
        })
    }

    /// Settles a claim by its fence, if it still belongs to the operation that was sent; returns
    /// whether it was current.
    pub(crate) fn settle(&mut self, mut report: BoxedReport) -> bool {
        let status = self.model.claim_status(report.seq, report.fence);
        let is_another = |at| status.is_some_and(|status| status.accepted_at != at);
        if report.accepted_at.is_some_and(is_another) {
            tracing::error!(seq = report.seq.0, "a response for an operation that is no longer in the log");
            return false;
        }
        let now = self.clock.now();
        let chance = self.chance.next();
        // Once the claim is settled, its alternative is no longer known.
        let alternative = self.model.picked_alternative(report.seq).cloned();
        let terms = self.model.pick_terms(report.seq);
        report.figures.upstream = self.upstream_label(report.seq, alternative.as_deref());
        let claim = ClaimReport::new(report.seq, report.fence, report.verdict.clone());
        let claim = claim.with_blame(&report.blame).with_hints(&report.hints);
        let settle = self.model.settle(now, claim, chance, &mut self.building.facts);
        let is_current = settle != SettleOutcome::Stale;
        if let SettleOutcome::Settled { ended, effect } = settle {
            self.building.record_costs(&report.spent);
            if let Some(status) = status {
                self.record_attempt(&report, (status, alternative.as_ref().zip(terms)), &effect, now);
            }
            if let Some(ended) = ended {
                self.building.end(ended, report.body.clone());
            }
        }
        self.building.reports.push(report);
        is_current
    }

    /// Fills free slots with operations that may run now: those of this process, and those of the
    /// remote workers that asked in this batch. A claim whose call is in flight in this process
    /// never expires, however long nothing could be written.
    pub(super) fn take(&mut self) {
        let n = self.free_slots();
        let now = self.clock.now();
        if self.model.first_expiry().is_some_and(|at| at <= now) {
            self.renew_claims();
        }
        let chance = self.chance.next();
        let mut slots = vec![WorkerSlots::local(n, self.options.lease)];
        let mut askers = vec![(0, 0)];
        for (taker, asked) in self.building.takers.iter().enumerate().filter(|_| self.draining.is_none()) {
            for (request, wanted) in asked.requests.iter().enumerate() {
                let (kinds, free, lease) = (Some(&wanted.kinds[..]), wanted.max, wanted.lease);
                slots.push(WorkerSlots { kinds, free, lease });
                askers.push((taker, request));
            }
        }
        let take = self.model.take_for(now, &slots, chance, &mut self.building.facts);
        let TakeOutcome { claims, slots, ended, overdue, lost } = take;
        for (claim, slot) in claims.into_iter().zip(slots) {
            match (slot, askers[slot]) {
                (0, _) => self.building.claims.push(claim),
                (_, (taker, request)) => self.building.takers[taker].claims[request].push(claim),
            }
        }
        for overdue in overdue {
            self.record_overdue(&overdue, now);
        }
        for lost in lost {
            self.record_lost(&lost, now);
        }
        for ended in ended {
            self.building.end(ended, bytes::Bytes::new());
        }
        self.publish_ready_kinds();
    }

    /// Publishes the remote kinds of which an operation may be claimed now, if that has changed.
    fn publish_ready_kinds(&self) {
        if self.model.has_remote_kinds() {
            self.ready_kinds.send_if_modified(|known| {
                let has_changed = !self.model.claimable_kinds().eq(known.iter());
                if has_changed {
                    *known = self.model.claimable_kinds().cloned().collect();
                }
                has_changed
            });
        }
    }

    /// The number of further calls that may be in flight.
    pub(super) fn free_slots(&self) -> usize {
        if self.draining.is_some() {
            return 0;
        }
        self.options.workers.saturating_sub(self.calls.count() + self.building.claims.len())
    }

    /// Renews the claims of calls that are in flight or about to be sent.
    pub(super) fn renew_claims(&mut self) {
        let until = self.clock.now().after(self.options.lease);
        for (seq, fence) in self.calls.claims() {
            self.model.renew(seq, fence, until, &mut self.building.facts);
        }
    }
}

/// Builds the error that explains to a caller why a draft was refused.
pub(crate) fn refusal_error(refusal: DraftRefusal, now: Time) -> Error {
    match refusal {
        DraftRefusal::Invalid(invalid) => {
            Error::new(ErrorKind::Invalid, format!("{} {}", invalid.field, invalid.problem))
                .field(invalid.field)
        }
        DraftRefusal::CannotOpen(LimitRefusal::TooMany) => {
            Error::new(ErrorKind::NotNow, "there are too many limits already: none is opened for this call")
        }
        DraftRefusal::CannotOpen(_) => {
            Error::new(ErrorKind::Invalid, "a limit that this call opens is out of bounds").field("request")
        }
        DraftRefusal::UnknownLimit(limit) => {
            Error::new(ErrorKind::UnknownLimit, format!("there is no limit {limit:?}"))
                .field(cost_field(&limit))
        }
        DraftRefusal::ChargedTwice(limit) => {
            Error::new(ErrorKind::Invalid, format!("limit {limit:?} is charged twice"))
                .field(cost_field(&limit))
        }
        DraftRefusal::TooCostly { limit, cost, capacity } => {
            let (cost, capacity) = (format_tokens(cost), format_tokens(capacity));
            let message =
                format!("it costs {cost} of limit {limit:?}, which never holds more than {capacity}");
            Error::new(ErrorKind::TooCostly, message).field(cost_field(&limit))
        }
        DraftRefusal::TooLate { earliest } => {
            let wait = tidegate_core::time::millis_up(earliest.since(now));
            let message = format!(
                "it cannot start before its deadline: its delay and the known limits allow it in {wait} ms"
            );
            let error = Error::new(ErrorKind::TooLate, message).field("deadline_ms");
            Error { earliest: Some(earliest), ..error }
        }
    }
}

/// The field that holds the cost for a limit: callers use the limit's name within its upstream.
fn cost_field(limit: &str) -> String {
    format!("cost.{}", LimitName::parse(limit).limit().unwrap_or(limit))
}

/// Formats micro-tokens for people.
pub(crate) fn format_tokens(micro: u64) -> String {
    let (whole, rest) = (micro / MICRO, micro % MICRO);
    if rest == 0 {
        return whole.to_string();
    }
    format!("{:.3}", micro as f64 / MICRO as f64).trim_end_matches('0').trim_end_matches('.').to_owned()
}
