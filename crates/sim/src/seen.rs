//! Which effects have happened before, in bounded memory: the oldest are forgotten first.

use std::collections::{HashSet, VecDeque};

use tidegate_core::fingerprint::Fingerprint;

/// Most effects that are remembered.
pub const SEEN_MAX: usize = 1_000_000;

/// Effects by place and key.
#[derive(Debug)]
pub struct Seen {
    known: HashSet<u128>,
    order: VecDeque<u128>,
    most: usize,
}

impl Default for Seen {
    fn default() -> Self {
        Self::with_most(SEEN_MAX)
    }
}

impl Seen {
    /// One that remembers this many.
    #[must_use]
    pub fn with_most(most: usize) -> Self {
        Self { known: HashSet::new(), order: VecDeque::new(), most }
    }

    /// Remembers an effect; true when it had happened before.
    pub fn again(&mut self, place: &str, key: &str) -> bool {
        let hash = Fingerprint::of("sim effect").part(place.as_bytes()).part(key.as_bytes()).short();
        if !self.known.insert(hash) {
            return true;
        }
        self.order.push_back(hash);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_known_by_place_and_key() {
        let mut seen = Seen::with_most(2);
        assert!(!seen.again("/a", "1") && seen.again("/a", "1"));
        assert!(!seen.again("/a", "2") && !seen.again("/b", "1"));
        assert!(!seen.again("/a", "1"), "the oldest is forgotten");
        assert_eq!((seen.known.len(), seen.order.len()), (2, 2));
    }
}
