//! The placement of a group: it is queued in exactly one structure and moves when its state
//! changes. Turns decide which group goes first. None of this is in the log, because it can be
//! derived from what is.

use super::entry::Cost;
use super::entry::EntryIx;
use super::group::{Group, GroupIx, GroupPlacement};
use super::limit::{LimitIx, LimitWake, first_waiters};
use super::{Entry, Model};
use crate::bucket::Readiness;
use crate::id::Turn;
use crate::time::Time;

/// How many turns ahead each priority starts. No group starves, because later turns eventually pass
/// even the highest priority.
const HEAD_START: [u64; 5] = [0, 1 << 10, 1 << 20, 1 << 30, 1 << 40];

/// The first turn: no head start reaches below zero.
pub(super) const FIRST_TURN: Turn = Turn(1 << 41);

impl Model {
    /// Draws a turn for a group whose head has this priority. No two turns are equal.
    pub(super) fn draw_turn(&mut self, priority: u8) -> Turn {
        let ticket = self.counters.next_turn.0;
        self.counters.next_turn = Turn(ticket + 1);
        let ahead = HEAD_START[usize::from(priority).min(HEAD_START.len() - 1)];
        Turn((ticket - ahead) * 8 + u64::from(priority.min(7)))
    }

    pub(super) fn head_of(&self, group: &Group) -> Option<&Entry> {
        group.head.map(|ix| &self.entries[ix.at()])
    }

    /// Removes a group from the structure it is in.
    pub(super) fn dequeue_group(&mut self, ix: GroupIx) {
        let group = &mut self.groups[ix.at()];
        let (pool, turn) = (group.pool, group.turn);
        if let Some((run, awaiting)) = group.run.as_ref().and_then(|run| Some((run, run.awaiting()?))) {
            self.awaiting.remove(&(awaiting.until, run.fence));
        }
        match std::mem::replace(&mut group.placement, GroupPlacement::Unqueued) {
            GroupPlacement::Unqueued => {}
            GroupPlacement::Ready => {
                self.ready_polls -= usize::from(group.run.is_some());
                self.ready.remove(&(pool, turn, ix));
            }
            GroupPlacement::Asleep(until) => {
                self.asleep.remove(&(until, ix));
            }
            GroupPlacement::Running => {
                if let Some(run) = &group.run {
                    self.running.remove(&(run.until, run.fence));
                }
            }
            GroupPlacement::Waiting(limit) => {
                self.limits[limit.at()].waiting.remove(&(pool, turn, ix));
                self.unwatch_deadline(ix);
                self.stale.push(limit);
            }
            GroupPlacement::Parked(chain) => {
                self.chains[chain.at()].waiting.remove(&(pool, turn, ix));
                self.stale_chains.push(chain);
            }
        }
    }

    /// Queues a group, which is in no structure, where it belongs; removes it when it holds no more
    /// state.
    pub(super) fn enqueue_group(&mut self, ix: GroupIx, now: Time) {
        let group = &mut self.groups[ix.at()];
        debug_assert_eq!(group.placement, GroupPlacement::Unqueued);
        if let Some(run) = group.run.as_ref().filter(|run| run.has_worker()) {
            group.placement = GroupPlacement::Running;
            self.running.insert((run.until, run.fence), ix);
        } else if group.run.is_some() {
            self.enqueue_awaiting(ix, now);
        } else if group.head.is_none() && !group.is_stopped() {
            let name = std::sync::Arc::clone(&group.name);
            self.by_group.remove(&name);
            self.groups.remove(ix.at());
        } else if group.head.is_none() || group.is_stopped() {
            // An operator must act, or there is nothing to do.
        } else if group.not_before > now {
            group.placement = GroupPlacement::Asleep(group.not_before);
            self.asleep.insert((group.not_before, ix));
        } else {
            self.enqueue_ready(ix);
        }
    }

    /// Queues a group, which is in no structure, among those that may run now.
    pub(super) fn enqueue_ready(&mut self, ix: GroupIx) {
        let pool = self.pool_of(&self.groups[ix.at()]);
        let group = &mut self.groups[ix.at()];
        debug_assert_eq!(group.placement, GroupPlacement::Unqueued);
        (group.placement, group.pool) = (GroupPlacement::Ready, pool);
        self.ready.insert((pool, group.turn, ix));
        self.ready_polls += usize::from(group.run.is_some());
        self.index_awaiting(ix);
    }

