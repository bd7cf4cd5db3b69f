//! A limit in the model: a bucket, a cap or a breaker, and the groups waiting for it in the order
//! of their turns.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::chain::ChainIx;
use super::entry::Cost;
use super::group::GroupIx;
use super::pool::{PoolIx, first_of};
use crate::breaker::Breaker;
use crate::bucket::{Bucket, Budget, Readiness};
use crate::cap::Cap;
use crate::fact::{LimitClosure, LimitShape, LimitSource};
use crate::id::{Fence, Turn};
use crate::time::Time;

/// The index of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LimitIx(pub u32);

impl LimitIx {
    pub(super) const fn at(self) -> usize {
        self.0 as usize
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meter {
    Bucket(Bucket),
    Cap(Cap),
    Breaker(Breaker),
}

impl Meter {
    /// Takes the cost of a claim and returns the mark of this grant: the total granted right after
    /// it, or how often the breaker had opened.
    pub(super) fn take(&mut self, cost: u64, fence: Fence) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.take(cost),
            Self::Cap(cap) => {
                cap.take(fence);
                0
            }
            Self::Breaker(breaker) => breaker.take(),
        }
    }

    /// Whether a claim that awaits its completion has what it needs of it, so that a poll takes
    /// nothing.
    pub(super) const fn spares_polls(&self) -> bool {
        matches!(self, Self::Cap(_) | Self::Breaker(_))
    }
}

/// When a limit can serve the first group of each pool that waits for it. Nothing of it: when a
/// call completes, or never because no group is waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LimitWake {
    /// At this time, the earliest of all pools: queued in `wakes`.
    pub at: Option<Time>,
    /// Now: queued in `due`, under that group's turn.
    pub due: Vec<(PoolIx, Turn)>,
}

#[derive(Debug)]
pub(super) struct Limit {
    pub name: Arc<str>,
    pub meter: Meter,
    pub configured: Option<LimitShape>,
    pub source: LimitSource,
    /// Why it is closed, or was until a little while ago.
    pub closure: Option<Box<LimitClosure>>,
    pub waiting: BTreeSet<(PoolIx, Turn, GroupIx)>,
    /// The deadlines of groups that wait, for this limit or another one, and whose heads charge it.
    pub watched: BTreeSet<(Time, GroupIx)>,
    /// No head of a watched group charges more, in micro-tokens.
    pub watched_cost_max: u64,
    /// When it can serve the first waiting groups.
    pub armed: LimitWake,
    /// The chains that contain it.
    pub chains: Vec<ChainIx>,
    /// The number of active operations that charge it, and of chains that contain it.
    pub users: u32,
}

impl Limit {
    pub(super) fn new(name: Arc<str>, shape: LimitShape, source: LimitSource, now: Time) -> Self {
        let meter = match shape {
            LimitShape::Cap { at_once } => Meter::Cap(Cap::new(at_once)),
            LimitShape::Breaker { ladder } => Meter::Breaker(Breaker::new(ladder)),
            _ => Bucket::new(shape, now).map_or_else(|| Meter::Cap(Cap::new(1)), Meter::Bucket),
        };
        Self {
            name,
            meter,
            configured: None,
            source,
            closure: None,
            waiting: BTreeSet::new(),
            watched: BTreeSet::new(),
            watched_cost_max: 0,
            armed: LimitWake::default(),
            chains: Vec::new(),
            users: 0,
        }
    }

    pub(super) const fn shape(&self) -> LimitShape {
        match &self.meter {
            Meter::Bucket(bucket) => bucket.shape(),
            Meter::Cap(cap) => LimitShape::Cap { at_once: cap.at_once },
            Meter::Breaker(breaker) => LimitShape::Breaker { ladder: breaker.ladder },
        }
    }

    /// The length of its windows, as far as it is known.
    pub(super) fn period(&self) -> Option<Duration> {
        let Meter::Bucket(Bucket { budget: Budget::Window(window), .. }) = &self.meter else { return None };
        Some(window.length()).filter(|length| !length.is_zero())
    }

    /// The amount taken for a cost, in micro-tokens: an estimate is clamped to the capacity.
    pub(super) fn clamp_cost(&self, cost: Cost) -> u64 {
        match self.shape() {
            LimitShape::Drip { capacity: most, .. } | LimitShape::Window { limit: most, .. }
                if cost.estimated =>
            {
                cost.micro.min(most)
            }
            _ => cost.micro,
        }
    }

