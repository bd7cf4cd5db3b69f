//! Read-only views of a partition: active operations, groups, limits and counts.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use super::group::GroupPlacement;
use super::limit::Meter;
use super::{Entry, Group, Limit, Model};
use crate::bucket::Budget;
use crate::fact::{GroupHold, LimitClosure, LimitShape, LimitSource};
use crate::fault::Fault;
use crate::id::{Fence, Seq};
use crate::state::State;
use crate::time::Time;

/// An operation that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveOperation {
    /// Its sequence number.
    pub seq: Seq,
    /// When it was accepted.
    pub at: Time,
    /// Its group.
    pub group: Arc<str>,
    /// The kind of worker that executes it.
    pub kind: Arc<str>,
    /// Its current state.
    pub state: State,
    /// Attempts spent, including the one in flight.
    pub attempt: u16,
    /// The last fault.
    pub fault: Option<Fault>,
    /// The time by which it must start.
    pub deadline: Option<Time>,
    /// Whether a cancel was requested that has not ended it yet.
    pub cancel_requested: bool,
}

/// The number of operations in each state. Ended operations are counted since the partition began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Behind others in the group, or waiting for a free worker.
    pub queued: u64,
    /// Heads of groups that wait for something.
    pub waiting: u64,
    /// In flight, or awaiting their completion.
    pub running: u64,
    /// Of those in flight, the ones whose job ends elsewhere and that no worker holds.
    pub awaiting: u64,
    /// Of unknown outcome.
    pub unknown: u64,
    /// Ended successfully.
    pub succeeded: u64,
    /// Failed.
    pub failed: u64,
    /// Canceled.
    pub canceled: u64,
    /// Groups with at least one operation.
    pub groups: u64,
    /// Groups that wait for an operator.
    pub stopped: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.queued += more.queued;
        self.waiting += more.waiting;
        self.running += more.running;
        self.awaiting += more.awaiting;
        self.unknown += more.unknown;
        self.succeeded += more.succeeded;
        self.failed += more.failed;
        self.canceled += more.canceled;
        self.groups += more.groups;
        self.stopped += more.stopped;
    }
}

/// A view of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupView {
    /// Its name.
    pub name: Arc<str>,
    /// The number of its operations.
    pub depth: u32,
    /// Its first operation.
    pub head: Option<ActiveOperation>,
    /// Who paused it, when and why.
    pub paused: Option<(Arc<str>, Time, Arc<str>)>,
    /// Why it waits for an operator.
    pub held: Option<GroupHold>,
}

/// A view of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitView {
    /// Its name.
    pub name: Arc<str>,
    /// Its shape.
    pub shape: LimitShape,
    /// Where its figures come from.
    pub source: LimitSource,
    /// Whether an operation opened it: there may be any number of those, and they are removed
    /// automatically.
    pub opened: bool,
    /// What is left now: micro-tokens, or slots; of a gate or a breaker, the number of calls that
    /// may be in flight, 0 for any number.
    pub level: u64,
    /// Calls in flight.
    pub in_flight: u32,
    /// Groups that wait for it.
    pub waiting: usize,
    /// Groups that wait for any of several alternatives, at least one of which charges it.
    pub parked: usize,
    /// Operations that charge it and have not ended, and distinct lists of alternatives that do.
    pub users: u32,
    /// The time until which the upstream closed it.
    pub frozen_until: Option<Time>,
    /// When it is full again, for a window.
    pub reset_at: Option<Time>,
    /// The length of a window, as configured, assumed or seen in responses.
    pub period: Option<Duration>,
    /// Failures in a row that count now, for a breaker.
    pub failures: u32,
    /// Why it is closed, or lets one call through at a time after it was.
    pub closure: Option<LimitClosure>,
}

impl LimitView {
    /// How many groups wait for it, or for any of several alternatives of which one charges it.
    #[must_use]
    pub const fn waiters(&self) -> usize {
        self.waiting + self.parked
    }

    /// Since when it has been closed, or has let one call at a time through to see whether it may
    /// open; `None` once a breaker lets more through.
    #[must_use]
    pub fn failing_since(&self) -> Option<Time> {
        let is_wider = matches!(self.shape, LimitShape::Breaker { .. }) && self.level != 1;
        self.closure.as_ref().filter(|_| !is_wider).map(|closure| closure.since)
    }
}

impl Model {
    /// Returns an operation that has not ended.
    #[must_use]
    pub fn active(&self, seq: Seq) -> Option<ActiveOperation> {
        self.entry_of(seq).map(|entry| self.view(entry))
    }

