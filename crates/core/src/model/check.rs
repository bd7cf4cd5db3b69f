//! Invariants that must hold after every step. The check is linear in the size of the partition:
//! for tests and simulations.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::group::GroupPlacement;
use super::limit::Meter;
use super::pool::{LOCAL, PoolIx, first_of};
use super::{Entry, Group, Limit, Model};
use crate::bounds::AWAIT_MAX;
use crate::bucket::{Budget, Readiness};
use crate::time::Time;

impl Model {
    /// Checks every invariant.
    ///
    /// # Errors
    /// Describes the first invariant that does not hold.
    pub fn check(&self) -> Result<(), String> {
        self.check_lines()?;
        self.check_places()?;
        self.check_awaiting()?;
        self.check_held()?;
        self.check_chains()?;
        self.check_limits()
    }

    /// Checks, after a take that was not cut short, that no group waits for what is already free,
    /// of those that the owner's own workers execute.
    ///
    /// # Errors
    /// Describes the first group that does.
    pub fn check_no_stuck_groups(&self, now: Time) -> Result<(), String> {
        let now = self.now(now);
        self.check_no_stuck_pool(LOCAL, now)
    }

    /// The same for a remote kind.
    ///
    /// # Errors
    /// Describes the first group that does.
    pub fn check_no_stuck_kind(&self, kind: &Arc<str>, now: Time) -> Result<(), String> {
        let now = self.now(now);
        self.remote_pool(kind).map_or(Ok(()), |pool| self.check_no_stuck_pool(pool, now))
    }

    fn check_no_stuck_pool(&self, pool: PoolIx, now: Time) -> Result<(), String> {
        if let Some((_, ix)) = first_of(&self.ready, pool, super::GroupIx(0)) {
            return Err(format!("{} is ready and was not taken", self.groups[ix.at()].name));
        }
        for (_, chain) in &self.chains {
            let Some((turn, group)) = chain.first_waiter(pool) else { continue };
            if self.chain_readiness(&chain.key, pool, turn, now) == Readiness::Now {
                let name = &self.groups[group.at()].name;
                return Err(format!("{name} is parked although one of its alternatives is free"));
            }
        }
        for (ix, limit) in &self.limits {
            let Some((_, group)) = limit.first_waiter(pool) else { continue };
            let cost = self.cost_of(group, super::LimitIx(ix as u32)).unwrap_or_default();
            if limit.ready(cost, now) == Readiness::Now {
                return Err(format!(
                    "{} waits for {}, which is free",
                    self.groups[group.at()].name,
                    limit.name
                ));
            }
        }
        Ok(())
    }