    pub(super) fn ready(&self, cost: Cost, now: Time) -> Readiness {
        match &self.meter {
            Meter::Bucket(bucket) => bucket.ready(self.clamp_cost(cost), now),
            Meter::Cap(cap) if cap.has_room() => Readiness::Now,
            Meter::Cap(_) => Readiness::AfterAnswer,
            Meter::Breaker(breaker) => breaker.ready(now),
        }
    }

    /// When the last of several costs can be taken, one after the other, if no one else takes any.
    /// A lower bound: calls in flight are assumed to complete at once.
    pub(super) fn ready_for_all(&self, ahead: &[Cost], cost: Cost, now: Time) -> Readiness {
        let mut bucket = match &self.meter {
            Meter::Bucket(bucket) => bucket.clone(),
            Meter::Breaker(breaker) if breaker.open_until > now => {
                return Readiness::At(breaker.open_until);
            }
            Meter::Cap(_) | Meter::Breaker(_) => return Readiness::Now,
        };
        let mut at = now;
        for cost in ahead.iter().copied().chain([cost]).map(|cost| self.clamp_cost(cost)) {
            match bucket.ready(cost, at) {
                Readiness::At(later) => at = later,
                Readiness::Now => {}
                Readiness::AfterAnswer | Readiness::Never => break,
            }
            let mark = bucket.take(cost);
            bucket.mark_finished(mark, at);
        }
        if at > now { Readiness::At(at) } else { Readiness::Now }
    }

    /// The expected time of its turn behind `first`; `None` when that depends on a call whose
    /// completion time is unknown.
    pub(super) fn expected(&self, first: &[Cost], cost: Cost, now: Time) -> Option<Time> {
        let bucket = match &self.meter {
            Meter::Bucket(bucket) => bucket,
            Meter::Cap(_) => return None,
            Meter::Breaker(breaker) => return Some(breaker.open_until).filter(|until| *until > now),
        };
        let closed = Some(bucket.frozen_until).filter(|until| *until > now);
        match bucket.ready(self.clamp_cost(cost), now) {
            Readiness::AfterAnswer | Readiness::Never => closed,
            Readiness::Now | Readiness::At(_) => match self.ready_for_all(first, cost, now) {
                Readiness::At(at) => Some(at),
                _ => Some(now),
            },
        }
    }

    /// Whether an operation opened it and no one has set it since.
    pub(super) fn is_opened(&self) -> bool {
        self.source == LimitSource::Learned && self.configured.is_none()
    }

    /// Whether a new limit in its place would behave the same, except for the figures that were
    /// learned.
    pub(super) fn is_at_rest(&self, now: Time) -> bool {
        self.is_opened() && self.is_idle(now)
    }

    /// Whether no operation uses it, no group waits for it, and it has no state to keep.
    pub(super) fn is_idle(&self, now: Time) -> bool {
        let is_idle = match &self.meter {
            Meter::Bucket(bucket) => bucket.is_at_rest(now),
            Meter::Cap(cap) => cap.held() == 0,
            Meter::Breaker(breaker) => breaker.is_at_rest(now),
        };
        self.users == 0 && self.waiting.is_empty() && is_idle
    }

    /// Whether a group of the same pool with an earlier turn waits for it.
    pub(super) fn has_earlier_waiter(&self, pool: PoolIx, turn: Turn) -> bool {
        self.first_waiter(pool).is_some_and(|(first, _)| first < turn)
    }

    /// The first group of a pool that waits for it.
    pub(super) fn first_waiter(&self, pool: PoolIx) -> Option<(Turn, GroupIx)> {
        first_of(&self.waiting, pool, GroupIx(0))
    }
}

/// The first waiting group of each pool.
pub(super) fn first_waiters(
    waiting: &BTreeSet<(PoolIx, Turn, GroupIx)>,
) -> impl Iterator<Item = (PoolIx, Turn, GroupIx)> + '_ {
    std::iter::successors(waiting.first().copied(), |(pool, ..)| {
        let next = (PoolIx(pool.0.checked_add(1)?), Turn(0), GroupIx(0));
        waiting.range(next..).next().copied()
    })
}
