//! A limit in the model: a bucket or a cap, and the groups that wait for it in the order of their turns.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::entry::Cost;
use super::group::GroupIx;
use crate::bucket::{Bucket, Readiness};
use crate::cap::Cap;
use crate::fact::{LimitShape, LimitSource};
use crate::id::{Fence, Turn};
use crate::time::Time;

/// Where a limit is kept.
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
}

impl Meter {
    /// Takes what a claim costs; answers what had been granted right after it.
    pub(super) fn take(&mut self, cost: u64, fence: Fence) -> u64 {
        match self {
            Self::Bucket(bucket) => bucket.take(cost),
            Self::Cap(cap) => {
                cap.take(fence);
                0
            }
        }
    }
}

/// When a limit has something to give to the first group that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitWake {
    /// When a call is answered, or never: nobody waits.
    No,
    /// At this time: in `wakes`.
    At(Time),
    /// Now: in `due`, under that group's turn.
    Due(Turn),
}

#[derive(Debug)]
pub(super) struct Limit {
    pub name: Arc<str>,
    pub meter: Meter,
    pub configured: Option<LimitShape>,
    pub source: LimitSource,
    pub waiting: BTreeSet<(Turn, GroupIx)>,
    /// Where it is filed for its first waiting group.
    pub armed: LimitWake,
    /// Operations that charge it and have not ended.
    pub users: u32,
}

impl Limit {
    pub(super) fn new(name: Arc<str>, shape: LimitShape, source: LimitSource, now: Time) -> Self {
        let meter = match shape {
            LimitShape::Cap { at_once } => Meter::Cap(Cap::new(at_once)),
            _ => Bucket::new(shape, now).map_or_else(|| Meter::Cap(Cap::new(1)), Meter::Bucket),
        };
        Self {
            name,
            meter,
            configured: None,
            source,
            waiting: BTreeSet::new(),
            armed: LimitWake::No,
            users: 0,
        }
    }

    pub(super) const fn shape(&self) -> LimitShape {
        match &self.meter {
            Meter::Bucket(bucket) => bucket.shape(),
            Meter::Cap(cap) => LimitShape::Cap { at_once: cap.at_once },
        }
    }

    /// What is taken for a cost, in micro-tokens: of an estimate never more than there can be.
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
        }
    }

    /// When the last of several could be taken, one after the other, if nobody else takes any. A lower bound: what
    /// waits for an answer is taken to come at once.
    pub(super) fn ready_for_all(&self, ahead: &[Cost], cost: Cost, now: Time) -> Readiness {
        let Meter::Bucket(mut bucket) = self.meter.clone() else { return Readiness::Now };
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

    /// When its turn is expected to come, behind `first`; `None` when that waits for an answer nobody knows the time of.
    pub(super) fn expected(&self, first: &[Cost], cost: Cost, now: Time) -> Option<Time> {
        let Meter::Bucket(bucket) = &self.meter else { return None };
        let closed = Some(bucket.frozen_until).filter(|until| *until > now);
        match bucket.ready(self.clamp_cost(cost), now) {
            Readiness::AfterAnswer | Readiness::Never => closed,
            Readiness::Now | Readiness::At(_) => match self.ready_for_all(first, cost, now) {
                Readiness::At(at) => Some(at),
                _ => Some(now),
            },
        }
    }

    /// Whether it was opened by an operation, and nobody has said since what it should be.
    pub(super) fn is_opened(&self) -> bool {
        self.source == LimitSource::Learned && self.configured.is_none()
    }

    /// Whether a new one in its place would be the same to everybody but for the figures that were learned.
    pub(super) fn is_at_rest(&self, now: Time) -> bool {
        self.is_opened() && self.is_idle(now)
    }

    /// Whether nobody uses it, nobody waits for it, and it has nothing to remember.
    pub(super) fn is_idle(&self, now: Time) -> bool {
        let is_idle = match &self.meter {
            Meter::Bucket(bucket) => bucket.is_at_rest(now),
            Meter::Cap(cap) => cap.held() == 0,
        };
        self.users == 0 && self.waiting.is_empty() && is_idle
    }

    /// Whether somebody with an earlier turn waits for it.
    pub(super) fn has_earlier_waiter(&self, turn: Turn) -> bool {
        self.waiting.first().is_some_and(|(first, _)| *first < turn)
    }
}
