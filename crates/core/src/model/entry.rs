//! An operation in memory: what the model needs to decide about it, and its neighbors in the
//! group's queue. Entries are small, because a million of them may wait.

use std::num::NonZeroU32;
use std::sync::Arc;

use super::group::GroupIx;
use super::limit::LimitIx;
use crate::fault::Fault;
use crate::id::Seq;
use crate::operation::{OnFailure, OnUnknown};
use crate::time::Time;

/// The index of an entry, stored plus one, so that `None` takes no space.
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

/// An amount to take from a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Cost {
    /// In micro-tokens.
    pub micro: u64,
    /// Whether it is an estimate: at most the limit's capacity is taken for an estimate.
    pub estimated: bool,
}

impl Cost {
    /// What a poll takes: as much as the call itself, but never more than the limit can hold.
    pub(super) const fn of_poll(self) -> Self {
        Self { micro: self.micro, estimated: true }
    }
}

/// The limits an operation charges and the cost for each. Shared by all operations with the same
/// charges.
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
    /// Whether it has alternatives. While it is not claimed it then charges nothing itself.
    pub has_alternatives: bool,
}

impl Entry {
    /// Whether polls of its job take nothing from buckets: those of an alternative count submits.
    pub(super) const fn has_free_polls(&self) -> bool {
        self.has_alternatives
    }
}
