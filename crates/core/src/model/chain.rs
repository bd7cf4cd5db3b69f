//! Chains: the alternatives that operations have left, each distinct list stored once, with the
//! groups that wait for any of them. A group whose head can use none of its alternatives is parked
//! under its chain and costs nothing there; a limit that changes marks the chains that contain it,
//! and a chain is ready as soon as one of its alternatives is. An operation without alternatives is
//! a chain of one, and is kept simpler: it waits at the limit that is free last.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Model;
use super::entry::{Charges, Cost, EntryIx};
use super::group::{GroupIx, GroupPlacement};
use super::limit::{LimitIx, LimitWake, first_waiters};
use super::pool::{PoolIx, first_of};
use crate::alternatives::{Alternatives, PickStrategy, UnknownSubmit};
use crate::bucket::Readiness;
use crate::fault::Fault;
use crate::id::{Seq, Turn};
use crate::time::Time;

/// The index of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ChainIx(pub u32);

impl ChainIx {
    pub(super) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// An alternative with its limits resolved.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChainLink {
    pub name: Arc<str>,
    pub charges: Charges,
    pub weight: u32,
    pub price: u64,
}

/// What makes two chains the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChainKey {
    pub links: Vec<ChainLink>,
    pub strategy: PickStrategy,
    pub on_unknown: UnknownSubmit,
}

impl ChainKey {
    /// The limits of all alternatives, each once.
    fn limits(&self) -> BTreeSet<LimitIx> {
        self.links.iter().flat_map(|link| link.charges.iter().map(|(limit, _)| *limit)).collect()
    }
}

#[derive(Debug)]
pub(super) struct Chain {
    pub key: Arc<ChainKey>,
    pub waiting: BTreeSet<(PoolIx, Turn, GroupIx)>,
    /// When it can serve the first waiting groups.
    pub armed: LimitWake,
    /// The number of operations that have exactly these alternatives left.
    pub users: u32,
}

impl Chain {
    /// The first group of a pool that waits for it.
    pub(super) fn first_waiter(&self, pool: PoolIx) -> Option<(Turn, GroupIx)> {
        first_of(&self.waiting, pool, GroupIx(0))
    }
}

/// On what terms a claim has its alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PickTerms {
    /// When it was picked: before its call was sent.
    pub at: Time,
    /// Its price, if it has one.
    pub price: Option<u64>,
}

/// What an operation with alternatives has besides its entry.
#[derive(Clone, Debug)]
pub(super) struct Route {
    /// The alternatives that are left, with the picked one.
    pub chain: ChainIx,
    /// The alternative of the current claim, and when it was picked.
    pub picked: Option<(Arc<str>, Time)>,
    /// The alternatives that failed, and why.
    pub failed: Vec<(Arc<str>, Fault)>,
}

impl Model {
    /// The route of an operation with alternatives.
    pub(super) fn route(&self, seq: Seq) -> Option<(&Route, &Chain)> {
        let route = self.routes.get(&seq)?;
        Some((route, &self.chains[route.chain.at()]))
    }

    /// The alternative of an operation's current claim.
    #[must_use]
    pub fn picked_alternative(&self, seq: Seq) -> Option<&Arc<str>> {
        self.routes.get(&seq)?.picked.as_ref().map(|(name, _)| name)
    }

    /// When that alternative was picked, and its price.
    #[must_use]
    pub fn pick_terms(&self, seq: Seq) -> Option<PickTerms> {
        let (route, chain) = self.route(seq)?;
        let (name, at) = route.picked.as_ref()?;
        let link = chain.key.links.iter().find(|link| link.name == *name);
        Some(PickTerms { at: *at, price: link.map(|link| link.price).filter(|price| *price > 0) })
    }

    /// Gives an operation its alternatives.
    pub(super) fn set_route(
        &mut self,
        ix: EntryIx,
        alternatives: &Alternatives,
        picked: Option<(Arc<str>, Time)>,
        failed: Vec<(Arc<str>, Fault)>,
    ) {
        let key = self.chain_key(alternatives);
        let chain = self.join_chain(key);
        let entry = &mut self.entries[ix.at()];
        entry.has_alternatives = true;
        self.routes.insert(entry.seq, Route { chain, picked, failed });
    }

    /// Forgets the alternatives of an operation that ended.
    pub(super) fn drop_route(&mut self, seq: Seq) {
        if let Some(route) = self.routes.remove(&seq) {
            self.leave_chain(route.chain);
        }
    }

    /// Strikes out the alternative that the operation's claim used.
    pub(super) fn strike_out(&mut self, ix: EntryIx, fault: &Fault) {
        let seq = self.entries[ix.at()].seq;
        let Some((route, chain)) = self.route(seq) else { return };
        let (Some((picked, _)), old) = (route.picked.clone(), route.chain) else { return };
        let mut key = ChainKey::clone(&chain.key);
        key.links.retain(|link| link.name != picked);
        let chain = self.join_chain(key);
        self.leave_chain(old);
        if let Some(route) = self.routes.get_mut(&seq) {
            route.chain = chain;
            route.failed.push((picked, fault.clone()));
        }
    }

