//! The only place where logged facts change the model. Absorbing the same facts again gives the
//! same state; facts that cannot apply (an unknown operation, an old fence) change nothing.

mod charges;
mod closures;
mod limits;
mod settled;

use std::sync::Arc;

use super::entry::{Entry, EntryIx};
use super::group::{Group, GroupIx, Pause, RunningClaim};
use super::limit::Meter;
use super::{Key, Model};
use crate::fact::{Acceptance, AcceptedOperation, Fact};
use crate::fault::Fault;
use crate::id::{Fence, Seq};
use crate::operation::DedupeEntry;
use crate::time::Time;

/// Expired keys that one acceptance removes: more than one, so that they never pile up.
const KEYS_SWEPT: usize = 2;

impl Model {
    /// Applies a fact and adds it to the list of facts to log.
    pub(super) fn decide(&mut self, facts: &mut Vec<Fact>, fact: Fact) {
        self.absorb(&fact);
        facts.push(fact);
    }

    /// Applies a fact.
    pub fn absorb(&mut self, fact: &Fact) {
        match fact {
            Fact::Accepted(accepted) => self.absorb_accepted(accepted),
            Fact::Chained { seq, alternatives } => self.absorb_chained(*seq, alternatives),
            Fact::Doubted { seq, fault } => self.absorb_doubted(*seq, fault),
            Fact::Rechained { seq, alternatives } => self.absorb_rechained(*seq, alternatives),
            Fact::Picked { seq, alternative, at } => self.absorb_picked(*seq, alternative, *at),
            Fact::Claimed { seq, fence, at, until } => self.absorb_claimed(*seq, *fence, *at, *until),
            Fact::Renewed { seq, fence, until } => self.absorb_renewed(*seq, *fence, *until),
            Fact::Sent { seq, fence, at } => self.absorb_sent(*seq, *fence, *at),
            Fact::Polled { seq, fence, at, until } => self.absorb_polled(*seq, *fence, *at, *until),
            Fact::Reported { seq, fence, at, limit, report } => {
                self.absorb_reported((*seq, *fence), *at, limit, *report);
            }
            Fact::Settled(settled) => self.absorb_settled(settled),
            Fact::Ended { seq, at, state, hold } => {
                self.advance_clock(*at);
                self.with_group_of(*seq, *at, |model, ix| model.end(ix, *at, *state, *hold, None));
            }
            Fact::CancelRequested { seq } => {
                // A claim that awaits its completion is handed out at once, to pass it on.
                let clock = self.counters.clock;
                self.with_group_of(*seq, clock, |model, ix| model.entries[ix.at()].cancel_requested = true);
            }
            Fact::Repeated { seq, at } => {
                self.advance_clock(*at);
                self.with_group_of(*seq, *at, Self::repeat);
            }
            Fact::Woken { seq, at } => self.absorb_woken(*seq, *at),
            Fact::Paused { group, at, by, reason } => {
                self.advance_clock(*at);
                let ix = self.group_or_insert(group);
                self.dequeue_group(ix);
                let paused = &mut self.groups[ix.at()].paused;
                // Another reason does not make it a new pause.
                let since = paused.as_ref().map_or(*at, |earlier| earlier.since);
                let pause = Pause { by: Arc::clone(by), since, reason: Arc::clone(reason) };
                *paused = Some(Box::new(pause));
                self.stopped.insert(Arc::clone(group));
                self.enqueue_group(ix, *at);
            }
            Fact::Resumed { group, at } => self.absorb_resumed(group, *at),
            Fact::LimitSet { limit, shape, source, at } => self.absorb_limit(limit, *shape, *source, *at),
            Fact::Thawed { limit, at } => {
                self.advance_clock(*at);
                if let Some(ix) = self.by_limit.get(limit).copied() {
                    let limit = &mut self.limits[ix.at()];
                    match &mut limit.meter {
                        Meter::Bucket(bucket) => {
                            limit.closure = None;
                            bucket.thaw(*at);
                        }
                        Meter::Breaker(breaker) => breaker.end_cooldown(*at),
                        Meter::Cap(_) => {}
                    }
                    self.stale.push(ix);
                }
            }
            Fact::LimitGone { limit, at } => self.absorb_limit_gone(limit, *at),
            Fact::Counters(counters) => self.counters = *counters,
            Fact::LimitImage(image) => self.restore_limit(image),
            Fact::ClosureImage { limit, closure } => self.restore_closure(limit, closure),
            Fact::GroupImage(image) => self.restore_group(image),
            Fact::AwaitingImage(image) => self.restore_awaiting(image),
            Fact::PollImage { fence } => self.restore_poll(*fence),
            Fact::OperationImage(image) => self.restore_operation(image),
            Fact::ChainImage(image) => self.restore_chain(image),
            Fact::KeyImage { seq, dedupe } => self.remember_key(*seq, dedupe),
        }
    }

