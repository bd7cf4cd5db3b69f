//! Applies a settled claim: to the operation, its group, and the limits it charged.

use std::sync::Arc;

use super::super::Model;
use super::super::awaiting::awaiting_after;
use super::super::entry::EntryIx;
use super::super::group::{GroupIx, RunningClaim};
use super::super::limit::Meter;
use crate::fact::{AwaitingImage, GroupHold, LimitSource, SettleEffect, SettledClaim};
use crate::fault::Fault;
use crate::state::EndState;
use crate::time::Time;
use crate::verdict::Hint;

impl Model {
    pub(super) fn absorb_settled(&mut self, settled: &SettledClaim) {
        self.advance_clock(settled.at);
        self.with_group_of(settled.seq, settled.at, |model, ix| model.settle_claim(ix, settled));
    }

    fn settle_claim(&mut self, ix: EntryIx, settled: &SettledClaim) {
        let group = self.entries[ix.at()].group;
        let Some(run) = self.groups[group.at()].run.take_if(|run| run.fence == settled.fence) else { return };
        let awaiting = awaiting_after(&run, settled);
        self.settle_limits(ix, settled, &run, awaiting.is_some());
        if self.entries[ix.at()].has_alternatives {
            self.settle_pick(ix, settled, awaiting.is_some());
        }
        if let Some(awaiting) = awaiting {
            self.keep_awaiting(ix, run, awaiting, settled.fault.as_ref());
            return;
        }
        let entry = &mut self.entries[ix.at()];
        let (priority, deadline, seq) = (entry.priority, entry.deadline, entry.seq);
        if !matches!(settled.effect, SettleEffect::Ended { .. } | SettleEffect::Held) && deadline != Time::MAX
        {
            self.deadlines.insert((deadline, seq));
        }
        match &settled.effect {
            SettleEffect::Ended { state, hold } => {
                self.end(ix, settled.at, *state, *hold, settled.fault.as_ref());
            }
            SettleEffect::Retry { at, reconcile_first: look_first } => {
                entry.attempt = entry.attempt.saturating_add(1);
                entry.reconcile_first = *look_first;
                entry.fault = settled.fault.clone().map(Box::new);
                let turn = self.draw_turn(priority);
                let group = &mut self.groups[group.at()];
                (group.turn, group.not_before) = (turn, *at);
            }
            SettleEffect::Throttled { until, closed } => {
                entry.fault = settled.fault.clone().map(Box::new);
                if closed.is_empty() {
                    self.groups[group.at()].not_before = *until;
                }
            }
            SettleEffect::Held => {
                entry.attempt = entry.attempt.saturating_add(1);
                entry.fault = settled.fault.clone().map(Box::new);
                let held = GroupHold { seq, since: settled.at, unknown: true, fault: settled.fault.clone() };
                self.hold(group, held);
            }
            SettleEffect::NextAlternative => {
                entry.attempt = entry.attempt.saturating_add(1);
                entry.fault = settled.fault.clone().map(Box::new);
            }
            SettleEffect::Returned | SettleEffect::Awaiting { .. } => {}
        }
    }

    /// Applies a settled claim to the alternative that it used.
    fn settle_pick(&mut self, ix: EntryIx, settled: &SettledClaim, is_awaiting: bool) {
        match &settled.effect {
            SettleEffect::Ended { state: EndState::Succeeded, .. } => self.learn_latency(ix, settled.at),
            SettleEffect::Ended { .. } => {}
            SettleEffect::NextAlternative => {
                if let Some(fault) = &settled.fault {
                    self.strike_out(ix, fault);
                }
                self.clear_pick(ix);
            }
            _ if is_awaiting => {}
            _ => self.clear_pick(ix),
        }
    }

    /// Keeps a claim that awaits its completion, with a new turn for its next poll.
    fn keep_awaiting(
        &mut self,
        ix: EntryIx,
        mut run: Box<RunningClaim>,
        awaiting: AwaitingImage,
        fault: Option<&Fault>,
    ) {
        let entry = &mut self.entries[ix.at()];
        let (group, priority) = (entry.group, entry.priority);
        if let Some(fault) = fault {
            entry.fault = Some(Box::new(fault.clone()));
        }
        (run.awaiting, run.poll) = (Some(Box::new(awaiting)), None);
        let turn = self.draw_turn(priority);
        let group = &mut self.groups[group.at()];
        (group.turn, group.run) = (turn, Some(run));
    }

