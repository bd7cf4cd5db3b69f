//! The history of effects, for finding duplicates, in bounded memory: the oldest are dropped first.

use std::collections::{HashSet, VecDeque};

use tidegate_core::fingerprint::Fingerprint;

/// Most effects remembered.
pub const SEEN_MAX: usize = 1_000_000;

/// Effects by location and key.
#[derive(Debug)]
pub struct EffectHistory {
    known: HashSet<u128>,
    order: VecDeque<u128>,
    most: usize,
}

impl Default for EffectHistory {
    fn default() -> Self {
        Self::with_capacity(SEEN_MAX)
    }
}

impl EffectHistory {
    /// Creates a history of this capacity.
    #[must_use]
    pub fn with_capacity(most: usize) -> Self {
        Self { known: HashSet::new(), order: VecDeque::new(), most }
    }

    /// Records an effect; true when it had happened before.
    pub fn record(&mut self, place: &str, key: &str) -> bool {
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
        let mut seen = EffectHistory::with_capacity(2);
        assert!(!seen.record("/a", "1") && seen.record("/a", "1"));
        assert!(!seen.record("/a", "2") && !seen.record("/b", "1"));
        assert!(!seen.record("/a", "1"), "the oldest is forgotten");
        assert_eq!((seen.known.len(), seen.order.len()), (2, 2));
    }
}
