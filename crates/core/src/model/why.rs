//! Answers "Why is this operation not running, and when will it?" Reads the one thing its group
//! waits for, and estimates when the operation itself starts.

use std::sync::Arc;

use super::Model;
use super::entry::{Cost, Entry};
use super::group::{Group, GroupPlacement};
use super::limit::Meter;
use super::pool::LOCAL;
use crate::bounds;
use crate::bucket::Readiness;
use crate::fact::{AwaitingImage, GroupHold, LimitShape, LimitSource};
use crate::fault::Fault;
use crate::id::{Seq, Turn};
use crate::operation::OnUnknown;
use crate::time::Time;

/// What follows when the completion of a job does not come in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverdueEffect {
    /// Its outcome is unknown.
    Unknown,
    /// It runs again.
    Repeat,
    /// It fails: it has no attempts left.
    Fail,
    /// It ends as canceled, as was requested.
    Cancel,
}

/// What an operation waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing: a worker is executing it.
    Running {
        /// When its claim expires, unless it is renewed.
        until: Time,
    },
    /// Its completion: its job was accepted, and ends elsewhere.
    Awaiting {
        /// When the job was accepted.
        since: Time,
        /// Until when it is awaited.
        until: Time,
        /// When it is polled next, if ever.
        poll_at: Option<Time>,
        /// What follows when it does not come.
        then: OverdueEffect,
    },
    /// A worker with a free slot.
    Worker,
    /// A remote worker for its kind.
    RemoteWorker {
        /// The kind.
        kind: Arc<str>,
    },
    /// A point in time: a requested delay, or the next attempt.
    Time,
    /// A bucket.
    Bucket {
        /// The name of the limit.
        name: Arc<str>,
        /// Its shape.
        shape: LimitShape,
        /// Where its figures come from.
        source: LimitSource,
        /// What is left in it.
        level: u64,
        /// What the head needs.
        cost: u64,
        /// Whether the upstream closed it.
        frozen: bool,
        /// The number of groups ahead.
        ahead: usize,
    },
    /// A slot of a cap.
    Cap {
        /// The name of the limit.
        name: Arc<str>,
        /// The number of slots.
        at_once: u32,
        /// The number of slots taken.
        held: u32,
        /// The number of groups ahead.
        ahead: usize,
    },
    /// A breaker: the end of its cooldown, or of the calls that go first after it.
    Breaker {
        /// The name of the limit.
        name: Arc<str>,
        /// The number of failures in a row.
        failures: u32,
        /// Whether it cools; otherwise calls in flight must show first that the provider is well.
        cooling: bool,
        /// The number of groups ahead.
        ahead: usize,
    },
    /// One of its alternatives, none of which is free: each with its reason and time.
    Alternatives(Vec<AlternativeStatus>),
    /// The operator who paused the group.
    Paused {
        /// Who paused it.
        by: Arc<str>,
        /// When it was paused.
        since: Time,
        /// The reason given.
        reason: Arc<str>,
        /// Whether someone also has to decide about the unknown outcome of its first operation.
        is_undecided: bool,
    },
    /// An operator, after a failure or an unknown outcome.
    Held(GroupHold),
}

/// Why an alternative is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlternativeStatus {
    /// Its name.
    pub name: Arc<str>,
    /// What keeps it.
    pub state: AlternativeState,
    /// When it is free, if known.
    pub until: Option<Time>,
}

/// What keeps an alternative from being used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlternativeState {
    /// Nothing.
    Free,
    /// A limit that is not free: a bucket, a cap or a breaker.
    Waits(Box<Cause>),
    /// It was tried for this operation, and failed.
    Failed(Fault),
}

/// Why an operation is not running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitStatus {
    /// The head of its group, and how many operations are ahead of this one; `None` for a head.
    pub behind: Option<(Seq, usize)>,
    /// What its group waits for.
    pub cause: Cause,
    /// Until when its group waits for that, if known.
    pub until: Option<Time>,
    /// When the operation itself is expected to start. An estimate: what the known limits allow,
    /// after everything that goes first.
    pub starts_at: Option<Time>,
    /// The last fault of the group's head; of a job that is awaited, that of its last poll.
    pub fault: Option<Fault>,
}

