//! What follows for operations that were accepted when their configuration changes: others get the
//! place of their alternatives, or they end because they have none any more. A claim keeps the
//! alternative that it uses; what failed stays struck out as long as another alternative is left.

use std::sync::Arc;

use super::chain::{ChainKey, ChainLink, Route};
use super::{DraftRefusal, EndedOperation, Model};
use crate::alternatives::{Alternative, Alternatives};
use crate::fact::Fact;
use crate::fault::Fault;
use crate::id::Seq;
use crate::state::{EndState, State};
use crate::time::Time;

impl Model {
    /// Replaces the alternatives of an operation, each with all that it charges. It keeps its turn.
    /// Returns `false` when nothing changes: it has them already, never had any, or has ended.
    ///
    /// # Errors
    /// When they are out of bounds, or charge a limit that does not exist.
    pub fn replace_alternatives(
        &mut self,
        now: Time,
        seq: Seq,
        alternatives: Alternatives,
        facts: &mut Vec<Fact>,
    ) -> Result<bool, DraftRefusal> {
        let now = self.now(now);
        let Some(route) = self.routes.get(&seq) else { return Ok(false) };
        alternatives.validate(0).map_err(DraftRefusal::Invalid)?;
        self.check_limits_of(&alternatives)?;
        let alternatives = self.without_failed(route, alternatives);
        let chain = route.chain;
        if self.chain_key(&alternatives) == *self.chains[chain.at()].key {
            return Ok(false);
        }
        self.decide(facts, Fact::Rechained { seq, alternatives: Box::new(alternatives) });
        self.rearm(now);
        Ok(true)
    }

    fn check_limits_of(&self, alternatives: &Alternatives) -> Result<(), DraftRefusal> {
        for Alternative { charges, .. } in &alternatives.list {
            for (place, charge) in charges.iter().enumerate() {
                if charges[..place].iter().any(|other| other.limit == charge.limit) {
                    return Err(DraftRefusal::ChargedTwice(Arc::clone(&charge.limit)));
                }
                if !self.by_limit.contains_key(&charge.limit) {
                    return Err(DraftRefusal::UnknownLimit(Arc::clone(&charge.limit)));
                }
            }
        }
        Ok(())
    }

    /// What an operation on this route has left of new alternatives: those that did not fail, or
    /// all of them if each did, and the one that its claim uses, as it was picked.
    fn without_failed(&self, route: &Route, mut new: Alternatives) -> Alternatives {
        let picked = route.picked.as_ref().map(|(name, _)| name);
        let links = &self.chains[route.chain.at()].key.links;
        let in_use = links.iter().find(|link| Some(&link.name) == picked);
        let has_failed = |name: &Arc<str>| route.failed.iter().any(|(failed, _)| failed == name);
        if !new.list.iter().all(|alternative| has_failed(&alternative.name)) {
            new.list.retain(|alternative| !has_failed(&alternative.name));
        }
        if let Some(link) = in_use {
            let in_use = self.alternative_image(link);
            match new.list.iter_mut().find(|alternative| alternative.name == in_use.name) {
                Some(same) => *same = in_use,
                None => new.list.push(in_use),
            }
        }
        new
    }

    /// Gives an operation other alternatives. What failed is no longer struck out if it is among
    /// them.
    pub(super) fn absorb_rechained(&mut self, seq: Seq, alternatives: &Alternatives) {
        let clock = self.counters.clock;
        self.with_group_of(seq, clock, |model, ix| {
            let entry = &model.entries[ix.at()];
            if entry.prev.is_none() {
                // It may have waited because its executor did not know the old ones.
                model.groups[entry.group.at()].not_before = entry.not_before;
            }
            let key = model.chain_key(alternatives);
            let is_left = |name: &Arc<str>| key.links.iter().any(|link| link.name == *name);
            let Some(route) = model.routes.get_mut(&seq) else { return };
            route.failed.retain(|(name, _)| !is_left(name));
            let before = route.chain;
            let chain = model.join_chain(key);
            model.leave_chain(before);
            if let Some(route) = model.routes.get_mut(&seq) {
                route.chain = chain;
            }
        });
    }

    /// Ends an operation as failed that no worker has and whose job no one awaits; `None` when that
    /// is not so, or it has ended.
    pub fn fail_waiting(
        &mut self,
        now: Time,
        seq: Seq,
        fault: Fault,
        facts: &mut Vec<Fact>,
    ) -> Option<EndedOperation> {
        let now = self.now(now);
        if !matches!(self.active(seq)?.state, State::Queued | State::Waiting) {
            return None;
        }
        let ended = self.end_waiting(now, seq, EndState::Failed, Some(fault), facts);
        self.rearm(now);
        Some(ended)
    }

    /// Alternatives with their limits resolved.
    pub(super) fn chain_key(&mut self, alternatives: &Alternatives) -> ChainKey {
        let links = alternatives.list.iter().map(|alternative| {
            let Alternative { name, charges, weight, price } = alternative;
            let charges = self.intern_charges(charges);
            ChainLink { name: Arc::clone(name), charges, weight: *weight, price: *price }
        });
        let links = links.collect();
        ChainKey { links, strategy: alternatives.strategy, on_unknown: alternatives.on_unknown }
    }
}
