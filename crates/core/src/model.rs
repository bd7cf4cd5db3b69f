//! A partition as one deterministic state machine: ordered groups, limits with their waiting
//! groups, and the decision which operation runs now. Commands decide and append facts to a list;
//! only absorbing a fact changes what a restart must restore. Where a group that could run is
//! queued (ready, or waiting for a limit) is recomputed by `take` and is not in the log.

mod absorb;
mod accept;
mod arena;
mod awaiting;
mod chain;
mod check;
mod check_chains;
mod control;
mod deadline_watch;
mod entry;
mod estimate;
mod group;
mod health;
mod kinds;
mod limit;
mod limits;
mod listing;
mod oldest;
mod pick;
mod placement;
mod pool;
mod queues;
mod rechain;
mod seq_index;
mod settle;
mod snapshot;
mod stale;
mod take;
mod takeover;
#[cfg(test)]
mod tests;
mod upcoming;
mod view;
mod why;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

pub use accept::{AcceptOutcome, DraftRefusal, RerunRefusal};
pub use chain::PickTerms;
pub use control::{CancelOutcome, ControlRefusal, Resolution};
pub use kinds::KindLoad;
pub use limits::LimitRefusal;
pub use listing::{ActivePage, ActiveQuery};
pub use pool::WorkerSlots;
pub use queues::{QueueCause, QueueView};
pub use settle::{ClaimReport, ClaimStatus, EndedOperation, OperationIdentity, SettleOutcome};
pub use take::{Claim, OverdueClaim, TakeOutcome};
pub use takeover::{ClaimedCall, TakeoverOutcome};
pub use view::{ActiveOperation, Counts, GroupView, LimitView};
pub use why::{AlternativeState, AlternativeStatus, Cause, OverdueEffect, WaitStatus};

use slab::Slab;

use arena::Arena;
use chain::{Chain, ChainIx, ChainKey, Route};
use entry::Entry;
use group::{Group, GroupIx};
use limit::{Limit, LimitIx};
use pool::PoolIx;
use seq_index::SeqIndex;
use stale::StaleLimits;

use crate::fact::Counters;
use crate::id::{Fence, Seq, Turn};
use crate::time::Time;

/// A remembered key.
#[derive(Clone, Copy, Debug)]
struct Key {
    seq: Seq,
    fingerprint: u128,
    expires: Time,
}

/// The state of a partition.
#[derive(Debug)]
pub struct Model {
    counters: Counters,
    entries: Arena<Entry>,
    by_seq: SeqIndex,
    groups: Arena<Group>,
    by_group: BTreeMap<Arc<str>, GroupIx>,
    limits: Slab<Limit>,
    by_limit: HashMap<Arc<str>, LimitIx>,
    /// Limits that operations opened.
    opened: BTreeSet<LimitIx>,
    /// The opened limit that was examined last.
    looked_at: LimitIx,
    kinds: Vec<Arc<str>>,
    /// The pool of each kind.
    pools: Vec<PoolIx>,
    /// The kinds that are left to remote workers, and those that no one executes.
    remote_kinds: Vec<Arc<str>>,
    /// The kinds that are executed at all; `None` for any.
    known_kinds: Option<Vec<Arc<str>>>,
    keys: HashMap<u128, Key>,
    keys_by_age: VecDeque<(Time, u128)>,
    /// Groups that may run now, as far as their own start time is concerned.
    ready: BTreeSet<(PoolIx, Turn, GroupIx)>,
    /// The number of ready groups whose claim awaits its completion and is due to be polled.
    ready_polls: usize,
    /// Groups whose head must not start, or be polled, yet.
    asleep: BTreeSet<(Time, GroupIx)>,
    /// Claims that a worker holds, by the expiry of its lease.
    running: BTreeMap<(Time, Fence), GroupIx>,
    /// Claims that await their completion without a worker, by the time at which their outcome
    /// becomes unknown. Their groups are asleep, ready or waiting, as their next poll is.
    awaiting: BTreeMap<(Time, Fence), GroupIx>,
    /// Limits by the time they can serve their first waiting group.
    wakes: BTreeSet<(Time, LimitIx)>,
    /// Limits that can serve the first waiting group of a pool now, by its turn.
    due: BTreeSet<(PoolIx, Turn, LimitIx)>,
    /// Operations that are not running, by deadline.
    deadlines: BTreeSet<(Time, Seq)>,
    /// Groups that are paused or held.
    stopped: BTreeSet<Arc<str>>,
    /// Groups that are held, paused or not.
    held: BTreeSet<Arc<str>>,
    /// Operations whose outcome is unknown; each holds its group.
    unknown: BTreeSet<Seq>,
    /// Distinct sets of charges, shared by operations.
    charge_sets: HashSet<entry::Charges>,
    /// Limits whose wake-up must be recomputed.
    stale: StaleLimits,
    /// Distinct lists of alternatives, with the groups that wait for one of them.
    chains: Slab<Chain>,
    by_chain: HashMap<Arc<ChainKey>, ChainIx>,
    /// The alternatives of the operations that have some.
    routes: HashMap<Seq, Route>,
    /// Chains by the time they can serve their first waiting group.
    chain_wakes: BTreeSet<(Time, ChainIx)>,
    /// Chains that can serve the first waiting group of a pool now, by its turn.
    chain_due: BTreeSet<(PoolIx, Turn, ChainIx)>,
    /// Chains whose wake-up must be recomputed.
    stale_chains: Vec<ChainIx>,
    /// The group that the operations of a snapshot belong to.
    restoring: Option<GroupIx>,
}

