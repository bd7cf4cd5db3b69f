//! Claims whose job ends elsewhere. The upstream accepted the job; the claim keeps its fence and
//! its slots of caps, and its group keeps its head, but no worker holds it. It ends by a settlement
//! that names the fence (a completion), by the report of a poll, or when its time is up. A poll is
//! the same claim in the hands of a worker again: it takes its turn, and it charges the buckets of
//! the operation as the call itself did, unless that has alternatives: their buckets count submits.
//! The worker has a fence of its own for each poll, so a late report of an earlier poll settles
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use super::Model;
use super::entry::{Entry, EntryIx};
use super::group::{Group, GroupIx, GroupPlacement, RunningClaim};
use super::limit::Meter;
use super::settle::{ClaimReport, SettleOutcome};
use super::take::{Claim, OverdueClaim, TakeOutcome};
use crate::backoff::Backoff;
use crate::bounds;
use crate::fact::{AwaitingImage, Fact, SettleEffect, SettledClaim};
use crate::fault::{Fault, FaultClass};
use crate::id::{Fence, Seq};
use crate::time::Time;
use crate::verdict::Verdict;

impl Model {
    /// Queues a group whose claim awaits its completion: until its next poll, and for its end.
    pub(super) fn enqueue_awaiting(&mut self, ix: GroupIx, now: Time) {
        let Some(poll_at) = self.next_poll(&self.groups[ix.at()]) else { return };
        if poll_at > now {
            self.index_awaiting(ix);
            self.groups[ix.at()].placement = GroupPlacement::Asleep(poll_at);
            self.asleep.insert((poll_at, ix));
        } else {
            self.enqueue_ready(ix);
        }
    }

    /// When the claim of a group that awaits its completion is polled next.
    pub(super) fn next_poll(&self, group: &Group) -> Option<Time> {
        let awaiting = group.run.as_ref()?.awaiting()?;
        let wants_cancel = self.head_of(group).is_some_and(|head| head.cancel_requested);
        Some(match awaiting.poll_at {
            _ if wants_cancel && !awaiting.cancel_sent => Time::ZERO,
            poll_at => poll_at.unwrap_or(Time::MAX).min(awaiting.until),
        })
    }

    /// Lists a claim that awaits its completion under its end, wherever its group is queued.
    pub(super) fn index_awaiting(&mut self, ix: GroupIx) {
        if let Some(run) = &self.groups[ix.at()].run
            && let Some(awaiting) = run.awaiting()
        {
            self.awaiting.insert((awaiting.until, run.fence), ix);
        }
    }

    /// Settles claims whose completion did not come in time: their outcome is unknown.
    pub(super) fn expire_awaiting(
        &mut self,
        now: Time,
        chance: u32,
        facts: &mut Vec<Fact>,
        take: &mut TakeOutcome,
    ) {
        while let Some((&(until, fence), &ix)) = self.awaiting.first_key_value()
            && until <= now
            && self.settle_overdue(now, (ix, fence), chance, facts, take)
        {}
    }

    /// Whether the completion of a group's claim did not come in time; a worker may be polling.
    pub(super) fn is_overdue(&self, ix: GroupIx, now: Time) -> bool {
        let run = self.groups[ix.at()].run.as_ref();
        run.and_then(|run| run.awaiting.as_ref()).is_some_and(|awaiting| awaiting.until <= now)
    }

    /// Settles a claim whose completion did not come in time; returns whether there was one.
    pub(super) fn settle_overdue(
        &mut self,
        now: Time,
        (ix, fence): (GroupIx, Fence),
        chance: u32,
        facts: &mut Vec<Fact>,
        take: &mut TakeOutcome,
    ) -> bool {
        let Some(seq) = self.head_of(&self.groups[ix.at()]).map(|head| head.seq) else { return false };
        let Some(status) = self.claim_status(seq, fence) else { return false };
        let since = status.awaiting_since.unwrap_or(status.accepted_at);
        let alternative = self.picked_alternative(seq).cloned();
        let (attempt, terms) = (status.attempt, self.pick_terms(seq));
        take.overdue.push(OverdueClaim { seq, fence, attempt, since, alternative, terms });
        let fault = |message: &str| Fault::new(FaultClass::Transient, message);
        let fault = match status.cancel_requested {
            true => fault("a cancel was requested, and no one reported that its job has stopped"),
            false => fault("its completion did not come in time")
                .with_earlier(self.poll_fault(&self.groups[ix.at()])),
        };
        let settle = self.settle(now, ClaimReport::new(seq, fence, Verdict::Unknown(fault)), chance, facts);
        if let SettleOutcome::Settled { ended: Some(end), .. } = settle {
            take.ended.push(end);
        }
        true
    }