    /// Applies a settled claim to the limits it charged and to those mentioned in its response. A
    /// claim that awaits its completion keeps its slots of caps; its calls are counted by the
    /// buckets when they are sent, so its end means nothing to them.
    fn settle_limits(&mut self, ix: EntryIx, settled: &SettledClaim, run: &RunningClaim, keeps_slots: bool) {
        let entry = &self.entries[ix.at()];
        let (charges, has_free_polls) = (Arc::clone(&entry.charges), entry.has_free_polls());
        for ((limit, cost), mark) in charges.iter().zip(&run.marks) {
            self.stale.push(*limit);
            let limit = &mut self.limits[limit.at()];
            match &mut limit.meter {
                Meter::Cap(_) if keeps_slots => {}
                Meter::Cap(cap) => {
                    cap.release(settled.fence);
                }
                Meter::Breaker(breaker) => {
                    // It counts a job only until it is accepted.
                    if run.awaiting.is_none() {
                        breaker.release(*mark);
                    }
                    limit.name_cause(settled);
                }
                Meter::Bucket(_) if !run.is_metered(has_free_polls) => {}
                Meter::Bucket(bucket) => {
                    match &settled.effect {
                        SettleEffect::Returned => bucket.return_unsent(*mark, cost.micro, settled.at),
                        _ => bucket.mark_finished(*mark, settled.at),
                    }
                    let is_awaiting = matches!(settled.effect, SettleEffect::Awaiting { .. });
                    if matches!(settled.effect, SettleEffect::Ended { .. })
                        || is_awaiting && settled.fault.is_none()
                    {
                        bucket.succeed();
                        limit.closure = None;
                    }
                    let is_told = |hint: &Hint| hint.limit == limit.name && hint.remaining.is_some();
                    if !settled.hints.iter().any(is_told) {
                        bucket.miss_report();
                    }
                    for hint in settled.hints.iter().filter(|hint| hint.limit == limit.name) {
                        if let Some(spent) = hint.spent {
                            bucket.settle(*mark, cost.micro, spent, settled.at);
                        }
                        // An operator's figures stand; from the response only the remaining amount
                        // counts then.
                        let learns = limit.source != LimitSource::Operator;
                        let (capacity, refill_per_s) = (hint.capacity, hint.refill_per_s);
                        let figures = if learns { (capacity, refill_per_s) } else { (None, None) };
                        let heard = Hint { capacity: figures.0, refill_per_s: figures.1, ..hint.clone() };
                        bucket.observe(&heard, *mark, settled.at);
                        if figures.0.is_some() || figures.1.is_some() {
                            limit.source = LimitSource::Learned;
                        }
                    }
                }
            }
        }
        if let SettleEffect::Throttled { until, closed } = &settled.effect {
            let accepted_at = entry.at;
            for name in closed {
                let Some(limit) = self.by_limit.get(name).copied() else { continue };
                let cost = charges.iter().find(|(of, _)| *of == limit).map_or(0, |(_, cost)| cost.micro);
                self.limits[limit.at()].throttle((*until, cost), settled, accepted_at);
                self.stale.push(limit);
            }
        }
    }

    /// Removes an operation from its group for good.
    pub(super) fn end(&mut self, ix: EntryIx, at: Time, state: EndState, hold: bool, fault: Option<&Fault>) {
        let was_head = self.entries[ix.at()].prev.is_none();
        let mut entry = self.unlink(ix);
        self.counters.ended[state as usize] += 1;
        let group = &mut self.groups[entry.group.at()];
        if group.held.as_ref().is_some_and(|held| held.unknown && held.seq == entry.seq) {
            self.release(entry.group);
            // An operator resolved it.
            if let Some(fault) = &mut entry.fault {
                fault.may_have_happened = false;
            }
        }
        if hold {
            let fault = fault.cloned().or_else(|| entry.fault.map(|fault| *fault));
            self.hold(entry.group, GroupHold { seq: entry.seq, since: at, unknown: false, fault });
        }
        if was_head && let Some(next) = self.groups[entry.group.at()].head {
            let turn = self.draw_turn(self.entries[next.at()].priority);
            self.groups[entry.group.at()].turn = turn;
        }
    }

    pub(super) fn repeat(&mut self, ix: EntryIx) {
        let entry = &mut self.entries[ix.at()];
        let (group, priority) = (entry.group, entry.priority);
        entry.reconcile_first = false;
        if entry.deadline != Time::MAX {
            // The operator's decision overrides the old deadline.
            entry.deadline = Time::MAX;
        }
        self.release(group);
        self.groups[group.at()].turn = self.draw_turn(priority);
    }

    /// Holds a group. The first hold stands until an operator acts: a later failure does not hide
    /// an unknown outcome.
    pub(super) fn hold(&mut self, ix: GroupIx, held: GroupHold) {
        let group = &mut self.groups[ix.at()];
        if group.held.is_some() {
            return;
        }
        self.unknown.extend(held.unknown.then_some(held.seq));
        self.stopped.insert(Arc::clone(&group.name));
        self.held.insert(Arc::clone(&group.name));
        group.held = Some(Box::new(held));
    }

    pub(super) fn release(&mut self, ix: GroupIx) {
        let group = &mut self.groups[ix.at()];
        if let Some(held) = group.held.take() {
            self.unknown.remove(&held.seq);
            self.held.remove(&group.name);
        }
        if group.paused.is_none() {
            self.stopped.remove(&group.name);
        }
    }
}