fn overdue_effect(head: &Entry) -> OverdueEffect {
    let is_last = head.attempt + 1 >= head.max_attempts;
    match head.on_unknown {
        _ if head.cancel_requested => OverdueEffect::Cancel,
        _ if head.has_alternatives => OverdueEffect::Unknown,
        OnUnknown::Repeat if is_last => OverdueEffect::Fail,
        OnUnknown::Repeat | OnUnknown::Reconcile if !is_last => OverdueEffect::Repeat,
        _ => OverdueEffect::Unknown,
    }
}

/// Why a group waits for an operator. A pause has precedence.
fn stop_cause(group: &Group) -> Option<Cause> {
    if let Some(pause) = &group.paused {
        let (by, reason) = (Arc::clone(&pause.by), Arc::clone(&pause.reason));
        let is_undecided = group.held.as_ref().is_some_and(|held| held.unknown);
        return Some(Cause::Paused { by, since: pause.since, reason, is_undecided });
    }
    group.held.as_ref().map(|held| Cause::Held(held.as_ref().clone()))
}

impl Model {
    /// Explains why an operation is not running; `None` when it has ended.
    #[must_use]
    pub fn why(&self, seq: Seq, now: Time) -> Option<WaitStatus> {
        let now = self.now(now);
        let ix = self.by_seq.get(seq)?;
        let entry = &self.entries[ix.at()];
        let group = &self.groups[entry.group.at()];
        let head = self.head_of(group)?;
        let before = std::iter::successors(entry.prev, |ix| self.entries[ix.at()].prev);
        let behind = (head.seq != seq).then(|| (head.seq, before.take(bounds::POSITION_COUNTED_MAX).count()));
        let (cause, until) = self.cause(entry.group, now)?;
        // What an earlier alternative left does not concern the job that is awaited.
        let fault = match cause {
            Cause::Awaiting { .. } => self.poll_fault(group).cloned(),
            _ => head.fault.as_deref().cloned(),
        };
        // Group listings ask for every head, so reuse what was computed already.
        let starts_at = match (behind, &cause) {
            (Some(_), _) => self.starts_at(ix, now),
            (None, Cause::Bucket { .. } | Cause::Breaker { .. } | Cause::Alternatives(_) | Cause::Time) => {
                until.filter(|at| *at > now)
            }
            (None, _) => None,
        };
        Some(WaitStatus { behind, cause, until, starts_at, fault })
    }

    /// Explains why a group waits for an operator, whether or not anything is queued in it; `None`
    /// when it does not.
    #[must_use]
    pub fn why_stopped(&self, group: &str) -> Option<WaitStatus> {
        let cause = stop_cause(&self.groups[self.by_group.get(group)?.at()])?;
        Some(WaitStatus { behind: None, cause, until: None, starts_at: None, fault: None })
    }

    fn cause(&self, ix: super::GroupIx, now: Time) -> Option<(Cause, Option<Time>)> {
        let group = &self.groups[ix.at()];
        if let Some(cause) = stop_cause(group) {
            return Some((cause, None));
        }
        if let Some(awaiting) = group.run.as_ref().and_then(|run| run.awaiting.as_deref()) {
            let AwaitingImage { since, until, poll_at, .. } = *awaiting;
            let then = overdue_effect(self.head_of(group)?);
            return Some((Cause::Awaiting { since, until, poll_at, then }, Some(until)));
        }
        Some(match group.placement {
            GroupPlacement::Running => {
                let until = group.run.as_ref()?.until;
                (Cause::Running { until }, Some(until))
            }
            GroupPlacement::Asleep(until) => (Cause::Time, Some(until)),
            GroupPlacement::Ready if group.pool != LOCAL => {
                let kind = Arc::clone(&self.kinds[usize::from(self.head_of(group)?.kind)]);
                (Cause::RemoteWorker { kind }, None)
            }
            GroupPlacement::Ready | GroupPlacement::Unqueued => (Cause::Worker, None),
            GroupPlacement::Waiting(limit_ix) => {
                let limit = &self.limits[limit_ix.at()];
                let cost = self.cost_of(ix, limit_ix).unwrap_or_default();
                let first: Vec<Cost> = limit
                    .waiting
                    .range((group.pool, Turn(0), super::GroupIx(0))..(group.pool, group.turn, ix))
                    .map(|(.., group)| self.cost_of(*group, limit_ix).unwrap_or_default())
                    .take(bounds::AHEAD_COUNTED_MAX)
                    .collect();
                self.limit_cause(limit_ix, cost, &first, now)?
            }
            GroupPlacement::Parked(_) => {
                let alternatives = self.alternative_status(self.head_of(group)?.seq, group, now)?;
                let until = alternatives.iter().filter_map(|alternative| alternative.until).min();
                (Cause::Alternatives(alternatives), until)
            }
        })
    }

