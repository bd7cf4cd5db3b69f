//! Predicts which operations are likely to run soon, so that what they need can be loaded in
//! advance. Decides nothing.

use std::collections::VecDeque;

use super::Model;
use super::entry::EntryIx;
use super::limit::LimitIx;
use super::pool::LOCAL;
use crate::id::Seq;

impl Model {
    /// Returns the operations that are likely to be taken next, soonest first, at most `most` of
    /// them: the heads of ready groups and of groups that wait for a limit which a call in flight
    /// may free, then the operations behind the calls in flight, then those behind all of these.
    /// Those of remote kinds are left out unless their workers ask for them, `with_remote`. The
    /// cost is bounded by the number returned and the number in flight.
    #[must_use]
    pub fn upcoming(&self, most: usize, with_remote: bool) -> Vec<Seq> {
        let heads = |groups: &[super::GroupIx]| {
            groups.iter().filter_map(|ix| self.groups[ix.at()].head).collect::<Vec<EntryIx>>()
        };
        let ready = self.ready.iter().take_while(|(pool, ..)| with_remote || *pool == LOCAL);
        let ready: Vec<_> = ready.take(most).map(|(.., ix)| *ix).collect();
        let mut next = VecDeque::from(heads(&ready));
        let running: Vec<_> = self.running.values().copied().collect();
        let running = heads(&running);
        let mut limits: Vec<LimitIx> = Vec::new();
        for (limit, _) in running.iter().flat_map(|ix| self.entries[ix.at()].charges.iter()) {
            if next.len() < most && !limits.contains(limit) {
                limits.push(*limit);
                let room = most - next.len();
                let waiting = self.limits[limit.at()].waiting.iter().take(room);
                next.extend(waiting.filter_map(|(.., ix)| self.groups[ix.at()].head));
                for chain in &self.limits[limit.at()].chains {
                    let room = most.saturating_sub(next.len());
                    let parked = self.chains[chain.at()].waiting.iter().take(room);
                    next.extend(parked.filter_map(|(.., ix)| self.groups[ix.at()].head));
                }
            }
        }
        next.extend(running.iter().filter_map(|ix| self.next_startable(*ix)));
        let mut upcoming = Vec::with_capacity(most.min(self.entries.len()));
        while upcoming.len() < most
            && let Some(ix) = next.pop_front()
        {
            upcoming.push(self.entries[ix.at()].seq);
            next.extend(self.next_startable(ix));
        }
        upcoming
    }

    /// The sequence number of the last accepted operation.
    #[must_use]
    pub const fn last_seq(&self) -> Seq {
        Seq(self.counters.next_seq.0 - 1)
    }

    /// The number of operations that have not ended.
    #[must_use]
    pub const fn active_count(&self) -> usize {
        self.entries.len()
    }

    /// Whether an operation has not ended and is not in flight.
    #[must_use]
    pub fn is_waiting(&self, seq: Seq) -> bool {
        self.by_seq.get(seq).is_some_and(|ix| {
            let group = &self.groups[self.entries[ix.at()].group.at()];
            group.run.is_none() || group.head != Some(ix)
        })
    }

    /// The next operation of the same group, unless it must not start yet.
    fn next_startable(&self, ix: EntryIx) -> Option<EntryIx> {
        let next = self.entries[ix.at()].next?;
        (self.entries[next.at()].not_before <= self.counters.clock).then_some(next)
    }
}
