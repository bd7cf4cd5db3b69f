//! Picks the alternative of an operation in the step that takes its charges, and decides what
//! follows when the attempt fails: the next alternative at once, at the old turn, until none is
//! left.

use std::sync::Arc;

use super::Model;
use super::chain::{ChainKey, ChainLink};
use super::entry::{Entry, EntryIx};
use super::group::GroupIx;
use super::health::is_providers_fault;
use super::limit::Meter;
use super::settle::failure_effect;
use super::take::{ClaimTerms, TakeOutcome};
use crate::alternatives::{
    AlternativeLoad, Alternatives, PickStrategy, UnknownSubmit, all_failed, pick_order,
};
use crate::backoff::Backoff;
use crate::bounds;
use crate::bucket::Readiness;
use crate::fact::{Fact, SettleEffect};
use crate::fault::{Fault, FaultClass};
use crate::id::Seq;
use crate::state::EndState;
use crate::time::Time;
use crate::verdict::Verdict;

impl Model {
    /// Runs the head of a ready group with the first alternative that is free, or parks the group.
    pub(super) fn try_alternatives(
        &mut self,
        ix: GroupIx,
        now: Time,
        terms: ClaimTerms,
        facts: &mut Vec<Fact>,
        take: &mut TakeOutcome,
    ) {
        let group = &self.groups[ix.at()];
        let Some(head) = self.head_of(group) else { return };
        let (seq, deadline, turn, pool) = (head.seq, head.deadline, group.turn, group.pool);
        let Some((route, chain)) = self.route(seq) else { return };
        let (chain_ix, key) = (route.chain, Arc::clone(&chain.key));
        let ready: Vec<Readiness> =
            key.links.iter().map(|link| self.readiness(&link.charges, pool, turn, now)).collect();
        if ready.contains(&Readiness::Now) {
            let place = self.first_free(&key, &ready, terms.chance);
            let alternative = Arc::clone(&key.links[place].name);
            self.decide(facts, Fact::Picked { seq, alternative, at: now });
            take.claims.push(self.claim(ix, now, terms.lease, facts));
        } else if ready.iter().all(|when| when.is_past(deadline)) {
            let fault = too_late_fault(ready.iter().min().copied(), now);
            take.ended.push(self.end_waiting(now, seq, EndState::Failed, Some(fault), facts));
        } else {
            self.dequeue_group(ix);
            self.park(ix, chain_ix);
        }
    }

    /// The first free alternative in the order of the chain's strategy.
    fn first_free(&self, key: &ChainKey, ready: &[Readiness], chance: u32) -> usize {
        let is_free = |place: &usize| ready[*place] == Readiness::Now;
        if key.strategy == PickStrategy::Chain {
            return (0..ready.len()).find(is_free).unwrap_or(0);
        }
        let loads: Vec<AlternativeLoad> = key.links.iter().map(|link| self.load_of(link)).collect();
        // Each claim of a take draws anew.
        let chance = (u64::from(chance) << 32) ^ self.counters.next_fence.0;
        pick_order(key.strategy, &loads, chance).into_iter().find(is_free).unwrap_or(0)
    }

    /// What the model knows of an alternative.
    fn load_of(&self, link: &ChainLink) -> AlternativeLoad {
        let mut load = AlternativeLoad { weight: link.weight, price: link.price, ..Default::default() };
        for (limit, _) in link.charges.iter() {
            match &self.limits[limit.at()].meter {
                Meter::Cap(cap) => {
                    let share = u64::from(cap.held()) * 1_000 / u64::from(cap.at_once.max(1));
                    load.busy = load.busy.max(share);
                }
                Meter::Breaker(breaker) => load.latency = load.latency.max(breaker.latency),
                Meter::Bucket(_) => {}
            }
        }
        load
    }

    /// Gives an operation that was just accepted its alternatives.
    pub(super) fn absorb_chained(&mut self, seq: Seq, alternatives: &Alternatives) {
        if let Some(ix) = self.by_seq.get(seq) {
            self.set_route(ix, alternatives, None, Vec::new());
        }
    }

    /// The alternative of an operation's current claim.
    pub(super) fn alternative_of(&self, entry: &Entry) -> Option<Arc<str>> {
        if entry.has_alternatives { self.picked_alternative(entry.seq).cloned() } else { None }
    }

    /// Gives the operation the charges of the alternative that was picked for it.
    pub(super) fn absorb_picked(&mut self, seq: Seq, alternative: &Arc<str>, at: Time) {
        self.advance_clock(at);
        let Some(ix) = self.by_seq.get(seq) else { return };
        let Some((_, chain)) = self.route(seq) else { return };
        let Some(link) = chain.key.links.iter().find(|link| link.name == *alternative) else { return };
        let charges = Arc::clone(&link.charges);
        self.set_charges(ix, &charges);
        if let Some(route) = self.routes.get_mut(&seq) {
            route.picked = Some((Arc::clone(alternative), at));
        }
    }

