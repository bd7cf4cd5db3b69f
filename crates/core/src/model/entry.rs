//! An operation in memory: what the model needs to decide about it, and its neighbours in the group's line. Kept
//! small, because a million of them may wait.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::group::GroupIx;
use super::limit::LimitIx;
use crate::fault::Fault;
use crate::id::Seq;
use crate::operation::{OnFailure, OnUnknown};
use crate::time::Time;

/// Where an entry is kept; one more than its place, so that "none" takes no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryIx(NonZeroU32);

impl EntryIx {
    pub(super) fn new(place: usize) -> Self {
        let next = u32::try_from(place).unwrap_or(u32::MAX).saturating_add(1);
        Self(NonZeroU32::new(next).unwrap_or(NonZeroU32::MIN))
    }

    pub(super) const fn at(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// What is taken from a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cost {
    /// In micro-tokens.
    pub micro: u64,
    /// Of an estimate at most what the limit holds is taken.
    pub estimated: bool,
}

/// What it takes from which limit. Shared by all that take the same.
pub(super) type Charges = Arc<[(LimitIx, Cost)]>;

/// An operation that has not ended.
#[derive(Debug)]
pub(super) struct Entry {
    pub seq: Seq,
    pub at: Time,
    /// `Time::MAX` when there is none.
    pub deadline: Time,
    pub not_before: Time,
    pub charges: Charges,
    pub fault: Option<Box<Fault>>,
    pub group: GroupIx,
    pub next: Option<EntryIx>,
    pub prev: Option<EntryIx>,
    pub kind: u16,
    pub attempt: u16,
    pub max_attempts: u16,
    pub priority: u8,
    pub on_unknown: OnUnknown,
    pub on_failure: OnFailure,
    pub reconcile_first: bool,
    pub cancel_requested: bool,
}
