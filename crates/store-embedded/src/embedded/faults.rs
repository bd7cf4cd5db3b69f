//! What tests break on purpose: room on the disk, and the certainty of a commit. A running server breaks nothing.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Faults that are to happen.
#[derive(Debug, Default)]
pub struct Faults {
    pages_max: AtomicU32,
    commit_unsure: AtomicBool,
}

impl Faults {
    /// The disk is full as soon as a file has this many pages, from the next write on.
    pub fn limit_pages(&self, pages_max: u32) {
        self.pages_max.store(pages_max, Ordering::SeqCst);
    }

    /// There is room again.
    pub fn unlimit_pages(&self) {
        self.limit_pages(0);
    }

    /// The next commit is written, but reported as a sync that failed.
    pub fn make_next_commit_unsure(&self) {
        self.commit_unsure.store(true, Ordering::SeqCst);
    }

    /// Whether a file of so many pages leaves no room.
    pub(super) fn is_full(&self, pages: u32) -> bool {
        let most = self.pages_max();
        most != 0 && pages >= most
    }

    /// The most pages; 0 is no bound.
    pub(super) fn pages_max(&self) -> u32 {
        self.pages_max.load(Ordering::SeqCst)
    }

    /// Whether this commit is the one; only one is.
    pub(super) fn takes_unsure_commit(&self) -> bool {
        self.commit_unsure.swap(false, Ordering::SeqCst)
    }
}
