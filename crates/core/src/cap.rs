//! A limit on concurrent calls. The fence of a claim identifies the holder of a slot, so a slot
//! that is released twice is released once.

use std::collections::BTreeSet;

use crate::id::Fence;

/// The state of a cap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cap {
    /// The number of slots.
    pub at_once: u32,
    holders: BTreeSet<Fence>,
}

impl Cap {
    /// Creates a cap with this many slots, all free.
    #[must_use]
    pub const fn new(at_once: u32) -> Self {
        Self { at_once, holders: BTreeSet::new() }
    }

    /// Whether a slot is free. A cap that was made smaller has none until enough are released.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.held() < self.at_once
    }

    /// The number of slots taken.
    #[must_use]
    pub fn held(&self) -> u32 {
        u32::try_from(self.holders.len()).unwrap_or(u32::MAX)
    }

    /// The claims that hold a slot.
    pub fn holders(&self) -> impl Iterator<Item = Fence> + '_ {
        self.holders.iter().copied()
    }

    /// Takes a slot for a claim.
    pub fn take(&mut self, fence: Fence) {
        self.holders.insert(fence);
    }

    /// Releases a claim's slot; `false` when it held none.
    pub fn release(&mut self, fence: Fence) -> bool {
        self.holders.remove(&fence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_back_once() {
        let mut cap = Cap::new(2);
        cap.take(Fence(1));
        cap.take(Fence(2));
        assert!(!cap.has_room());
        assert!(cap.release(Fence(1)));
        assert!(!cap.release(Fence(1)));
        assert!(cap.has_room());
        cap.at_once = 1;
        assert!(!cap.has_room());
    }
}