    fn check_lines(&self) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for (name, ix) in &self.by_group {
            let group = &self.groups[ix.at()];
            let (mut depth, mut prev) = (0, None);
            for at in std::iter::successors(group.head, |ix| self.entries[ix.at()].next) {
                let entry = &self.entries[at.at()];
                if entry.group != *ix || entry.prev != prev {
                    return Err(format!("the queue of {name} is broken at {:?}", entry.seq));
                }
                if !seen.insert(entry.seq) {
                    return Err(format!("{:?} is in two queues", entry.seq));
                }
                (depth, prev) = (depth + 1, Some(at));
            }
            if group.tail != prev || group.depth != depth {
                return Err(format!("{name} has {depth} operations and says {}", group.depth));
            }
        }
        let known: BTreeSet<_> = self.by_seq.newest_first(None).map(|(seq, _)| seq).collect();
        if known != seen || self.entries.len() != seen.len() {
            return Err(format!("{} accepted, {} in queues", known.len(), seen.len()));
        }
        if seen.last().is_some_and(|last| *last >= self.counters.next_seq) {
            return Err("an operation has a seq that was not assigned".into());
        }
        Ok(())
    }

    fn check_places(&self) -> Result<(), String> {
        let mut filed = 0;
        for (name, ix) in &self.by_group {
            let group = &self.groups[ix.at()];
            let is_there = match group.placement {
                GroupPlacement::Unqueued => group.head.is_none() || group.is_stopped(),
                GroupPlacement::Ready => self.ready.contains(&(group.pool, group.turn, *ix)),
                GroupPlacement::Asleep(until) => self.asleep.contains(&(until, *ix)),
                GroupPlacement::Waiting(limit) => {
                    self.limits[limit.at()].waiting.contains(&(group.pool, group.turn, *ix))
                }
                GroupPlacement::Parked(chain) => {
                    let route = self.head_of(group).and_then(|head| self.routes.get(&head.seq));
                    group.run.is_none()
                        && route.is_some_and(|route| route.chain == chain)
                        && self.chains[chain.at()].waiting.contains(&(group.pool, group.turn, *ix))
                }
                GroupPlacement::Running => {
                    let run = group.run.as_ref().ok_or_else(|| format!("{name} runs without a claim"))?;
                    self.running.get(&(run.until, run.fence)) == Some(ix)
                        && run.worker().is_some_and(|fence| fence < self.counters.next_fence)
                }
            };
            let has_worker = group.run.as_ref().is_some_and(|run| run.has_worker());
            let is_queued = matches!(
                group.placement,
                GroupPlacement::Ready | GroupPlacement::Waiting(_) | GroupPlacement::Parked(_)
            );
            if is_queued && group.pool != self.pool_of(group) {
                return Err(format!("{name} is queued for other workers than those that execute its head"));
            }
            if !is_there || has_worker != (group.placement == GroupPlacement::Running) {
                return Err(format!("{name} is not in its placement: {:?}", group.placement));
            }
            if group.is_stopped() != self.stopped.contains(name) {
                return Err(format!("{name} is stopped and not listed, or the other way round"));
            }
            if group.head.is_none() && !group.is_stopped() {
                return Err(format!("{name} is kept without need"));
            }
            filed += usize::from(group.placement != GroupPlacement::Unqueued);
        }
        let waiting: usize = self.limits.iter().map(|(_, limit)| limit.waiting.len()).sum();
        let parked: usize = self.chains.iter().map(|(_, chain)| chain.waiting.len()).sum();
        let places = self.ready.len() + self.asleep.len() + self.running.len() + waiting + parked;
        if places != filed || self.groups.len() != self.by_group.len() {
            return Err(format!("{filed} groups are queued in {places} places"));
        }
        Ok(())
    }

    /// Checks that every claim without a worker has an end, within its bound, and waits for
    /// nothing but a poll.
    fn check_awaiting(&self) -> Result<(), String> {
        let (mut awaiting, mut ready_polls) = (0, 0);
        for (name, ix) in &self.by_group {
            let group = &self.groups[ix.at()];
            let Some(run) = &group.run else { continue };
            let Some(state) = &run.awaiting else { continue };
            if state.until > state.since.after(AWAIT_MAX) {
                return Err(format!("{name} awaits a completion for too long"));
            }
            if run.has_worker() {
                if run.poll.is_some_and(|poll| poll <= run.fence) {
                    return Err(format!("{name} is polled by the fence of its claim or an older one"));
                }
                continue;
            }
            if run.poll.is_some() {
                return Err(format!("{name} is polled without a worker"));
            }
            if self.awaiting.get(&(state.until, run.fence)) != Some(ix) {
                return Err(format!("{name} awaits a completion without an end"));
            }
            match group.placement {
                GroupPlacement::Asleep(at) if at <= state.until => {}
                GroupPlacement::Ready => ready_polls += 1,
                GroupPlacement::Waiting(limit)
                    if matches!(self.limits[limit.at()].meter, Meter::Bucket(_)) => {}
                other => return Err(format!("{name} awaits a completion in {other:?}")),
            }
            awaiting += 1;
        }
        if awaiting != self.awaiting.len() || ready_polls != self.ready_polls {
            return Err(format!("{awaiting} claims await a completion, {} have an end", self.awaiting.len()));
        }
        Ok(())
    }

    /// Checks that the index holds exactly the groups that need an operator.
    fn check_held(&self) -> Result<(), String> {
        let held = || {
            let groups = self.by_group.iter().map(|(name, ix)| (name, &self.groups[ix.at()].held));
            groups.filter_map(|(name, held)| Some((name, held.as_ref()?)))
        };
        if !held().map(|(name, _)| name).eq(&self.held) {
            return Err("a group is held and not listed, or the other way round".into());
        }
        let unknown: BTreeSet<_> =
            held().filter(|(_, held)| held.unknown).map(|(_, held)| held.seq).collect();
        let known = self.by_seq.newest_first(None).map(|(_, at)| &self.entries[at.at()]);
        let seen =
            known.filter(|entry| self.view(entry).state == crate::State::Unknown).map(|entry| entry.seq);
        if unknown != self.unknown || seen.collect::<BTreeSet<_>>() != self.unknown {
            return Err("an outcome is unknown and not listed, or the other way round".into());
        }
        Ok(())
    }

    /// The deadlines of waiting groups whose heads charge a limit.
    fn expected_watch(&self, limit: super::LimitIx) -> BTreeSet<(Time, super::GroupIx)> {
        let deadline = |ix: &super::GroupIx| {
            let group = &self.groups[ix.at()];
            let is_waiting = matches!(group.placement, GroupPlacement::Waiting(_)) && group.run.is_none();
            let head = self.head_of(group).filter(|_| is_waiting && self.cost_of(*ix, limit).is_some())?;
            Some((head.deadline, *ix)).filter(|_| head.deadline != Time::MAX)
        };
        self.by_group.values().filter_map(deadline).collect()
    }

    /// Checks that a slot of a cap is held by exactly the claims that charge it, each by its fence,
    /// that a bucket counts exactly those that a worker holds, and a breaker those that were
    /// granted since it last opened and are not answered.
    fn check_holders(&self, ix: usize, limit: &Limit) -> Result<(), String> {
        let charges_it = |head: &Entry| head.charges.iter().any(|(of, _)| of.at() == ix);
        let claims = self.by_group.values().map(|group| &self.groups[group.at()]);
        let claims = claims.filter(|group| self.head_of(group).is_some_and(charges_it));
        let claimed: Vec<&Group> = claims.filter(|group| group.run.is_some()).collect();
        let claims: Vec<_> = claimed.iter().filter_map(|group| group.run.as_deref()).collect();
        match &limit.meter {
            Meter::Cap(cap) => {
                let fences: BTreeSet<_> = claims.iter().map(|run| run.fence).collect();
                if fences.len() != claims.len() || !cap.holders().eq(fences) {
                    return Err(format!(
                        "{} is held by {} of {} claims",
                        limit.name,
                        cap.held(),
                        claims.len()
                    ));
                }
            }
            Meter::Breaker(breaker) => {
                let mark_of = |group: &&Group| {
                    let mut charges = self.head_of(group)?.charges.iter().zip(&group.run.as_ref()?.marks);
                    charges.find(|((of, _), _)| of.at() == ix).map(|(_, mark)| *mark)
                };
                let is_unanswered =
                    |group: &&&Group| group.run.as_ref().is_some_and(|run| run.awaiting.is_none());
                let marks = claimed.iter().filter(is_unanswered).filter_map(mark_of);
                let in_flight = marks.filter(|mark| breaker.is_current(*mark)).count();
                let is_over = breaker.at_once > 0 && breaker.in_flight > breaker.at_once;
                if breaker.in_flight as usize != in_flight || is_over {
                    let (counted, at_once) = (breaker.in_flight, breaker.at_once);
                    return Err(format!(
                        "{} counts {counted} of {at_once} in flight, there are {in_flight}",
                        limit.name
                    ));
                }
            }
            Meter::Bucket(bucket) => {
                let is_metered = |group: &&&Group| {
                    let is_free = self.head_of(group).is_some_and(Entry::has_free_polls);
                    group.run.as_ref().is_some_and(|run| run.is_metered(is_free))
                };
                let in_flight = claimed.iter().filter(is_metered).count();
                if bucket.in_flight as usize != in_flight {
                    let counted = bucket.in_flight;
                    return Err(format!("{} counts {counted} in flight, there are {in_flight}", limit.name));
                }
            }
        }
        Ok(())
    }

    fn check_limits(&self) -> Result<(), String> {
        for (ix, limit) in &self.limits {
            self.check_holders(ix, limit)?;
            let users = self
                .by_seq
                .newest_first(None)
                .filter(|(_, at)| self.entries[at.at()].charges.iter().any(|(of, _)| of.at() == ix));
            let users = users.count() + limit.chains.len();
            if users != limit.users as usize {
                return Err(format!("{} counts {} users, there are {users}", limit.name, limit.users));
            }
            if let Meter::Bucket(bucket) = &limit.meter
                && let Budget::Drip(paced) = &bucket.budget
                && paced.drip.level > paced.drip.capacity
            {
                return Err(format!("{} holds more than it can", limit.name));
            }
            let ix = super::LimitIx(ix as u32);
            if limit.watched != self.expected_watch(ix) {
                return Err(format!("{} does not watch the deadlines of those that wait", limit.name));
            }
            let has_time = limit.armed.at.is_none_or(|at| self.wakes.contains(&(at, ix)));
            let due = limit.armed.due.iter().all(|(pool, turn)| self.due.contains(&(*pool, *turn, ix)));
            if !has_time || !due {
                return Err(format!("{} is not in its wake-up structure", limit.name));
            }
        }
        Ok(())
    }
}