    pub(super) fn advance_clock(&mut self, at: Time) {
        self.counters.clock = self.counters.clock.max(at);
    }

    /// Returns the group of this name, creating it if needed.
    pub(super) fn group_or_insert(&mut self, name: &Arc<str>) -> GroupIx {
        if let Some(ix) = self.by_group.get(name) {
            return *ix;
        }
        let ix = self.groups.insert(Group::new(Arc::clone(name)));
        let ix = GroupIx(u32::try_from(ix).unwrap_or(u32::MAX));
        self.by_group.insert(Arc::clone(name), ix);
        ix
    }

    /// Changes an operation while its group is in no structure, then queues the group again.
    pub(super) fn with_group_of(&mut self, seq: Seq, at: Time, change: impl FnOnce(&mut Self, EntryIx)) {
        if let Some(ix) = self.by_seq.get(seq) {
            let group = self.entries[ix.at()].group;
            self.dequeue_group(group);
            change(self, ix);
            self.enqueue_group(group, at);
        }
    }

    fn absorb_accepted(&mut self, accepted: &AcceptedOperation) {
        self.advance_clock(accepted.at);
        self.sweep_keys(accepted.at);
        if accepted.acceptance == Acceptance::New {
            self.counters.next_seq = self.counters.next_seq.max(Seq(accepted.seq.0 + 1));
        }
        if let Some(dedupe) = &accepted.dedupe {
            self.remember_key(accepted.seq, dedupe);
        }
        let group = self.group_or_insert(&accepted.group);
        let ix = self.insert_entry(accepted, group);
        let is_first = self.groups[group.at()].depth == 0 || accepted.acceptance == Acceptance::RerunFirst;
        if !is_first {
            self.link(ix);
        } else {
            self.dequeue_group(group);
            self.link_first(ix);
            let turn = self.draw_turn(accepted.priority);
            let group_state = &mut self.groups[group.at()];
            group_state.turn = turn;
            group_state.not_before = accepted.not_before.unwrap_or(Time::ZERO);
            self.enqueue_group(group, accepted.at);
        }
    }

    pub(super) fn insert_entry(&mut self, accepted: &AcceptedOperation, group: GroupIx) -> EntryIx {
        let kind = self.intern_kind(&accepted.kind);
        let charges = self.intern_charges(&accepted.charges);
        for (limit, _) in charges.iter() {
            self.limits[limit.at()].users += 1;
        }
        let entry = Entry {
            seq: accepted.seq,
            at: accepted.at,
            deadline: accepted.deadline.unwrap_or(Time::MAX),
            not_before: accepted.not_before.unwrap_or(Time::ZERO),
            charges,
            fault: None,
            group,
            next: None,
            prev: None,
            kind,
            attempt: 0,
            max_attempts: accepted.max_attempts,
            priority: accepted.priority,
            on_unknown: accepted.on_unknown,
            on_failure: accepted.on_failure,
            reconcile_first: false,
            cancel_requested: false,
            has_alternatives: false,
        };
        if entry.deadline != Time::MAX {
            self.deadlines.insert((entry.deadline, entry.seq));
        }
        let ix = EntryIx::new(self.entries.insert(entry));
        self.by_seq.insert(accepted.seq, ix);
        ix
    }

