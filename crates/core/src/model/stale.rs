//! The limits that changed since they were last examined. A replay examines none before its end,
//! and may change ten thousand limits in millions of facts: what is collected meanwhile is bounded,
//! and so is the work of keeping it so.

use super::limit::LimitIx;

/// The changed limits that are collected before any is looked for twice.
const KEPT_MIN: usize = 4_096;

/// Limits to examine, some of them more than once.
#[derive(Debug)]
pub(super) struct StaleLimits {
    list: Vec<LimitIx>,
    /// The length at which duplicates are removed: at least twice what was left the last time, so
    /// that it does not happen at each further change.
    compact_at: usize,
}

impl StaleLimits {
    pub(super) const fn new() -> Self {
        Self { list: Vec::new(), compact_at: KEPT_MIN }
    }

    pub(super) fn push(&mut self, limit: LimitIx) {
        if self.list.len() >= self.compact_at {
            self.list.sort_unstable();
            self.list.dedup();
            self.compact_at = KEPT_MIN.max(self.list.len() * 2);
        }
        self.list.push(limit);
    }

    pub(super) fn pop(&mut self) -> Option<LimitIx> {
        self.list.pop()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A million changes of ten thousand limits leave each of them, at most twice, and are sorted
    /// as often as the limits double.
    #[test]
    fn a_long_replay_is_bounded() {
        let mut stale = StaleLimits::new();
        let mut bounds = BTreeSet::new();
        for nth in 0..1_000_000_u32 {
            stale.push(LimitIx(nth.wrapping_mul(7_919) % 10_000));
            bounds.insert(stale.compact_at);
            assert!(stale.list.len() <= 20_000, "{}", stale.list.len());
        }
        assert!(bounds.len() <= 4, "{bounds:?}");
        let left: BTreeSet<_> = std::iter::from_fn(|| stale.pop()).collect();
        assert_eq!(left.len(), 10_000);
    }
}