    /// Makes an alternative's charges those of the operation, or takes them away again.
    pub(super) fn set_charges(&mut self, ix: EntryIx, charges: &Charges) {
        let before = std::mem::replace(&mut self.entries[ix.at()].charges, Arc::clone(charges));
        for (limit, _) in charges.iter() {
            self.limits[limit.at()].users += 1;
        }
        for (limit, _) in before.iter() {
            self.limits[limit.at()].users -= 1;
        }
    }

    /// Counts another operation with these alternatives.
    pub(super) fn join_chain(&mut self, key: ChainKey) -> ChainIx {
        if let Some(ix) = self.by_chain.get(&key) {
            self.chains[ix.at()].users += 1;
            return *ix;
        }
        let key = Arc::new(key);
        let chain =
            Chain { key: Arc::clone(&key), waiting: BTreeSet::new(), armed: LimitWake::default(), users: 1 };
        let ix = ChainIx(u32::try_from(self.chains.insert(chain)).unwrap_or(u32::MAX));
        for limit in key.limits() {
            let limit = &mut self.limits[limit.at()];
            limit.chains.push(ix);
            limit.users += 1;
        }
        self.by_chain.insert(key, ix);
        ix
    }

    pub(super) fn leave_chain(&mut self, ix: ChainIx) {
        let chain = &mut self.chains[ix.at()];
        chain.users -= 1;
        if chain.users > 0 {
            return;
        }
        self.arm_chain(ix, LimitWake::default());
        let chain = self.chains.remove(ix.at());
        debug_assert!(chain.waiting.is_empty());
        for limit in chain.key.limits() {
            let limit = &mut self.limits[limit.at()];
            limit.chains.retain(|other| *other != ix);
            limit.users -= 1;
        }
        self.by_chain.remove(&chain.key);
    }

    /// Parks a group, which is in no structure, until one of its head's alternatives is free.
    pub(super) fn park(&mut self, ix: GroupIx, chain: ChainIx) {
        let pool = self.pool_of(&self.groups[ix.at()]);
        let group = &mut self.groups[ix.at()];
        debug_assert_eq!(group.placement, GroupPlacement::Unqueued);
        (group.placement, group.pool) = (GroupPlacement::Parked(chain), pool);
        self.chains[chain.at()].waiting.insert((pool, group.turn, ix));
        self.stale_chains.push(chain);
    }

    /// The charge of an alternative that can be granted last to the group of this turn, and when.
    pub(super) fn last_granted(
        &self,
        charges: &Charges,
        pool: PoolIx,
        turn: Turn,
        now: Time,
    ) -> Option<(Readiness, LimitIx, Cost)> {
        let ready = |(ix, cost): &(LimitIx, Cost)| {
            let limit = &self.limits[ix.at()];
            match limit.ready(*cost, now) {
                Readiness::Now if limit.has_earlier_waiter(pool, turn) => {
                    (Readiness::AfterAnswer, *ix, *cost)
                }
                when => (when, *ix, *cost),
            }
        };
        charges.iter().map(ready).max_by_key(|(when, ..)| *when)
    }

    /// When all charges of an alternative can be granted to the group of this turn.
    pub(super) fn readiness(&self, charges: &Charges, pool: PoolIx, turn: Turn, now: Time) -> Readiness {
        self.last_granted(charges, pool, turn, now).map_or(Readiness::Now, |(when, ..)| when)
    }

    /// When the first of a chain's alternatives can be used by the group of this turn.
    pub(super) fn chain_readiness(&self, key: &ChainKey, pool: PoolIx, turn: Turn, now: Time) -> Readiness {
        let links = key.links.iter().map(|link| self.readiness(&link.charges, pool, turn, now));
        links.min().unwrap_or(Readiness::Never)
    }

    /// Recomputes when the changed chains can serve their first waiting groups.
    pub(super) fn rearm_chains(&mut self, now: Time) {
        let mut stale = std::mem::take(&mut self.stale_chains);
        stale.sort_unstable();
        stale.dedup();
        for ix in stale.drain(..) {
            // It may have been removed meanwhile.
            let Some(chain) = self.chains.get(ix.at()) else { continue };
            let mut armed = LimitWake::default();
            for (pool, turn, _) in first_waiters(&chain.waiting) {
                match self.chain_readiness(&chain.key, pool, turn, now) {
                    // What can never be granted is examined now, and the operation is ended.
                    Readiness::Now | Readiness::Never => armed.due.push((pool, turn)),
                    Readiness::At(at) => armed.at = Some(armed.at.map_or(at, |earlier| earlier.min(at))),
                    Readiness::AfterAnswer => {}
                }
            }
            self.arm_chain(ix, armed);
        }
        self.stale_chains = stale;
    }

    fn arm_chain(&mut self, ix: ChainIx, armed: LimitWake) {
        let before = std::mem::replace(&mut self.chains[ix.at()].armed, armed.clone());
        if before == armed {
            return;
        }
        if let Some(at) = before.at {
            self.chain_wakes.remove(&(at, ix));
        }
        for (pool, turn) in before.due {
            self.chain_due.remove(&(pool, turn, ix));
        }
        self.chain_wakes.extend(armed.at.map(|at| (at, ix)));
        self.chain_due.extend(armed.due.into_iter().map(|(pool, turn)| (pool, turn, ix)));
    }
}
