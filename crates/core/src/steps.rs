//! Counts the steps of a decision, in tests only: each look at a group or an operation, and each
//! comparison of two turns or two times. Whoever scans a collection takes such a step for each of
//! its members.

use std::cell::Cell;
use std::cmp::Ordering;

use crate::id::Turn;
use crate::time::Time;

thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Counts one step of this thread.
pub(crate) fn count() {
    STEPS.set(STEPS.get() + 1);
}

/// Returns how many steps a piece of work took.
pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = STEPS.get();
    let done = work();
    (done, STEPS.get() - before)
}

impl Ord for Turn {
    fn cmp(&self, other: &Self) -> Ordering {
        count();
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Turn {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Time {
    fn cmp(&self, other: &Self) -> Ordering {
        count();
        self.as_micros().cmp(&other.as_micros())
    }
}

impl PartialOrd for Time {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
