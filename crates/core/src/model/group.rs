//! A group: its queue of operations, its turn, and the one thing it waits for.

use std::sync::Arc;

use super::entry::EntryIx;
use super::limit::LimitIx;
use crate::fact::GroupHold;
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
    /// In `running`, under its claim.
    Running,
    /// In this limit's `waiting`.
    Waiting(LimitIx),
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
    pub until: Time,
    /// The total granted for each charge, right after this claim.
    pub marks: Vec<u64>,
}

#[derive(Debug)]
pub(super) struct Group {
    pub name: Arc<str>,
    pub head: Option<EntryIx>,
    pub tail: Option<EntryIx>,
    pub depth: u32,
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