impl Default for Model {
    fn default() -> Self {
        Self::new()
    }
}

impl Model {
    /// Creates an empty partition.
    #[must_use]
    pub fn new() -> Self {
        Self {
            counters: Counters {
                next_seq: Seq(1),
                next_fence: Fence(1),
                next_turn: placement::FIRST_TURN,
                clock: Time::ZERO,
                ended: [0; 3],
            },
            entries: Arena::new(),
            by_seq: SeqIndex::default(),
            groups: Arena::new(),
            by_group: BTreeMap::new(),
            limits: Slab::new(),
            opened: BTreeSet::new(),
            looked_at: LimitIx(0),
            by_limit: HashMap::new(),
            kinds: Vec::new(),
            pools: Vec::new(),
            remote_kinds: Vec::new(),
            known_kinds: None,
            keys: HashMap::new(),
            keys_by_age: VecDeque::new(),
            ready: BTreeSet::new(),
            ready_polls: 0,
            asleep: BTreeSet::new(),
            running: BTreeMap::new(),
            awaiting: BTreeMap::new(),
            wakes: BTreeSet::new(),
            due: BTreeSet::new(),
            deadlines: BTreeSet::new(),
            stopped: BTreeSet::new(),
            held: BTreeSet::new(),
            unknown: BTreeSet::new(),
            charge_sets: HashSet::new(),
            stale: StaleLimits::new(),
            chains: Slab::new(),
            by_chain: HashMap::new(),
            routes: HashMap::new(),
            chain_wakes: BTreeSet::new(),
            chain_due: BTreeSet::new(),
            stale_chains: Vec::new(),
            restoring: None,
        }
    }

    /// The latest time at which a decision was made. The owner's clock starts here at the earliest.
    #[must_use]
    pub const fn clock(&self) -> Time {
        self.counters.clock
    }

    /// Returns a time that never runs backwards, whatever the caller's clock does.
    fn now(&self, now: Time) -> Time {
        now.max(self.counters.clock)
    }

    fn entry_of(&self, seq: Seq) -> Option<&Entry> {
        self.by_seq.get(seq).map(|ix| &self.entries[ix.at()])
    }

    fn intern_kind(&mut self, kind: &Arc<str>) -> u16 {
        let found = self.kinds.iter().position(|known| known == kind).unwrap_or_else(|| {
            self.kinds.push(Arc::clone(kind));
            let pool = self.new_pool(kind);
            self.pools.push(pool);
            self.kinds.len() - 1
        });
        u16::try_from(found).unwrap_or(u16::MAX)
    }
}
