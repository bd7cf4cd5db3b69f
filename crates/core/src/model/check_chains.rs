//! The invariants of chains: each is used, known to its limits and queued as it is armed, and an
//! operation with alternatives has exactly one of them while it is claimed.

use std::collections::BTreeMap;

use super::Model;
use super::chain::ChainIx;
use super::limit::LimitIx;

impl Model {
    pub(super) fn check_chains(&self) -> Result<(), String> {
        let mut users: BTreeMap<ChainIx, u32> = BTreeMap::new();
        let mut with_alternatives = 0;
        for (seq, ix) in self.by_seq.newest_first(None) {
            let entry = &self.entries[ix.at()];
            let Some(route) = self.routes.get(&seq).filter(|_| entry.has_alternatives) else {
                if entry.has_alternatives || self.routes.contains_key(&seq) {
                    return Err(format!("{seq:?} has alternatives and no route, or the other way round"));
                }
                continue;
            };
            with_alternatives += 1;
            *users.entry(route.chain).or_default() += 1;
            let is_claimed = entry.prev.is_none() && self.groups[entry.group.at()].run.is_some();
            if is_claimed != route.picked.is_some() || !is_claimed && !entry.charges.is_empty() {
                return Err(format!("{seq:?} is claimed without an alternative, or the other way round"));
            }
            let links = &self.chains[route.chain.at()].key.links;
            if let Some((picked, _)) = &route.picked {
                let Some(link) = links.iter().find(|link| link.name == *picked) else {
                    return Err(format!("{seq:?} uses {picked}, which is struck out"));
                };
                if !link
                    .charges
                    .iter()
                    .map(|(limit, _)| limit)
                    .eq(entry.charges.iter().map(|(limit, _)| limit))
                {
                    return Err(format!("{seq:?} does not charge what {picked} does"));
                }
            }
            if links.iter().any(|link| route.failed.iter().any(|(name, _)| *name == link.name)) {
                return Err(format!("{seq:?} keeps an alternative that failed"));
            }
        }
        if self.routes.len() != with_alternatives || self.by_chain.len() != self.chains.len() {
            return Err("a route or a chain is kept without need".into());
        }
        self.check_each_chain(&users)
    }

    fn check_each_chain(&self, users: &BTreeMap<ChainIx, u32>) -> Result<(), String> {
        let (mut wakes, mut due) = (0, 0);
        for (ix, chain) in &self.chains {
            let ix = ChainIx(ix as u32);
            if users.get(&ix) != Some(&chain.users) || self.by_chain.get(&chain.key) != Some(&ix) {
                return Err(format!(
                    "{ix:?} counts {} users, and they are {:?}",
                    chain.users,
                    users.get(&ix)
                ));
            }
            let charges = |limit: LimitIx| {
                chain.key.links.iter().any(|link| link.charges.iter().any(|(of, _)| *of == limit))
            };
            for (at, limit) in &self.limits {
                let known = limit.chains.iter().filter(|known| **known == ix).count();
                if known != usize::from(charges(LimitIx(at as u32))) {
                    return Err(format!("{} does not know the chains that contain it", limit.name));
                }
            }
            let is_armed = chain.armed.at.is_none_or(|at| self.chain_wakes.contains(&(at, ix)));
            if !is_armed
                || !chain.armed.due.iter().all(|(pool, turn)| self.chain_due.contains(&(*pool, *turn, ix)))
            {
                return Err(format!("{ix:?} is not in its wake-up structure"));
            }
            wakes += usize::from(chain.armed.at.is_some());
            due += chain.armed.due.len();
        }
        if (wakes, due) != (self.chain_wakes.len(), self.chain_due.len()) {
            return Err("a chain is woken that does not wait".into());
        }
        Ok(())
    }
}
