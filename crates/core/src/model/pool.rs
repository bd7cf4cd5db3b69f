//! Pools of workers: who may take an operation. The workers of the owner's own process are one
//! pool, for all kinds but the remote ones; each remote kind has a pool of its own. What is ready,
//! or due at a limit, is ordered by pool first and by turn within it. So a take looks only at what
//! its workers can execute, in O(log n), and work that no worker asks for costs nothing and stands
//! in no one's way. At a limit that several pools share, the earliest turn goes first among the
//! pools that have a free worker.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::Model;
use super::group::Group;
use crate::id::Turn;

/// The index of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PoolIx(pub u16);

/// The pool of the owner's own workers.
pub(super) const LOCAL: PoolIx = PoolIx(0);

/// The slots of workers that ask for operations.
#[derive(Clone, Copy, Debug)]
pub struct WorkerSlots<'a> {
    /// The remote kinds that the workers execute; `None` for the owner's own workers, which execute
    /// all other kinds.
    pub kinds: Option<&'a [Arc<str>]>,
    /// The number of free slots.
    pub free: usize,
    /// How long a claim holds without renewal.
    pub lease: Duration,
}

impl WorkerSlots<'_> {
    /// The slots of the owner's own workers.
    #[must_use]
    pub const fn local(free: usize, lease: Duration) -> Self {
        Self { kinds: None, free, lease }
    }
}

/// The slots that are still free during a take.
pub(super) struct FreeSlots<'a> {
    slots: &'a [WorkerSlots<'a>],
    free: Vec<usize>,
    /// For each pool, the slots that accept its operations, first come first.
    pools: Vec<(PoolIx, Vec<usize>)>,
}

impl<'a> FreeSlots<'a> {
    pub(super) fn new(model: &Model, slots: &'a [WorkerSlots<'a>]) -> Self {
        let mut pools: Vec<(PoolIx, Vec<usize>)> = Vec::new();
        for (index, offered) in slots.iter().enumerate().filter(|(_, offered)| offered.free > 0) {
            let accepted: Vec<PoolIx> = match offered.kinds {
                None => vec![LOCAL],
                Some(kinds) => kinds.iter().filter_map(|kind| model.remote_pool(kind)).collect(),
            };
            for pool in accepted {
                match pools.iter_mut().find(|(known, _)| *known == pool) {
                    Some((_, of_pool)) => of_pool.push(index),
                    None => pools.push((pool, vec![index])),
                }
            }
        }
        Self { slots, free: slots.iter().map(|offered| offered.free).collect(), pools }
    }

    /// The pools that have a free slot, each with the first of its slots.
    pub(super) fn pools(&self) -> impl Iterator<Item = (PoolIx, usize)> + '_ {
        self.pools.iter().filter_map(|(pool, of_pool)| {
            Some((*pool, *of_pool.iter().find(|index| self.free[**index] > 0)?))
        })
    }

    /// How long a claim in this slot holds.
    pub(super) const fn lease(&self, index: usize) -> Duration {
        self.slots[index].lease
    }

    /// Fills a slot.
    pub(super) fn fill(&mut self, index: usize) {
        self.free[index] -= 1;
        if self.free[index] == 0 {
            for (_, of_pool) in &mut self.pools {
                of_pool.retain(|other| *other != index);
            }
        }
    }
}

/// The first entry of a pool.
pub(super) fn first_of<T: Ord + Copy>(
    set: &BTreeSet<(PoolIx, Turn, T)>,
    pool: PoolIx,
    least: T,
) -> Option<(Turn, T)> {
    let (of, turn, entry) = *set.range((pool, Turn(0), least)..).next()?;
    (of == pool).then_some((turn, entry))
}

impl Model {
    /// Creates an empty partition in which operations of these kinds are left to remote workers.
    #[must_use]
    pub fn with_remote_kinds(kinds: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self { remote_kinds: kinds.into_iter().collect(), ..Self::new() }
    }

    /// Sets the kinds that are executed at all. Operations of another one wait until it is executed
    /// again: its worker may be back after a mistake in the configuration is corrected.
    #[must_use]
    pub fn with_known_kinds(mut self, kinds: impl IntoIterator<Item = Arc<str>>) -> Self {
        self.known_kinds = Some(kinds.into_iter().collect());
        self
    }

    /// The kinds of this partition that no one executes.
    pub fn missing_kinds(&self) -> impl Iterator<Item = &Arc<str>> + '_ {
        self.kinds.iter().filter(move |kind| self.is_missing(kind))
    }

    /// Whether no one executes operations of this kind.
    #[must_use]
    pub fn is_missing(&self, kind: &Arc<str>) -> bool {
        self.known_kinds.as_ref().is_some_and(|known| !known.contains(kind))
    }

    /// Whether some kinds are left to remote workers.
    #[must_use]
    pub const fn has_remote_kinds(&self) -> bool {
        !self.remote_kinds.is_empty()
    }

    /// The remote kinds of which an operation may be claimed now, as far as is known without
    /// trying.
    pub fn claimable_kinds(&self) -> impl Iterator<Item = &Arc<str>> + '_ {
        let is_claimable = |pool: PoolIx| {
            first_of(&self.ready, pool, super::GroupIx(0)).is_some()
                || first_of(&self.due, pool, super::LimitIx(0)).is_some()
                || first_of(&self.chain_due, pool, super::ChainIx(0)).is_some()
        };
        let pools = self.remote_kinds.iter().enumerate();
        pools.filter(move |(index, _)| is_claimable(pool_at(*index))).map(|(_, kind)| kind)
    }

    /// The pool of a remote kind.
    pub(super) fn remote_pool(&self, kind: &Arc<str>) -> Option<PoolIx> {
        self.remote_kinds.iter().position(|known| known == kind).map(pool_at)
    }

    /// The pool of a kind that was not seen before. A kind that no one executes has one of its own,
    /// without workers.
    pub(super) fn new_pool(&mut self, kind: &Arc<str>) -> PoolIx {
        if self.is_missing(kind) && self.remote_pool(kind).is_none() {
            self.remote_kinds.push(Arc::clone(kind));
        }
        self.remote_pool(kind).unwrap_or(LOCAL)
    }

    /// The pool that executes the head of a group.
    pub(super) fn pool_of(&self, group: &Group) -> PoolIx {
        self.head_of(group).map_or(LOCAL, |head| self.pools[usize::from(head.kind)])
    }
}

/// The pool of the remote kind at this index.
fn pool_at(index: usize) -> PoolIx {
    PoolIx(u16::try_from(index + 1).unwrap_or(u16::MAX))
}
