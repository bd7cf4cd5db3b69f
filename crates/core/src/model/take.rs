//! Decides which operations run now. The work is bounded by the number of operations claimed and
//! groups woken, each in O(log n).

use std::sync::Arc;
use std::time::Duration;

use super::Model;
use super::chain::{ChainIx, PickTerms};
use super::group::{GroupIx, GroupPlacement};
use super::limit::LimitIx;
use super::pool::{FreeSlots, LOCAL, PoolIx, WorkerSlots, first_of};
use super::settle::{ClaimReport, EndedOperation, SettleOutcome};
use crate::bucket::Readiness;
use crate::fact::{Fact, SettleEffect};
use crate::fault::{Fault, FaultClass};
use crate::id::{Fence, Seq};
use crate::operation::OnUnknown;
use crate::state::EndState;
use crate::time::Time;
use crate::verdict::Verdict;

/// An operation claimed by a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its sequence number.
    pub seq: Seq,
    /// Proves the claim. Each poll has its own.
    pub fence: Fence,
    /// The fence of the attempt: of a poll, that of the claim whose job was accepted.
    pub attempt_fence: Fence,
    /// When the operation was accepted: with its sequence number, this identifies it uniquely.
    pub accepted_at: Time,
    /// When the claim expires.
    pub until: Time,
    /// The kind of worker that executes it.
    pub kind: Arc<str>,
    /// Its group.
    pub group: Arc<str>,
    /// Number of this attempt; the first is 1.
    pub attempt: u16,
    /// Whether to check first whether the call already took effect.
    pub reconcile_first: bool,
    /// Whether an earlier attempt may have taken effect, or may still be in progress.
    pub in_doubt: bool,
    /// What follows when its outcome is unknown.
    pub on_unknown: OnUnknown,
    /// Its deadline.
    pub deadline: Option<Time>,
    /// Whether its job was accepted before: ask how it stands, and do not send it again.
    pub poll: bool,
    /// Whether a cancel was requested, to be passed on. Only a claim that is polled can say so.
    pub cancel_requested: bool,
    /// The alternative that it uses, if the operation has some.
    pub alternative: Option<Arc<str>>,
}

/// The result of a take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakeOutcome {
    /// Operations that run now.
    pub claims: Vec<Claim>,
    /// For each claim, which of the slots that asked it takes.
    pub slots: Vec<usize>,
    /// Operations that ended without running.
    pub ended: Vec<EndedOperation>,
    /// Claims whose completion did not come in time.
    pub overdue: Vec<OverdueClaim>,
    /// Claims of an alternative whose worker is gone: whether it was submitted is not known.
    pub lost: Vec<OverdueClaim>,
}

/// What a claim is made with.
#[derive(Clone, Copy)]
pub(super) struct ClaimTerms {
    /// How long it holds.
    pub lease: Duration,
    /// The randomness of the take.
    pub chance: u32,
}

/// Where the group is queued whose turn is next.
enum NextGroup {
    Ready(GroupIx),
    AtLimit(LimitIx),
    Parked(ChainIx),
}

/// A claim whose completion, or whose worker's report, did not come in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverdueClaim {
    /// The operation.
    pub seq: Seq,
    /// The claim's fence.
    pub fence: Fence,
    /// The number of the attempt.
    pub attempt: u16,
    /// When its job was accepted; of a claim whose job was not, when its operation was.
    pub since: Time,
    /// The alternative that it used, if the operation has some.
    pub alternative: Option<Arc<str>>,
    /// On what terms it had that.
    pub terms: Option<PickTerms>,
}

impl Model {
    /// Claims at most `n` operations that may run now, each for `lease`, for the owner's own
    /// workers.
    pub fn take(
        &mut self,
        now: Time,
        n: usize,
        lease: Duration,
        chance: u32,
        facts: &mut Vec<Fact>,
    ) -> TakeOutcome {
        self.take_for(now, &[WorkerSlots::local(n, lease)], chance, facts)
    }