    /// Why the last poll of a group's claim found out nothing; `None` when it found out something.
    pub(super) fn poll_fault(&self, group: &Group) -> Option<&Fault> {
        let awaiting = group.run.as_ref()?.awaiting.as_ref()?;
        let fault = self.head_of(group)?.fault.as_deref();
        fault.filter(|_| awaiting.failed_polls > 0)
    }

    /// Hands out an awaiting claim again.
    pub(super) fn poll(
        &mut self,
        ix: GroupIx,
        now: Time,
        lease: Duration,
        facts: &mut Vec<Fact>,
    ) -> Option<Claim> {
        let group = &self.groups[ix.at()];
        let (run, head) = (group.run.as_ref()?, self.head_of(group)?);
        let (attempt_fence, until) = (run.fence, now.after(lease));
        let claim = Claim {
            seq: head.seq,
            fence: self.counters.next_fence,
            attempt_fence,
            accepted_at: head.at,
            until,
            kind: Arc::clone(&self.kinds[usize::from(head.kind)]),
            group: Arc::clone(&group.name),
            attempt: head.attempt.saturating_add(1),
            reconcile_first: false,
            in_doubt: false,
            deadline: None,
            on_unknown: head.on_unknown,
            poll: true,
            cancel_requested: head.cancel_requested,
            alternative: self.alternative_of(head),
        };
        self.decide(facts, Fact::Polled { seq: claim.seq, fence: attempt_fence, at: now, until });
        Some(claim)
    }

    /// Polls an awaited job at once instead of later, because its upstream says that something
    /// happened; returns whether it is going to be polled now.
    pub fn poll_now(&mut self, now: Time, seq: Seq, fence: Fence, facts: &mut Vec<Fact>) -> bool {
        let now = self.now(now);
        let claim = self.claimed(seq, fence);
        let Some(awaiting) = claim.and_then(|(_, run)| run.awaiting()) else { return false };
        let Some(poll_at) = awaiting.poll_at else { return false };
        if poll_at > now {
            let effect = SettleEffect::Awaiting { poll_at: Some(now), until: awaiting.until };
            let settled = SettledClaim { seq, fence, at: now, effect, fault: None, hints: Vec::new() };
            self.decide(facts, Fact::Settled(Box::new(settled)));
            self.rearm(now);
        }
        true
    }

    /// Bounds how long a job is awaited after a cancel: whoever was to stop it may never report.
    pub(super) fn bound_cancel(&mut self, now: Time, seq: Seq, facts: &mut Vec<Fact>) {
        let Some(entry) = self.entry_of(seq).filter(|entry| entry.cancel_requested) else { return };
        let run = self.groups[entry.group.at()].run.as_ref().filter(|_| entry.prev.is_none());
        let Some((run, awaiting)) = run.and_then(|run| Some((run, run.awaiting()?))) else { return };
        let until = now.after(bounds::CANCEL_AWAIT_MAX);
        // Once bounded it stays so, because no later response moves the end.
        if awaiting.until > until {
            let effect = SettleEffect::Awaiting { poll_at: awaiting.poll_at, until };
            let fence = run.fence;
            let settled = SettledClaim { seq, fence, at: now, effect, fault: None, hints: Vec::new() };
            self.decide(facts, Fact::Settled(Box::new(settled)));
        }
    }

    pub(super) fn absorb_polled(&mut self, seq: Seq, fence: Fence, at: Time, until: Time) {
        self.advance_clock(at);
        self.with_group_of(seq, at, |model, ix| {
            let group = model.entries[ix.at()].group;
            let is_awaiting = |run: &mut Box<RunningClaim>| run.fence == fence && run.awaiting().is_some();
            let Some(mut run) = model.groups[group.at()].run.take_if(is_awaiting) else { return };
            if !model.entries[ix.at()].has_free_polls() {
                model.charge_poll(ix, &mut run.marks);
            }
            let entry = &model.entries[ix.at()];
            run.until = until;
            run.poll = Some(model.counters.next_fence);
            model.counters.next_fence.0 = model.counters.next_fence.0.saturating_add(1);
            if let Some(awaiting) = &mut run.awaiting {
                awaiting.polling = true;
                awaiting.cancel_sent |= entry.cancel_requested;
            }
            model.groups[group.at()].run = Some(run);
        });
    }

