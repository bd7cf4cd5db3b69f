//! The reported costs of calls, by shape. Bounded: of two generations the older one is dropped when
//! the newer is full, so shapes in use stay and unused ones go.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Most shapes per generation.
const GENERATION_MAX: usize = 4_096;

/// Costs by shape, in micro-points.
#[derive(Debug, Default)]
pub struct CostCache(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<u128, u64>,
    old: HashMap<u128, u64>,
}

impl CostCache {
    /// Returns the last reported cost of a shape.
    #[must_use]
    pub fn get(&self, shape: u128) -> Option<u64> {
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cost) = memory.young.get(&shape) {
            return Some(*cost);
        }
        let cost = memory.old.remove(&shape)?;
        memory.put(shape, cost);
        Some(cost)
    }

    /// Stores the cost of a shape.
    pub fn put(&self, shape: u128, cost: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(shape, cost);
    }
}

impl Generations {
    fn put(&mut self, shape: u128, cost: u64) {
        if self.young.len() >= GENERATION_MAX && !self.young.contains_key(&shape) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(shape, cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// LIM-8: the cache is bounded, and shapes in use stay.
    #[test]
    fn lim_8_what_is_in_use_is_remembered_in_bounded_memory() {
        let memory = CostCache::default();
        memory.put(0, 7);
        for shape in 1..50_000 {
            memory.put(shape, 1);
            assert_eq!(memory.get(0), Some(7));
        }
        assert_eq!(memory.get(1), None, "long gone");
        let kept = memory.0.lock().unwrap();
        assert!(kept.young.len() + kept.old.len() <= 2 * GENERATION_MAX);
    }
}
