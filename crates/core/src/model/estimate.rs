//! Estimates when a waiting operation will start. It adds up what the operations that go first will
//! take from the limits, those ahead in its own group and those of the groups it takes turns with,
//! and computes when the limits can have granted that much. It ignores how long the calls take, and
//! operations that are accepted later.

use std::collections::BTreeMap;

use super::entry::{Entry, EntryIx};
use super::group::{Group, GroupIx, GroupPlacement};
use super::limit::{LimitIx, Meter};
use super::{Limit, Model};
use crate::bounds;
use crate::bucket::Bucket;
use crate::id::Turn;
use crate::time::Time;

/// The maximum number of operations of other groups that are counted for one limit; the rest are
/// assumed to cost the same.
const OTHERS_COUNTED_MAX: usize = 10_000;

/// What operations take from each limit, in micro-tokens.
type LimitDemand = BTreeMap<LimitIx, u64>;

impl Model {
    /// The expected start of an operation behind others; `None` when an operator must act first, or
    /// when nothing known determines how long it takes.
    pub(super) fn starts_at(&self, ix: EntryIx, now: Time) -> Option<Time> {
        let group_ix = self.entries[ix.at()].group;
        let group = &self.groups[group_ix.at()];
        if group.is_stopped() {
            return None;
        }
        if let GroupPlacement::Waiting(limit) = group.placement
            && matches!(self.limits[limit.at()].meter, Meter::Cap(_))
        {
            return None;
        }
        let line = self.queue_up_to(group, ix)?;
        let mut takings = LimitDemand::new();
        for entry in &line {
            self.add(&mut takings, entry);
        }
        let mut expected = now;
        for (limit, own) in &takings {
            let bucket = match &self.limits[limit.at()].meter {
                Meter::Bucket(bucket) => bucket,
                Meter::Cap(_) => continue,
                Meter::Breaker(breaker) => {
                    expected = expected.max(breaker.open_until);
                    continue;
                }
            };
            let others = self.taken_by_others(*limit, group_ix, line.len());
            expected = expected.max(bucket.all_granted_at(own.saturating_add(others), now)?);
        }
        expected = expected.max(self.start_after_delays(group, &line, takings, now)?);
        (expected > now).then_some(expected)
    }

    /// The operations of a group that have to start, from the first up to this one.
    fn queue_up_to(&self, group: &Group, ix: EntryIx) -> Option<Vec<&Entry>> {
        let back = std::iter::successors(Some(ix), |ix| self.entries[ix.at()].prev);
        let mut line: Vec<_> =
            back.take(bounds::POSITION_COUNTED_MAX + 1).map(|ix| &self.entries[ix.at()]).collect();
        if line.last().is_some_and(|first| first.prev.is_some()) {
            return None;
        }
        if group.run.is_some() {
            line.pop();
        }
        line.reverse();
        Some(line)
    }

    fn add(&self, takings: &mut LimitDemand, entry: &Entry) {
        for (limit, cost) in entry.charges.iter() {
            let sum = takings.entry(*limit).or_default();
            *sum = sum.saturating_add(self.limits[limit.at()].clamp_cost(*cost));
        }
    }

    /// When the last of a queue can start if delayed operations start on time, with limits that are
    /// full by then.
    fn start_after_delays(
        &self,
        group: &Group,
        line: &[&Entry],
        mut left: LimitDemand,
        now: Time,
    ) -> Option<Time> {
        let (mut latest, mut expected) = (now, now);
        for (place, entry) in line.iter().enumerate() {
            let is_head = place == 0 && group.run.is_none();
            let not_before = if is_head { group.not_before } else { entry.not_before };
            // An operation behind a later one starts after it anyway.
            if not_before > latest {
                latest = not_before;
                expected = expected.max(latest);
                for (limit, sum) in &left {
                    if let Some(full) = Bucket::new(self.limits[limit.at()].shape(), latest) {
                        expected = expected.max(full.all_granted_at(*sum, latest)?);
                    }
                }
            }
            for (limit, cost) in entry.charges.iter() {
                let taken = self.limits[limit.at()].clamp_cost(*cost);
                left.entry(*limit).and_modify(|sum| *sum = sum.saturating_sub(taken));
            }
        }
        Some(expected)
    }

    /// What other groups take from a limit before a group has started `starts` operations. Groups
    /// take turns, so each starts as many, or one less when its turn is later.
    fn taken_by_others(&self, ix: LimitIx, group: GroupIx, starts: usize) -> u64 {
        let limit = &self.limits[ix.at()];
        let own = &self.groups[group.at()];
        let is_later = |turn: Turn, other: GroupIx| own.run.is_none() && (turn, other) > (own.turn, group);
        let waiting = limit.waiting.iter().chain(&self.ready).map(|(_, turn, other)| (*turn, *other));
        let waiting = waiting.map(|(turn, other)| (other, starts - usize::from(is_later(turn, other))));
        // A running group draws a new turn, behind those that wait.
        let running = self.running.values().map(|other| (*other, starts - 1));
        let (mut sum, mut groups, mut counted) = (0_u64, 0_usize, 0_usize);
        for (other, starts) in waiting.chain(running).filter(|(other, _)| *other != group) {
            if counted >= OTHERS_COUNTED_MAX {
                break;
            }
            let (taken, looked_at) = self.taken_by(other, ix, limit, starts);
            sum = sum.saturating_add(taken);
            counted += looked_at;
            groups += 1;
        }
        let all = (limit.waiting.len() + self.ready.len() + self.running.len()).saturating_sub(1);
        if counted < OTHERS_COUNTED_MAX || groups >= all {
            return sum;
        }
        let scaled = u128::from(sum) * all as u128 / groups.max(1) as u128;
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }

    /// What the next `starts` operations of a group take from a limit, and how many were examined.
    fn taken_by(&self, group: GroupIx, ix: LimitIx, limit: &Limit, starts: usize) -> (u64, usize) {
        let group = &self.groups[group.at()];
        let head = group.head.filter(|_| group.run.is_none());
        let first = head.or_else(|| self.entries[group.head?.at()].next);
        let line = std::iter::successors(first, |ix| self.entries[ix.at()].next);
        let (mut sum, mut looked_at) = (0_u64, 0);
        for entry in line.take(starts.min(OTHERS_COUNTED_MAX)).map(|ix| &self.entries[ix.at()]) {
            looked_at += 1;
            let charge = entry.charges.iter().find(|(of, _)| *of == ix);
            sum = sum.saturating_add(charge.map_or(0, |(_, cost)| limit.clamp_cost(*cost)));
        }
        (sum, looked_at)
    }
}