    /// Every alternative of an operation that has not ended, with what keeps it: those that are
    /// left in their order, then those that failed. Empty for an operation without alternatives.
    #[must_use]
    pub fn alternatives(&self, seq: Seq, now: Time) -> Vec<AlternativeStatus> {
        let now = self.now(now);
        let group = self.entry_of(seq).map(|entry| &self.groups[entry.group.at()]);
        group.and_then(|group| self.alternative_status(seq, group, now)).unwrap_or_default()
    }

    /// How many operations with alternatives go before this one, which waits for its turn: those
    /// ahead in its group, and the groups of an earlier turn. Counted up to a bound; `None` when
    /// it does not wait.
    #[must_use]
    pub fn waiting_ahead(&self, seq: Seq) -> Option<usize> {
        let entry = self.entry_of(seq)?;
        let group = &self.groups[entry.group.at()];
        if group.run.is_some() && entry.prev.is_none() {
            return None;
        }
        let in_group = std::iter::successors(entry.prev, |ix| self.entries[ix.at()].prev).count();
        let is_earlier = |pool: super::PoolIx, turn: Turn| pool == group.pool && turn < group.turn;
        let ready = self.ready.iter().filter(|(pool, turn, ix)| {
            let is_chained = self.head_of(&self.groups[ix.at()]).is_some_and(|head| head.has_alternatives);
            is_earlier(*pool, *turn) && is_chained && self.groups[ix.at()].run.is_none()
        });
        let parked = self.chains.iter().flat_map(|(_, chain)| &chain.waiting);
        let parked = parked.filter(|(pool, turn, _)| is_earlier(*pool, *turn));
        Some(
            in_group
                + ready.take(bounds::POSITION_COUNTED_MAX).count()
                + parked.take(bounds::POSITION_COUNTED_MAX).count(),
        )
    }

    fn alternative_status(
        &self,
        seq: Seq,
        group: &super::Group,
        now: Time,
    ) -> Option<Vec<AlternativeStatus>> {
        let (route, chain) = self.route(seq)?;
        let left = chain.key.links.iter().map(|link| {
            let last = self.last_granted(&link.charges, group.pool, group.turn, now);
            let last = last.filter(|(when, ..)| *when != Readiness::Now);
            let (state, until) = match last.and_then(|(_, ix, cost)| self.limit_cause(ix, cost, &[], now)) {
                Some((cause, until)) => (AlternativeState::Waits(Box::new(cause)), until),
                None => (AlternativeState::Free, None),
            };
            AlternativeStatus { name: Arc::clone(&link.name), state, until }
        });
        let failed = route.failed.iter().map(|(name, fault)| AlternativeStatus {
            name: Arc::clone(name),
            state: AlternativeState::Failed(fault.clone()),
            until: None,
        });
        Some(left.chain(failed).collect())
    }

    /// What waiting for a limit behind `first` means, and until when.
    fn limit_cause(
        &self,
        limit_ix: super::LimitIx,
        cost: Cost,
        first: &[Cost],
        now: Time,
    ) -> Option<(Cause, Option<Time>)> {
        let limit = &self.limits[limit_ix.at()];
        let ahead = first.len();
        let until = limit.expected(first, cost, now);
        let name = Arc::clone(&limit.name);
        let cause = match &limit.meter {
            Meter::Cap(cap) => Cause::Cap { name, at_once: cap.at_once, held: cap.held(), ahead },
            Meter::Breaker(breaker) => Cause::Breaker {
                name,
                failures: breaker.failures(now),
                cooling: breaker.open_until > now,
                ahead,
            },
            Meter::Bucket(bucket) => Cause::Bucket {
                name,
                shape: limit.shape(),
                source: limit.source,
                level: self.limit(&limit.name, now)?.level,
                cost: limit.clamp_cost(cost),
                frozen: bucket.frozen_until > now,
                ahead,
            },
        };
        Some((cause, until))
    }
}
