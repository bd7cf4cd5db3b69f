//! A group: its queue of operations, its turn, and the one thing it waits for.

use std::sync::Arc;

use super::chain::ChainIx;
use super::entry::EntryIx;
use super::limit::LimitIx;
use super::pool::{LOCAL, PoolIx};
use crate::fact::{AwaitingImage, GroupHold};
use crate::id::{Fence, Turn};
use crate::time::Time;

/// The index of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupIx(pub u32);

impl GroupIx {
    pub(super) const fn at(self) -> usize {
        self.0 as usize
    }
}

/// The one structure a group is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupPlacement {
    /// In none: nothing is queued, or an operator stopped it.
    Unqueued,
    /// In `ready`.
    Ready,
    /// In `asleep`, under this time.
    Asleep(Time),
    /// In `running`, under the claim that a worker holds.
    Running,
    /// In this limit's `waiting`.
    Waiting(LimitIx),
    /// In this chain's `waiting`.
    Parked(ChainIx),
}

/// An operator's pause of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pause {
    pub by: Arc<str>,
    pub since: Time,
    pub reason: Arc<str>,
}

/// The claim of a group's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RunningClaim {
    pub fence: Fence,
    /// The fence of the worker that polls its job; each poll has its own.
    pub poll: Option<Fence>,
    /// When the lease of its worker expires; meaningless without one.
    pub until: Time,
    /// The total granted for each charge, right after this claim or its last poll.
    pub marks: Vec<u64>,
    /// Set once its job was accepted and ends elsewhere.
    pub awaiting: Option<Box<AwaitingImage>>,
}

impl RunningClaim {
    /// Whether a worker holds it, to send it or to poll.
    pub(super) fn has_worker(&self) -> bool {
        self.awaiting.as_ref().is_none_or(|awaiting| awaiting.polling)
    }

    /// Whether buckets count it: while it is sent, and while it is polled, unless its polls are
    /// free.
    pub(super) fn is_metered(&self, polls_are_free: bool) -> bool {
        self.awaiting.as_ref().is_none_or(|awaiting| awaiting.polling && !polls_are_free)
    }

    /// The fence of the worker that holds it, to send it or to poll.
    pub(super) fn worker(&self) -> Option<Fence> {
        self.has_worker().then(|| self.poll.unwrap_or(self.fence))
    }

    /// The claim's state, while it awaits its completion and no worker polls.
    pub(super) fn awaiting(&self) -> Option<&AwaitingImage> {
        self.awaiting.as_deref().filter(|awaiting| !awaiting.polling)
    }
}

#[derive(Debug)]
pub(super) struct Group {
    pub name: Arc<str>,
    pub head: Option<EntryIx>,
    pub tail: Option<EntryIx>,
    pub depth: u32,
    /// The pool that executes its head, as of when it was queued.
    pub pool: PoolIx,
    pub turn: Turn,
    pub not_before: Time,
    pub paused: Option<Box<Pause>>,
    pub held: Option<Box<GroupHold>>,
    pub run: Option<Box<RunningClaim>>,
    pub placement: GroupPlacement,
}

impl Group {
    pub(super) const fn new(name: Arc<str>) -> Self {
        Self {
            name,
            head: None,
            tail: None,
            depth: 0,
            pool: LOCAL,
            turn: Turn(0),
            not_before: Time::ZERO,
            paused: None,
            held: None,
            run: None,
            placement: GroupPlacement::Unqueued,
        }
    }

    /// Whether an operator must act before it resumes.
    pub(super) const fn is_stopped(&self) -> bool {
        self.paused.is_some() || self.held.is_some()
    }
}