    /// Returns the operation that was accepted under a key, while the key is remembered.
    #[must_use]
    pub fn find_by_key(&self, key: u128, now: Time) -> Option<Seq> {
        let now = self.now(now);
        self.keys.get(&key).filter(|known| known.expires > now).map(|known| known.seq)
    }

    /// Iterates over the operations that have not ended, newest first, with sequence numbers below
    /// `before`.
    pub fn actives(&self, before: Option<Seq>) -> impl Iterator<Item = ActiveOperation> + '_ {
        self.by_seq.newest_first(before).map(|(_, ix)| self.view(&self.entries[ix.at()]))
    }

    /// Iterates over the operations of a group, in order.
    pub fn group_queue(&self, group: &str) -> impl Iterator<Item = ActiveOperation> + '_ {
        let head = self.by_group.get(group).and_then(|ix| self.groups[ix.at()].head);
        std::iter::successors(head, |ix| self.entries[ix.at()].next)
            .map(|ix| self.view(&self.entries[ix.at()]))
    }

    /// Returns the last operation of a group.
    #[must_use]
    pub fn group_tail(&self, group: &str) -> Option<Seq> {
        let tail = self.groups[self.by_group.get(group)?.at()].tail?;
        Some(self.entries[tail.at()].seq)
    }

    /// Returns counters that are kept up to date, without a scan.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let entries = self.entries.len() as u64;
        let running = (self.running.len() + self.awaiting.len()) as u64;
        let empty = self.stopped.iter().filter(|name| self.depth(name) == 0).count() as u64;
        let groups = self.groups.len() as u64 - empty;
        let unknown = self.unknown.len() as u64;
        let ready = (self.ready.len() - self.ready_polls) as u64;
        let waiting = groups.saturating_sub(running + unknown + ready);
        let [succeeded, failed, canceled] = self.counters.ended;
        Counts {
            queued: entries.saturating_sub(running + unknown + waiting),
            waiting,
            running,
            awaiting: self.awaiting.len() as u64,
            unknown,
            succeeded,
            failed,
            canceled,
            groups,
            stopped: self.stopped.len() as u64,
        }
    }

    fn depth(&self, name: &str) -> u32 {
        self.by_group.get(name).map_or(0, |ix| self.groups[ix.at()].depth)
    }

    /// Returns every claim that a worker holds.
    #[must_use]
    pub fn claims(&self) -> Vec<(Seq, Fence)> {
        let claim = |ix: &super::GroupIx| {
            let group = &self.groups[ix.at()];
            Some((self.head_of(group)?.seq, group.run.as_ref()?.worker()?))
        };
        self.running.values().filter_map(claim).collect()
    }

    /// The number of facts in a snapshot.
    #[must_use]
    pub fn snapshot_len(&self) -> u64 {
        let parts = [
            self.entries.len(),
            self.routes.len(),
            self.groups.len(),
            self.awaiting.len(),
            self.limits.len(),
            self.keys.len(),
        ];
        parts.iter().sum::<usize>() as u64
    }

    /// Returns a group.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<GroupView> {
        self.by_group.get(name).map(|ix| self.group_view(&self.groups[ix.at()]))
    }

    /// Iterates over groups by name, after `after`.
    pub fn groups<'a>(&'a self, after: Option<&'a str>) -> impl Iterator<Item = GroupView> + 'a {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_group
            .range::<str, _>((start, Bound::Unbounded))
            .map(|(_, ix)| self.group_view(&self.groups[ix.at()]))
    }

    /// Iterates over groups that wait for an operator, by name, after `after`.
    pub fn stopped_groups<'a>(&'a self, after: Option<&'a str>) -> impl Iterator<Item = GroupView> + 'a {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.stopped.range::<str, _>((start, Bound::Unbounded)).filter_map(|name| self.group(name))
    }

    /// Iterates over groups that are held and not paused, by name, after `after`.
    pub fn held_groups<'a>(&'a self, after: Option<&'a str>) -> impl Iterator<Item = GroupView> + 'a {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let held = self.held.range::<str, _>((start, Bound::Unbounded));
        held.filter_map(|name| self.group(name)).filter(|group| group.paused.is_none())
    }

    /// Iterates over all limits, as of `now`.
    pub fn limits(&self, now: Time) -> impl Iterator<Item = LimitView> + '_ {
        let now = self.now(now);
        self.limits.iter().map(move |(_, limit)| self.limit_view(limit, now))
    }

    /// Iterates over the limits that no operation opened, as of `now`.
    pub fn lasting_limits(&self, now: Time) -> impl Iterator<Item = LimitView> + '_ {
        let now = self.now(now);
        let lasting = self.limits.iter().map(|(_, limit)| limit).filter(|limit| !limit.is_opened());
        lasting.map(move |limit| self.limit_view(limit, now))
    }

    /// The number of limits that operations opened.
    #[must_use]
    pub fn opened_limit_count(&self) -> usize {
        self.opened.len()
    }

    /// Returns one limit.
    #[must_use]
    pub fn limit(&self, name: &str, now: Time) -> Option<LimitView> {
        let now = self.now(now);
        self.by_limit.get(name).map(|ix| self.limit_view(&self.limits[ix.at()], now))
    }

    /// Returns the kind of an operation that has not ended.
    #[must_use]
    pub fn kind(&self, seq: Seq) -> Option<&Arc<str>> {
        self.entry_of(seq).map(|entry| &self.kinds[usize::from(entry.kind)])
    }

    /// Iterates over the names of the limits that an operation charges.
    pub fn charged_limits(&self, seq: Seq) -> impl Iterator<Item = &Arc<str>> + '_ {
        let entry = self.entry_of(seq).into_iter();
        entry.flat_map(move |entry| entry.charges.iter().map(move |(limit, _)| &self.limits[limit.at()].name))
    }

    pub(super) fn view(&self, entry: &Entry) -> ActiveOperation {
        let group = &self.groups[entry.group.at()];
        let state = state_of(group, entry);
        ActiveOperation {
            seq: entry.seq,
            at: entry.at,
            group: Arc::clone(&group.name),
            kind: Arc::clone(&self.kinds[usize::from(entry.kind)]),
            state,
            attempt: entry.attempt + u16::from(state == State::Running),
            fault: entry.fault.as_deref().cloned(),
            deadline: (entry.deadline != Time::MAX).then_some(entry.deadline),
            cancel_requested: entry.cancel_requested,
        }
    }

    fn group_view(&self, group: &Group) -> GroupView {
        GroupView {
            name: Arc::clone(&group.name),
            depth: group.depth,
            head: self.head_of(group).map(|head| self.view(head)),
            paused: group.paused.as_deref().map(|p| (Arc::clone(&p.by), p.since, Arc::clone(&p.reason))),
            held: group.held.as_deref().cloned(),
        }
    }

    fn limit_view(&self, limit: &Limit, now: Time) -> LimitView {
        let (level, in_flight, frozen_until, reset_at) = match &limit.meter {
            Meter::Cap(cap) => {
                (u64::from(cap.at_once.saturating_sub(cap.held())), cap.held(), Time::ZERO, Time::ZERO)
            }
            Meter::Breaker(breaker) => {
                (u64::from(breaker.at_once), breaker.in_flight, breaker.open_until, Time::ZERO)
            }
            Meter::Bucket(bucket) => {
                let (level, reset_at) = match &bucket.budget {
                    Budget::Drip(paced) => (paced.available(now).saturating_sub(bucket.held()), Time::ZERO),
                    Budget::Window(window) => (window.refreshed(now).remaining, window.reset_at),
                    Budget::Gate(gate) => (u64::from(gate.at_once), Time::ZERO),
                };
                (level, bucket.in_flight, bucket.frozen_until, reset_at)
            }
        };
        LimitView {
            name: Arc::clone(&limit.name),
            shape: limit.shape(),
            source: limit.source,
            opened: limit.is_opened(),
            level,
            in_flight,
            waiting: limit.waiting.len(),
            parked: limit.chains.iter().map(|chain| self.chains[chain.at()].waiting.len()).sum(),
            users: limit.users,
            frozen_until: (frozen_until > now).then_some(frozen_until),
            reset_at: (reset_at > now).then_some(reset_at),
            period: limit.period(),
            failures: match &limit.meter {
                Meter::Breaker(breaker) => breaker.failures(now),
                Meter::Bucket(_) | Meter::Cap(_) => 0,
            },
            closure: limit.current_closure(now).cloned(),
        }
    }
}

pub(super) fn state_of(group: &Group, entry: &Entry) -> State {
    if entry.prev.is_some() {
        return State::Queued;
    }
    if group.held.as_ref().is_some_and(|held| held.unknown && held.seq == entry.seq) {
        return State::Unknown;
    }
    if group.run.is_some() {
        return State::Running;
    }
    match group.placement {
        GroupPlacement::Running => State::Running,
        GroupPlacement::Ready => State::Queued,
        GroupPlacement::Unqueued
        | GroupPlacement::Asleep(_)
        | GroupPlacement::Waiting(_)
        | GroupPlacement::Parked(_) => State::Waiting,
    }
}
