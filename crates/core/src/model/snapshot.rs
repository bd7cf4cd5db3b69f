//! Writes the state as an equivalent list of facts, and restores it from such a list.

use std::sync::Arc;
use std::time::Duration;

use super::Model;
use super::chain::ChainLink;
use super::entry::{Charges, Cost, Entry, EntryIx};
use super::group::{Group, Pause, RunningClaim};
use super::limit::{Limit, LimitIx, Meter};
use crate::alternatives::{Alternative, Alternatives};
use crate::bucket::paced::{PacedDrip, Transit};
use crate::bucket::{Budget, UnsentGrant};
use crate::fact::{
    Acceptance, AcceptedOperation, AwaitingImage, ChainImage, Fact, GroupImage, LimitImage, LimitShape,
    OperationImage,
};
use crate::id::Fence;
use crate::operation::{Charge, DedupeEntry};
use crate::time::{Time, micros};

/// Marks a grant whose call has not been sent among those in flight.
const UNSENT: Time = Time::MAX;

impl Model {
    /// Yields everything a new owner must know, in an order that an empty model can absorb.
    pub fn snapshot(&self) -> impl Iterator<Item = Fact> + '_ {
        let limits = self.limits.iter().flat_map(|(_, limit)| {
            let closure = limit.closure.clone();
            let closure =
                closure.map(|closure| Fact::ClosureImage { limit: Arc::clone(&limit.name), closure });
            std::iter::once(Fact::LimitImage(Box::new(limit_image(limit)))).chain(closure)
        });
        let groups = self.by_group.values().flat_map(|ix| {
            let group = &self.groups[ix.at()];
            let awaiting = group.run.as_ref().and_then(|run| run.awaiting.as_deref());
            let awaiting = awaiting.map(|awaiting| Fact::AwaitingImage(*awaiting));
            let poll = group.run.as_ref().and_then(|run| run.poll).map(|fence| Fact::PollImage { fence });
            std::iter::once(Fact::GroupImage(Box::new(group_image(group)))).chain(awaiting).chain(poll).chain(
                std::iter::successors(group.head, |ix| self.entries[ix.at()].next).flat_map(|ix| {
                    let entry = &self.entries[ix.at()];
                    let image = Fact::OperationImage(Box::new(self.operation_image(entry)));
                    std::iter::once(image).chain(self.chain_image(entry))
                }),
            )
        });
        let keys = self.keys_by_age.iter().filter_map(|(expires, key)| {
            let known = self.keys.get(key).filter(|known| known.expires == *expires)?;
            let dedupe = DedupeEntry { key: *key, fingerprint: known.fingerprint, expires: known.expires };
            Some(Fact::KeyImage { seq: known.seq, dedupe })
        });
        std::iter::once(Fact::Counters(self.counters)).chain(limits).chain(groups).chain(keys)
    }

    fn operation_image(&self, entry: &Entry) -> OperationImage {
        OperationImage {
            accepted: AcceptedOperation {
                seq: entry.seq,
                at: entry.at,
                group: Arc::clone(&self.groups[entry.group.at()].name),
                kind: Arc::clone(&self.kinds[usize::from(entry.kind)]),
                charges: self.charges_image(&entry.charges),
                deadline: (entry.deadline != Time::MAX).then_some(entry.deadline),
                not_before: (entry.not_before != Time::ZERO).then_some(entry.not_before),
                max_attempts: entry.max_attempts,
                priority: entry.priority,
                on_unknown: entry.on_unknown,
                on_failure: entry.on_failure,
                dedupe: None,
                acceptance: Acceptance::Rerun,
            },
            attempt: entry.attempt,
            reconcile_first: entry.reconcile_first,
            cancel_requested: entry.cancel_requested,
            fault: entry.fault.as_deref().cloned(),
        }
    }

    fn chain_image(&self, entry: &Entry) -> Option<Fact> {
        let (route, chain) = self.route(entry.seq).filter(|_| entry.has_alternatives)?;
        let alternatives = Alternatives {
            list: chain.key.links.iter().map(|link| self.alternative_image(link)).collect(),
            strategy: chain.key.strategy,
            on_unknown: chain.key.on_unknown,
        };
        let (picked, failed) = (route.picked.clone(), route.failed.clone());
        Some(Fact::ChainImage(Box::new(ChainImage { seq: entry.seq, alternatives, picked, failed })))
    }

    pub(super) fn alternative_image(&self, link: &ChainLink) -> Alternative {
        Alternative {
            name: Arc::clone(&link.name),
            charges: self.charges_image(&link.charges),
            weight: link.weight,
            price: link.price,
        }
    }

    fn charges_image(&self, charges: &Charges) -> Vec<Charge> {
        let image = |(ix, Cost { micro, estimated }): &(LimitIx, Cost)| {
            let limit = Arc::clone(&self.limits[ix.at()].name);
            Charge { limit, cost: *micro, estimated: *estimated }
        };
        charges.iter().map(image).collect()
    }

    pub(super) fn restore_chain(&mut self, image: &ChainImage) {
        if let Some(ix) = self.by_seq.get(image.seq) {
            self.set_route(ix, &image.alternatives, image.picked.clone(), image.failed.clone());
            self.uncount_poll(ix);
        }
    }

    /// Takes back that buckets count the poll of an operation, which turned out to be free.
    fn uncount_poll(&mut self, ix: EntryIx) {
        let entry = &self.entries[ix.at()];
        let run = self.groups[entry.group.at()].run.as_ref().filter(|_| entry.prev.is_none());
        if run.is_none_or(|run| !run.has_worker() || run.is_metered(true)) {
            return;
        }
        for (limit, _) in entry.charges.iter() {
            if let Meter::Bucket(bucket) = &mut self.limits[limit.at()].meter {
                bucket.in_flight = bucket.in_flight.saturating_sub(1);
            }
        }
    }

    pub(super) fn restore_limit(&mut self, image: &LimitImage) {
        let mut limit = Limit::new(Arc::clone(&image.limit), image.shape, image.source, image.at);
        limit.configured = image.configured;
        if let Meter::Breaker(breaker) = &mut limit.meter {
            breaker.at_once = u32::try_from(image.level).unwrap_or(u32::MAX);
            (breaker.failures, breaker.failed_at) = (image.throttles, image.at);
            (breaker.open_until, breaker.openings) = (image.frozen_until, image.granted);
            breaker.latency = Duration::from_micros(image.carry);
        }
        if let Meter::Bucket(bucket) = &mut limit.meter {
            bucket.frozen_until = image.frozen_until;
            bucket.granted = image.granted;
            bucket.throttles = image.throttles;
            let unsent = image.transit.iter().filter(|(by, ..)| *by == UNSENT);
            bucket.unsent = unsent.map(|&(_, cost, mark)| UnsentGrant { mark, cost }).collect();
            match &mut bucket.budget {
                Budget::Drip(paced) => {
                    let drip = &mut paced.drip;
                    (drip.level, drip.at, drip.carry) = (image.level, image.at, image.carry);
                    let sent = image.transit.iter().filter(|(by, ..)| *by != UNSENT);
                    let transit = |&(by, cost, mark): &_| Transit { by, cost, mark };
                    paced.transit = sent.map(transit).collect();
                }
                Budget::Window(window) => {
                    (window.remaining, window.reset_at, window.known) =
                        (image.level, image.reset_at, image.known);
                    window.observed = Duration::from_micros(image.carry);
                }
                Budget::Gate(gate) => gate.at_once = u32::try_from(image.level).unwrap_or(u32::MAX),
            }
        }
        self.add_limit(limit);
    }

    pub(super) fn restore_group(&mut self, image: &GroupImage) {
        let ix = self.group_or_insert(&image.group);
        if image.paused.is_some() || image.held.is_some() {
            self.stopped.insert(Arc::clone(&image.group));
        }
        if let Some(held) = &image.held {
            self.held.insert(Arc::clone(&image.group));
            self.unknown.extend(held.unknown.then_some(held.seq));
        }
        let group = &mut self.groups[ix.at()];
        group.turn = image.turn;
        group.not_before = image.not_before;
        group.paused = image.paused.as_ref().map(|(by, since, reason)| {
            Box::new(Pause { by: Arc::clone(by), since: *since, reason: Arc::clone(reason) })
        });
        group.held = image.held.clone().map(Box::new);
        group.run = image.running.as_ref().map(|(fence, until, marks)| {
            let (fence, until, marks) = (*fence, *until, marks.clone());
            Box::new(RunningClaim { fence, poll: None, until, marks, awaiting: None })
        });
        self.restoring = Some(ix);
    }

    pub(super) fn restore_awaiting(&mut self, image: &AwaitingImage) {
        let Some(group) = self.restoring else { return };
        let group = &mut self.groups[group.at()];
        if let Some(run) = group.run.as_mut().filter(|_| group.head.is_none()) {
            run.awaiting = Some(Box::new(*image));
        }
    }

    pub(super) fn restore_poll(&mut self, fence: Fence) {
        let Some(group) = self.restoring else { return };
        let group = &mut self.groups[group.at()];
        if let Some(run) = group.run.as_mut().filter(|_| group.head.is_none()) {
            run.poll = Some(fence);
        }
    }

    pub(super) fn restore_operation(&mut self, image: &OperationImage) {
        let Some(group) = self.restoring else { return };
        let ix = self.insert_entry(&image.accepted, group);
        let entry = &mut self.entries[ix.at()];
        entry.attempt = image.attempt;
        entry.reconcile_first = image.reconcile_first;
        entry.cancel_requested = image.cancel_requested;
        entry.fault = image.fault.clone().map(Box::new);
        self.link(ix);
        if self.groups[group.at()].head == Some(ix) {
            self.restore_head(ix);
            self.dequeue_group(group);
            let clock = self.counters.clock;
            self.enqueue_group(group, clock);
        }
    }

    /// A head that runs, or whose outcome is unknown, holds its slots and ignores its deadline.
    fn restore_head(&mut self, ix: EntryIx) {
        let entry = &self.entries[ix.at()];
        let group = &self.groups[entry.group.at()];
        let unknown = group.held.as_ref().is_some_and(|held| held.unknown && held.seq == entry.seq);
        if group.run.is_some() || unknown {
            self.deadlines.remove(&(entry.deadline, entry.seq));
        }
        if let Some(run) = &group.run {
            for ((limit, _), mark) in entry.charges.iter().zip(&run.marks) {
                match &mut self.limits[limit.at()].meter {
                    Meter::Breaker(breaker) => {
                        let is_counted = run.awaiting.is_none() && breaker.is_current(*mark);
                        breaker.in_flight += u32::from(is_counted);
                    }
                    Meter::Bucket(_) if !run.has_worker() => {}
                    Meter::Bucket(bucket) => bucket.in_flight += 1,
                    Meter::Cap(cap) => cap.take(run.fence),
                }
            }
        }
    }
}