    /// Claims operations that may run now for these free slots, first come first.
    pub fn take_for(
        &mut self,
        now: Time,
        slots: &[WorkerSlots<'_>],
        chance: u32,
        facts: &mut Vec<Fact>,
    ) -> TakeOutcome {
        let now = self.now(now);
        let mut take = TakeOutcome::default();
        self.expire_claims(now, chance, facts, &mut take);
        self.expire_awaiting(now, chance, facts, &mut take);
        self.expire_deadlines(now, facts, &mut take.ended);
        self.wake(now);
        let mut free = FreeSlots::new(self, slots);
        while let Some((ix, slot)) = self.next_in_turn(&free) {
            let terms = ClaimTerms { lease: free.lease(slot), chance };
            self.try_run(ix, now, terms, facts, &mut take);
            if take.slots.len() < take.claims.len() {
                free.fill(slot);
                take.slots.push(slot);
            }
            self.rearm(now);
        }
        take
    }

    /// The next time at which something changes without a command: a claim or a deadline expires,
    /// an awaited completion is overdue, a sleeping group wakes, or a limit can grant something to
    /// the owner's own workers, if they `can_take`, or to remote ones.
    #[must_use]
    pub fn next_change(&self, can_take: bool) -> Option<Time> {
        let running = self.first_expiry();
        let asleep = self.asleep.first().map(|(at, _)| *at);
        let limits = self.wakes.first().map(|(at, _)| *at);
        let chains = self.chain_wakes.first().map(|(at, _)| *at);
        let wakes = [limits, chains].into_iter().flatten().min();
        let wakes = wakes.filter(|_| can_take || self.has_remote_kinds());
        let is_due = first_of(&self.due, LOCAL, LimitIx(0)).is_some()
            || first_of(&self.chain_due, LOCAL, ChainIx(0)).is_some();
        let due = (is_due && can_take).then_some(self.counters.clock);
        let deadlines = self.deadlines.first().map(|(at, _)| *at);
        let awaiting = self.awaiting.first_key_value().map(|((until, _), _)| *until);
        [running, awaiting, asleep, wakes, due, deadlines].into_iter().flatten().min()
    }

    /// When the first claim that a worker holds expires.
    #[must_use]
    pub fn first_expiry(&self) -> Option<Time> {
        self.running.first_key_value().map(|((at, _), _)| *at)
    }

    fn expire_claims(&mut self, now: Time, chance: u32, facts: &mut Vec<Fact>, take: &mut TakeOutcome) {
        while let Some((&(until, fence), &ix)) = self.running.first_key_value()
            && until <= now
        {
            // Its worker may have died while it polled a job that is overdue by now.
            if self.is_overdue(ix, now) && self.settle_overdue(now, (ix, fence), chance, facts, take) {
                continue;
            }
            let Some(head) = self.head_of(&self.groups[ix.at()]) else { break };
            let (seq, attempt, since) = (head.seq, head.attempt.saturating_add(1), head.at);
            let was_awaiting = self.awaiting_since(head).is_some();
            let alternative = self.alternative_of(head).filter(|_| !was_awaiting);
            let is_recorded = alternative.is_some();
            if is_recorded {
                let terms = self.pick_terms(seq);
                take.lost.push(OverdueClaim { seq, fence, attempt, since, alternative, terms });
            }
            let fault =
                Fault::new(FaultClass::Transient, "the worker's lease expired before it reported an outcome");
            let settle = self.settle(now, ClaimReport::new(seq, fence, Verdict::Lost(fault)), chance, facts);
            let SettleOutcome::Settled { ended, effect } = settle else { continue };
            take.ended.extend(ended);
            if effect == SettleEffect::Held && !was_awaiting && !is_recorded {
                // Whoever decides what happened sees the attempt that left it unknown.
                take.lost.push(OverdueClaim { seq, fence, attempt, since, alternative: None, terms: None });
            }
        }
    }

    fn expire_deadlines(&mut self, now: Time, facts: &mut Vec<Fact>, ended: &mut Vec<EndedOperation>) {
        while let Some((at, seq)) = self.deadlines.first().copied()
            && at <= now
        {
            let Some(entry) = self.entry_of(seq) else { break };
            let fault = match &entry.fault {
                Some(last) => Fault::new(last.class, "its deadline passed"),
                None => Fault::new(FaultClass::Transient, "its deadline passed before it could run"),
            };
            ended.push(self.end_waiting(now, seq, EndState::Failed, Some(fault), facts));
        }
    }

    /// Ends an operation that is not running, for `cause` if there is a new one. Unless it
    /// succeeded, the fault of its last attempt is kept.
    pub(super) fn end_waiting(
        &mut self,
        now: Time,
        seq: Seq,
        state: EndState,
        cause: Option<Fault>,
        facts: &mut Vec<Fact>,
    ) -> EndedOperation {
        let entry = self.entry_of(seq);
        let attempt = entry.map_or(0, |entry| entry.attempt);
        let last = entry.and_then(|entry| entry.fault.as_deref());
        let fault = match cause {
            Some(cause) => Some(cause.with_earlier(last)),
            None => last.filter(|_| state != EndState::Succeeded).cloned(),
        };
        let hold = state == EndState::Failed
            && entry.is_some_and(|entry| entry.on_failure == crate::operation::OnFailure::Hold);
        let (next, identity) = (self.next_turn(seq), self.identity_of(seq));
        self.decide(facts, Fact::Ended { seq, at: now, state, hold });
        EndedOperation { seq, at: now, state, attempt, fault, next, identity }
    }

    /// Makes due groups ready: those that sleep, and those whose limit can grant something.
    fn wake(&mut self, now: Time) {
        while let Some((at, ix)) = self.asleep.first().copied()
            && at <= now
        {
            self.dequeue_group(ix);
            self.enqueue_group(ix, now);
        }
        while let Some((at, ix)) = self.wakes.first().copied()
            && at <= now
        {
            self.stale.push(ix);
            self.rearm(now);
        }
        while let Some((at, ix)) = self.chain_wakes.first().copied()
            && at <= now
        {
            self.stale_chains.push(ix);
            self.rearm(now);
        }
        self.rearm(now);
    }

    /// Returns the group whose turn is first among the ready ones and those that a limit or a chain
    /// can serve now, and the slot for it. Wakes only as many groups as can be claimed.
    fn next_in_turn(&mut self, free: &FreeSlots<'_>) -> Option<(GroupIx, usize)> {
        let first = |(pool, slot): (PoolIx, usize)| {
            let ready =
                first_of(&self.ready, pool, GroupIx(0)).map(|(turn, ix)| (turn, NextGroup::Ready(ix)));
            let due = first_of(&self.due, pool, LimitIx(0)).map(|(turn, ix)| (turn, NextGroup::AtLimit(ix)));
            let parked =
                first_of(&self.chain_due, pool, ChainIx(0)).map(|(turn, ix)| (turn, NextGroup::Parked(ix)));
            let (turn, next) = [due, parked, ready].into_iter().flatten().min_by_key(|(turn, _)| *turn)?;
            Some((turn, pool, slot, next))
        };
        let (_, pool, slot, next) = free.pools().filter_map(first).min_by_key(|(turn, ..)| *turn)?;
        let (_, ix) = match next {
            NextGroup::Ready(ix) => return Some((ix, slot)),
            NextGroup::AtLimit(limit) => self.limits[limit.at()].first_waiter(pool)?,
            NextGroup::Parked(chain) => self.chains[chain.at()].first_waiter(pool)?,
        };
        self.dequeue_group(ix);
        self.enqueue_ready(ix);
        Some((ix, slot))
    }

    /// Runs the head of a ready group, or queues the group on what it must wait for.
    fn try_run(
        &mut self,
        ix: GroupIx,
        now: Time,
        terms: ClaimTerms,
        facts: &mut Vec<Fact>,
        take: &mut TakeOutcome,
    ) {
        debug_assert_eq!(self.groups[ix.at()].placement, GroupPlacement::Ready);
        let group = &self.groups[ix.at()];
        // It woke for workers that had no slot, and then the clock went back.
        if self.next_poll(group).unwrap_or(group.not_before) > now {
            self.dequeue_group(ix);
            return self.enqueue_group(ix, now);
        }
        let Some(head) = self.head_of(group) else { return };
        if head.has_alternatives && group.run.is_none() {
            return self.try_alternatives(ix, now, terms, facts, take);
        }
        let lease = terms.lease;
        let (seq, turn, pool, is_poll) = (head.seq, group.turn, group.pool, group.run.is_some());
        let mut last = (Readiness::Now, None);
        let mut too_late = None;
        for (limit, cost) in head.charges.iter() {
            let meter = &self.limits[limit.at()];
            // A claim that awaits its completion has its slots already.
            if is_poll && (head.has_free_polls() || meter.meter.spares_polls()) {
                continue;
            }
            let mut when = meter.ready(if is_poll { cost.of_poll() } else { *cost }, now);
            if !is_poll && when.is_past(head.deadline) {
                too_late = too_late.max(Some((when, *limit)));
            }
            if when == Readiness::Now && meter.has_earlier_waiter(pool, turn) {
                when = Readiness::AfterAnswer;
            }
            if when > last.0 {
                last = (when, Some(*limit));
            }
        }
        if let Some((when, limit)) = too_late {
            let fault = too_late_fault(when, &self.limits[limit.at()].name, now);
            take.ended.push(self.end_waiting(now, seq, EndState::Failed, Some(fault), facts));
            return;
        }
        match last {
            (Readiness::Now, _) if is_poll => take.claims.extend(self.poll(ix, now, lease, facts)),
            (Readiness::Now, _) => take.claims.push(self.claim(ix, now, lease, facts)),
            (_, Some(limit)) => self.wait_for_limit(ix, limit),
            (_, None) => {}
        }
    }

    /// Moves a ready group to the queue of a limit.
    fn wait_for_limit(&mut self, ix: GroupIx, limit: LimitIx) {
        self.dequeue_group(ix);
        self.enqueue_on_limit(ix, limit);
    }

    pub(super) fn claim(&mut self, ix: GroupIx, now: Time, lease: Duration, facts: &mut Vec<Fact>) -> Claim {
        let group = &self.groups[ix.at()];
        let name = Arc::clone(&group.name);
        let (fence, until) = (self.counters.next_fence, now.after(lease));
        let mut claim = Claim {
            seq: Seq(0),
            fence,
            attempt_fence: fence,
            accepted_at: Time::ZERO,
            until,
            kind: Arc::clone(&name),
            group: name,
            attempt: 1,
            reconcile_first: false,
            in_doubt: false,
            on_unknown: OnUnknown::Ask,
            deadline: None,
            poll: false,
            cancel_requested: false,
            alternative: None,
        };
        if let Some(head) = self.head_of(group) {
            claim.seq = head.seq;
            claim.accepted_at = head.at;
            claim.kind = Arc::clone(&self.kinds[usize::from(head.kind)]);
            claim.attempt = head.attempt.saturating_add(1);
            claim.reconcile_first = head.reconcile_first;
            claim.in_doubt = head.fault.as_ref().is_some_and(|fault| fault.may_have_happened);
            claim.on_unknown = head.on_unknown;
            claim.alternative = self.alternative_of(head);
            claim.deadline = (head.deadline != Time::MAX).then_some(head.deadline);
        }
        self.decide(facts, Fact::Claimed { seq: claim.seq, fence, at: now, until });
        claim
    }
}

/// Why an operation cannot start before its deadline.
fn too_late_fault(when: Readiness, limit: &str, now: Time) -> Fault {
    match when {
        Readiness::At(at) => {
            let wait = at.since(now).as_millis();
            let message = format!("its deadline passes before its limits allow it, in {wait} ms");
            Fault::new(FaultClass::RateLimited, message)
        }
        _ => Fault::new(FaultClass::Validation, format!("it costs more than {limit} can ever hold")),
    }
}