    /// Takes the alternative from an operation whose claim is settled and that has not ended.
    pub(super) fn clear_pick(&mut self, ix: EntryIx) {
        let seq = self.entries[ix.at()].seq;
        self.set_charges(ix, &Arc::default());
        if let Some(route) = self.routes.get_mut(&seq) {
            route.picked = None;
        }
    }

    /// Lets the breakers of an alternative learn how long the operation took.
    pub(super) fn learn_latency(&mut self, ix: EntryIx, now: Time) {
        let entry = &self.entries[ix.at()];
        let Some((_, since)) = self.routes.get(&entry.seq).and_then(|route| route.picked.as_ref()) else {
            return;
        };
        let took = now.since(*since);
        let charges = Arc::clone(&entry.charges);
        for (limit, _) in charges.iter() {
            if let Meter::Breaker(breaker) = &mut self.limits[limit.at()].meter {
                breaker.observe_latency(took);
            }
        }
    }

    /// What a verdict means for an operation with alternatives; `None` when the rules for any other
    /// one apply. A job that was accepted is not submitted elsewhere because it failed.
    pub(super) fn chained_effect(
        &self,
        entry: &Entry,
        now: Time,
        verdict: &Verdict,
        chance: u32,
    ) -> Option<(SettleEffect, Option<Fault>)> {
        if !entry.has_alternatives || entry.cancel_requested {
            return None;
        }
        let is_submit = self.awaiting_since(entry).is_none();
        match verdict {
            Verdict::Retry { fault, .. } => Some(self.failover_effect(entry, fault.clone())),
            Verdict::Rejected(fault) if is_submit && is_providers_fault(fault.class) => {
                Some(self.failover_effect(entry, fault.clone()))
            }
            // If nothing is closed, nothing keeps the alternative from being picked again at once.
            Verdict::Throttled { after, scope, fault } if is_submit => {
                let effect = self.throttle_effect(entry, now, *after, scope.as_ref(), chance);
                let closes = matches!(&effect, SettleEffect::Throttled { closed, .. } if !closed.is_empty());
                (!closes).then(|| self.failover_effect(entry, fault.clone()))
            }
            Verdict::Unavailable(fault) if is_submit && self.has_other_alternative(entry) => {
                Some((SettleEffect::NextAlternative, Some(fault.clone())))
            }
            Verdict::Unknown(fault) | Verdict::Lost(fault) | Verdict::PollFailed { fault, .. } => {
                Some(self.unknown_submit_effect(entry, now, fault.clone().in_doubt(), chance))
            }
            _ => None,
        }
    }

    /// Whether an operation has an alternative left besides the picked one.
    fn has_other_alternative(&self, entry: &Entry) -> bool {
        self.route(entry.seq).is_some_and(|(_, chain)| chain.key.links.len() > 1)
    }

    /// What follows when the picked alternative failed: the next one, or the end with every reason.
    fn failover_effect(&self, entry: &Entry, fault: Fault) -> (SettleEffect, Option<Fault>) {
        if self.has_other_alternative(entry) {
            return (SettleEffect::NextAlternative, Some(fault));
        }
        let Some((route, _)) = self.route(entry.seq) else { return (failure_effect(entry), Some(fault)) };
        let mut reasons = route.failed.clone();
        reasons.extend(route.picked.as_ref().map(|(name, _)| (Arc::clone(name), fault)));
        (failure_effect(entry), Some(all_failed(&reasons)))
    }

    /// What follows a submit of unknown outcome, by the operation's policy. One that waited already
    /// is not waited for again.
    fn unknown_submit_effect(
        &self,
        entry: &Entry,
        now: Time,
        fault: Fault,
        chance: u32,
    ) -> (SettleEffect, Option<Fault>) {
        let has_waited = self.awaiting_since(entry).is_some();
        match self.route(entry.seq).map(|(_, chain)| chain.key.on_unknown) {
            Some(UnknownSubmit::Failover) => self.failover_effect(entry, fault),
            Some(UnknownSubmit::Wait { timeout }) if !has_waited => {
                let poll_at = Some(now.after(Backoff::RETRY.delay(1, chance)));
                let until = now.after(timeout.min(bounds::AWAIT_MAX));
                (SettleEffect::Awaiting { poll_at, until }, Some(fault))
            }
            _ => (failure_effect(entry), Some(fault)),
        }
    }
}

/// Why no alternative can start before the deadline.
fn too_late_fault(first: Option<Readiness>, now: Time) -> Fault {
    match first {
        Some(Readiness::At(at)) => {
            let wait = at.since(now).as_millis();
            let message = format!("its deadline passes before an alternative is free, in {wait} ms");
            Fault::new(FaultClass::RateLimited, message)
        }
        _ => Fault::new(FaultClass::Validation, "it costs more than any alternative can ever hold"),
    }
}