fn limit_image(limit: &Limit) -> LimitImage {
    let mut image = LimitImage {
        limit: Arc::clone(&limit.name),
        shape: limit.shape(),
        configured: limit.configured,
        source: limit.source,
        level: 0,
        at: Time::ZERO,
        carry: 0,
        reset_at: Time::ZERO,
        known: false,
        frozen_until: Time::ZERO,
        granted: 0,
        throttles: 0,
        transit: Vec::new(),
    };
    if let Meter::Breaker(breaker) = &limit.meter {
        image.level = u64::from(breaker.at_once);
        (image.throttles, image.at) = (breaker.failures, breaker.failed_at);
        (image.frozen_until, image.granted) = (breaker.open_until, breaker.openings);
        image.carry = micros(breaker.latency);
    }
    if let Meter::Bucket(bucket) = &limit.meter {
        image.frozen_until = bucket.frozen_until;
        image.granted = bucket.granted;
        image.throttles = bucket.throttles;
        match &bucket.budget {
            Budget::Drip(PacedDrip { drip, transit }) => {
                (image.level, image.at, image.carry) = (drip.level, drip.at, drip.carry);
                image.transit = transit.iter().map(|t| (t.by, t.cost, t.mark)).collect();
            }
            Budget::Window(w) => {
                (image.level, image.reset_at, image.known) = (w.remaining, w.reset_at, w.known);
                image.carry = micros(w.observed);
            }
            Budget::Gate(gate) => image.level = u64::from(gate.at_once),
        }
        image.transit.extend(bucket.unsent.iter().map(|grant| (UNSENT, grant.cost, grant.mark)));
    }
    debug_assert!(!matches!((&limit.meter, image.shape), (Meter::Bucket(_), LimitShape::Cap { .. })));
    image
}

fn group_image(group: &Group) -> GroupImage {
    GroupImage {
        group: Arc::clone(&group.name),
        turn: group.turn,
        not_before: group.not_before,
        paused: group.paused.as_deref().map(|p| (Arc::clone(&p.by), p.since, Arc::clone(&p.reason))),
        held: group.held.as_deref().cloned(),
        running: group.run.as_deref().map(|run| (run.fence, run.until, run.marks.clone())),
    }
}