    /// Queues a group, which is in no structure, on a limit it must wait for.
    pub(super) fn enqueue_on_limit(&mut self, ix: GroupIx, limit: LimitIx) {
        let pool = self.pool_of(&self.groups[ix.at()]);
        let group = &mut self.groups[ix.at()];
        debug_assert_eq!(group.placement, GroupPlacement::Unqueued);
        (group.placement, group.pool) = (GroupPlacement::Waiting(limit), pool);
        self.limits[limit.at()].waiting.insert((pool, group.turn, ix));
        self.watch_deadline(ix);
        self.stale.push(limit);
        self.index_awaiting(ix);
    }

    /// Recomputes when each changed limit, and each chain that contains one, can serve its first
    /// waiting groups, and examines those again that it can no longer serve in time.
    pub(super) fn rearm(&mut self, now: Time) {
        while let Some(ix) = self.stale.pop() {
            // A limit that was removed meanwhile has no group waiting.
            if !self.limits.contains(ix.at()) {
                continue;
            }
            self.stale_chains.extend_from_slice(&self.limits[ix.at()].chains);
            self.wake_too_late(ix, now);
            let limit = &self.limits[ix.at()];
            let mut armed = LimitWake::default();
            for (pool, turn, group) in first_waiters(&limit.waiting) {
                match limit.ready(self.cost_of(group, ix).unwrap_or_default(), now) {
                    // A cost that can never be granted is examined now, and the operation is ended.
                    Readiness::Now | Readiness::Never => armed.due.push((pool, turn)),
                    Readiness::At(at) => armed.at = Some(armed.at.map_or(at, |earlier| earlier.min(at))),
                    Readiness::AfterAnswer => {}
                }
            }
            self.arm(ix, armed);
        }
        if !self.stale_chains.is_empty() {
            self.rearm_chains(now);
        }
    }

    fn arm(&mut self, ix: LimitIx, armed: LimitWake) {
        let before = &self.limits[ix.at()].armed;
        if *before == armed {
            return;
        }
        if let Some(at) = before.at {
            self.wakes.remove(&(at, ix));
        }
        for (pool, turn) in &before.due {
            self.due.remove(&(*pool, *turn, ix));
        }
        self.wakes.extend(armed.at.map(|at| (at, ix)));
        self.due.extend(armed.due.iter().map(|(pool, turn)| (*pool, *turn, ix)));
        self.limits[ix.at()].armed = armed;
    }

    /// The cost that a group's head charges to a limit.
    pub(super) fn cost_of(&self, group: GroupIx, limit: LimitIx) -> Option<Cost> {
        let group = &self.groups[group.at()];
        let charge = self.head_of(group)?.charges.iter().find(|(ix, _)| *ix == limit);
        charge.map(|(_, cost)| if group.run.is_some() { cost.of_poll() } else { *cost })
    }

    /// Appends an entry to its group's queue.
    pub(super) fn link(&mut self, ix: EntryIx) {
        let group = self.entries[ix.at()].group;
        let group = &mut self.groups[group.at()];
        let tail = group.tail.replace(ix);
        match tail {
            Some(tail) => self.entries[tail.at()].next = Some(ix),
            None => group.head = Some(ix),
        }
        self.entries[ix.at()].prev = tail;
        group.depth += 1;
    }

    /// Adds an entry to the head of its group's queue. The group must be in no structure.
    pub(super) fn link_first(&mut self, ix: EntryIx) {
        let group = self.entries[ix.at()].group;
        let group = &mut self.groups[group.at()];
        let head = group.head.replace(ix);
        match head {
            Some(head) => self.entries[head.at()].prev = Some(ix),
            None => group.tail = Some(ix),
        }
        self.entries[ix.at()].next = head;
        group.depth += 1;
    }

    /// Removes an entry from its group's queue, at any position, and from memory. The group must be
    /// in no structure.
    pub(super) fn unlink(&mut self, ix: EntryIx) -> Entry {
        let entry = self.entries.remove(ix.at());
        self.by_seq.remove(entry.seq);
        if entry.has_alternatives {
            self.drop_route(entry.seq);
        }
        for (limit, _) in entry.charges.iter() {
            self.limits[limit.at()].users -= 1;
        }
        self.deadlines.remove(&(entry.deadline, entry.seq));
        let group = &mut self.groups[entry.group.at()];
        group.depth -= 1;
        match entry.prev {
            Some(prev) => self.entries[prev.at()].next = entry.next,
            None => {
                group.head = entry.next;
                group.not_before = entry.next.map_or(Time::ZERO, |next| self.entries[next.at()].not_before);
            }
        }
        match entry.next {
            Some(next) => self.entries[next.at()].prev = entry.prev,
            None => group.tail = entry.prev,
        }
        entry
    }
}
