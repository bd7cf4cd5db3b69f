//! Which routes Discord counts together: the bucket hash last reported for each. A hint, kept in
//! memory and bounded; the figures are in limits, and no hash ever allows more than those do.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// Most routes remembered; Discord has some hundreds.
const ROUTES_MAX: usize = 1_024;
/// A longer text is not a hash.
const HASH_LEN_MAX: usize = 64;

/// Bucket hashes by route.
#[derive(Debug, Default)]
pub(super) struct BucketHashes(RwLock<HashMap<String, Arc<str>>>);

impl BucketHashes {
    /// Returns the hash of a route, if one was reported.
    pub(super) fn get(&self, route: &str) -> Option<Arc<str>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(route).cloned()
    }

    /// Stores the reported hash of a route.
    pub(super) fn put(&self, route: String, hash: &str) {
        if self.get(&route).as_deref() == Some(hash) {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ROUTES_MAX && !known.contains_key(&route) {
            known.clear();
        }
        known.insert(route, hash.into());
    }
}

/// Returns whether a text can be a hash, and part of a limit's name.
pub(super) fn is_hash(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b':');
    (1..=HASH_LEN_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_hash_counts_and_memory_is_bounded() {
        let buckets = BucketHashes::default();
        buckets.put("GET /a".into(), "one");
        buckets.put("GET /a".into(), "two");
        assert_eq!(buckets.get("GET /a").as_deref(), Some("two"));
        for route in 0..3 * ROUTES_MAX {
            buckets.put(route.to_string(), "x");
            assert!(buckets.0.read().unwrap().len() <= ROUTES_MAX);
        }
        assert!(is_hash("80c17d2f203122d936070c88c8d10f33") && !is_hash("a b") && !is_hash(""));
    }
}