    fn remember_key(&mut self, seq: Seq, dedupe: &DedupeEntry) {
        let key = Key { seq, fingerprint: dedupe.fingerprint, expires: dedupe.expires };
        self.keys.insert(dedupe.key, key);
        self.keys_by_age.push_back((dedupe.expires, dedupe.key));
    }

    /// Removes a few expired keys. Those that were used again meanwhile do not count: a snapshot
    /// has forgotten their earlier use.
    fn sweep_keys(&mut self, now: Time) {
        let mut removed = 0;
        while let Some((expires, key)) = self.keys_by_age.front().copied() {
            let is_current = self.keys.get(&key).is_some_and(|known| known.expires == expires);
            if is_current && (expires > now || removed == KEYS_SWEPT) {
                return;
            }
            self.keys_by_age.pop_front();
            if is_current {
                self.keys.remove(&key);
                removed += 1;
            }
        }
    }

    fn absorb_claimed(&mut self, seq: Seq, fence: Fence, at: Time, until: Time) {
        self.advance_clock(at);
        self.counters.next_fence = self.counters.next_fence.max(Fence(fence.0 + 1));
        self.with_group_of(seq, at, |model, ix| {
            model.clamp_charges(ix, false);
            let entry = &model.entries[ix.at()];
            model.deadlines.remove(&(entry.deadline, seq));
            let mut marks = Vec::with_capacity(entry.charges.len());
            for (limit, cost) in entry.charges.iter() {
                marks.push(model.limits[limit.at()].meter.take(cost.micro, fence));
                model.stale.push(*limit);
            }
            let run = RunningClaim { fence, poll: None, until, marks, awaiting: None };
            model.groups[entry.group.at()].run = Some(Box::new(run));
        });
    }

    fn absorb_doubted(&mut self, seq: Seq, fault: &Fault) {
        if let Some(ix) = self.by_seq.get(seq) {
            self.entries[ix.at()].fault = Some(Box::new(fault.clone()));
        }
    }

    fn absorb_woken(&mut self, seq: Seq, at: Time) {
        self.advance_clock(at);
        self.with_group_of(seq, at, |model, ix| {
            let group = model.entries[ix.at()].group;
            let group = &mut model.groups[group.at()];
            group.not_before = group.not_before.min(at);
        });
    }

    fn absorb_renewed(&mut self, seq: Seq, fence: Fence, until: Time) {
        self.with_group_of(seq, Time::ZERO, |model, ix| {
            let group = model.entries[ix.at()].group;
            if let Some(run) = model.groups[group.at()].run.as_mut().filter(|run| run.fence == fence) {
                run.until = until;
            }
        });
    }

    fn absorb_sent(&mut self, seq: Seq, fence: Fence, at: Time) {
        self.advance_clock(at);
        let Some(ix) = self.by_seq.get(seq) else { return };
        let entry = &self.entries[ix.at()];
        let run = self.groups[entry.group.at()].run.as_ref();
        let Some(run) = run.filter(|run| run.fence == fence) else { return };
        for ((limit, _), mark) in entry.charges.iter().zip(&run.marks) {
            if let Meter::Bucket(bucket) = &mut self.limits[limit.at()].meter {
                bucket.mark_sent(*mark, at);
            }
            self.stale.push(*limit);
        }
    }

    fn absorb_resumed(&mut self, name: &Arc<str>, at: Time) {
        self.advance_clock(at);
        let Some(ix) = self.by_group.get(name).copied() else { return };
        self.dequeue_group(ix);
        let group = &mut self.groups[ix.at()];
        group.paused = None;
        if group.held.as_ref().is_some_and(|held| !held.unknown) {
            group.held = None;
            self.held.remove(name);
        }
        if !group.is_stopped() {
            self.stopped.remove(name);
        }
        self.enqueue_group(ix, at);
    }
}