    /// Takes the charges of a poll from the buckets.
    fn charge_poll(&mut self, ix: EntryIx, marks: &mut [u64]) {
        self.clamp_charges(ix, true);
        for ((limit, cost), mark) in self.entries[ix.at()].charges.iter().zip(marks) {
            if let Meter::Bucket(bucket) = &mut self.limits[limit.at()].meter {
                *mark = bucket.take(cost.micro);
                self.stale.push(*limit);
            }
        }
    }

    /// What a response means for a claim that awaits its completion, or does from now on; `None`
    /// when the rules for any other claim apply.
    pub(super) fn awaiting_effect(
        &self,
        (entry, fence): (&Entry, Fence),
        now: Time,
        verdict: &Verdict,
        chance: u32,
    ) -> Option<(SettleEffect, Option<Fault>)> {
        let run = self.groups[entry.group.at()].run.as_deref();
        let before = run.and_then(|run| run.awaiting.as_deref());
        // The submit's own response, after a report on its job: what that made due stays due.
        let is_late = run.is_some_and(|run| run.worker() != Some(fence));
        let due = before.filter(|_| is_late).and_then(|before| before.poll_at).map(|at| at.max(now));
        let poll_at =
            |wait: Duration| Some(now.after(wait.clamp(bounds::POLL_AFTER_MIN, bounds::HORIZON_MAX)));
        match (verdict, before) {
            (Verdict::Accepted { poll_after, timeout }, _) => {
                let until =
                    before.map_or_else(|| now.after((*timeout).min(bounds::AWAIT_MAX)), |it| it.until);
                let poll_at = [poll_after.and_then(poll_at), due].into_iter().flatten().min();
                Some((SettleEffect::Awaiting { poll_at, until }, None))
            }
            (
                Verdict::Unknown(fault) | Verdict::Lost(fault) | Verdict::PollFailed { fault, .. },
                Some(before),
            ) if before.until > now => {
                let failures = u32::from(before.failed_polls) + 1;
                let every = match verdict {
                    Verdict::PollFailed { every, .. } => *every,
                    _ => Duration::ZERO,
                };
                let poll_at = poll_at(Backoff::RETRY.delay(failures, chance).max(every));
                Some((SettleEffect::Awaiting { poll_at, until: before.until }, Some(fault.clone())))
            }
            (Verdict::Returned, Some(_)) => Some((SettleEffect::Returned, None)),
            _ => None,
        }
    }
}

/// The state of a claim that awaits its completion after this settlement; `None` when it ended.
pub(super) fn awaiting_after(run: &RunningClaim, settled: &SettledClaim) -> Option<AwaitingImage> {
    let before = run.awaiting.as_deref();
    let failed_polls = before.map_or(0, |before| before.failed_polls);
    match &settled.effect {
        SettleEffect::Awaiting { poll_at, until } => Some(AwaitingImage {
            since: before.map_or(settled.at, |before| before.since),
            until: *until,
            poll_at: *poll_at,
            failed_polls: if settled.fault.is_some() { failed_polls.saturating_add(1) } else { 0 },
            polling: false,
            cancel_sent: before.is_some_and(|before| before.cancel_sent),
        }),
        SettleEffect::Returned => {
            let again = AwaitingImage { poll_at: Some(settled.at), polling: false, ..*before? };
            Some(again)
        }
        // A closed bucket keeps the poll waiting by itself.
        SettleEffect::Throttled { until, closed } => {
            let poll_at = if closed.is_empty() { *until } else { settled.at };
            Some(AwaitingImage { poll_at: Some(poll_at), polling: false, ..*before? })
        }
        SettleEffect::Ended { .. }
        | SettleEffect::Retry { .. }
        | SettleEffect::Held
        | SettleEffect::NextAlternative => None,
    }
}
