//! Faults that tests inject: a full disk, and commits with an unknown outcome. A running server
//! injects none.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The faults to inject.
#[derive(Debug, Default)]
pub struct Faults {
    pages_max: AtomicU32,
    commit_unsure: AtomicBool,
}

impl Faults {
    /// Makes the disk full as soon as a file has this many pages, from the next write on.
    pub fn limit_pages(&self, pages_max: u32) {
        self.pages_max.store(pages_max, Ordering::SeqCst);
    }

    /// Removes the limit of pages.
    pub fn unlimit_pages(&self) {
        self.limit_pages(0);
    }

    /// Makes the next commit succeed, but report that its sync failed.
    pub fn make_next_commit_unsure(&self) {
        self.commit_unsure.store(true, Ordering::SeqCst);
    }

    /// Returns whether a file of this many pages is at the limit.
    pub(super) fn is_full(&self, pages: u32) -> bool {
        let most = self.pages_max();
        most != 0 && pages >= most
    }

    /// The limit of pages; 0 for none.
    pub(super) fn pages_max(&self) -> u32 {
        self.pages_max.load(Ordering::SeqCst)
    }

    /// Returns whether this commit is the one to report as unsure; consumes the fault.
    pub(super) fn takes_unsure_commit(&self) -> bool {
        self.commit_unsure.swap(false, Ordering::SeqCst)
    }
}
