//! Copies in memory, at most a set number and a set size. When there is no room, those that were
//! not read since the last look go first.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Map, Value};
use tidegate_core::hydration::EntityKey;

use super::{CopyFuture, EntityChange, EntityCopy, LocalCopies};

/// Copies that are kept by default.
const COPIES_DEFAULT: usize = 100_000;
/// The size of all copies together by default, in bytes.
const SIZE_DEFAULT: usize = 256 * 1024 * 1024;
/// What a copy or a value takes apart from its text.
const OVERHEAD: usize = 64;

/// Copies in memory. Clones are the same copies.
#[derive(Clone, Debug)]
pub struct MemoryCopies(Arc<RwLock<CopyTable>>);

#[derive(Debug)]
struct CopyTable {
    entries: HashMap<EntityKey, CopyEntry>,
    /// The keys in the order in which they are considered for eviction.
    queue: VecDeque<EntityKey>,
    most: usize,
    size: usize,
    size_max: usize,
}

#[derive(Debug)]
struct CopyEntry {
    copy: Arc<EntityCopy>,
    size: usize,
    is_used: AtomicBool,
}

impl MemoryCopies {
    /// Creates a store of at most `most` copies.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let table = CopyTable {
            entries: HashMap::new(),
            queue: VecDeque::new(),
            most: most.max(1),
            size: 0,
            size_max: SIZE_DEFAULT,
        };
        Self(Arc::new(RwLock::new(table)))
    }

    /// Sets how much memory all copies may take together, in bytes; 256 MiB by default. A copy that
    /// is larger than that by itself is not kept.
    #[must_use]
    pub fn with_size_max(self, bytes: usize) -> Self {
        self.0.write().unwrap_or_else(PoisonError::into_inner).size_max = bytes;
        self
    }

    /// How many copies and tombstones there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn get(&self, key: &EntityKey) -> Option<Arc<EntityCopy>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let entry = table.entries.get(key)?;
        entry.is_used.store(true, Ordering::Relaxed);
        Some(Arc::clone(&entry.copy))
    }

    fn apply(&self, key: &EntityKey, change: &EntityChange) -> Option<Arc<EntityCopy>> {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let stored = table.entries.get(key).map(|entry| Arc::clone(&entry.copy));
        let next = change.apply(stored.as_deref());
        if stored.as_deref() == next.as_ref() {
            return stored;
        }
        let Some(copy) = next.map(Arc::new) else {
            table.remove(key);
            return None;
        };
        table.insert(key, Arc::clone(&copy));
        Some(copy)
    }
}

impl Default for MemoryCopies {
    fn default() -> Self {
        Self::new(COPIES_DEFAULT)
    }
}

impl CopyTable {
    fn insert(&mut self, key: &EntityKey, copy: Arc<EntityCopy>) {
        let size = OVERHEAD + key.id().len() + size_of_object(&copy.data);
        self.size += size;
        match self.entries.get_mut(key) {
            Some(entry) => {
                self.size -= std::mem::replace(&mut entry.size, size);
                entry.copy = copy;
            }
            None => {
                self.queue.push_back(key.clone());
                let entry = CopyEntry { copy, size, is_used: AtomicBool::new(false) };
                self.entries.insert(key.clone(), entry);
            }
        }
        while self.entries.len() > self.most || self.size > self.size_max {
            self.evict_one();
        }
    }

    /// Removes the first copy that was not read since it was last considered.
    fn evict_one(&mut self) {
        while let Some(key) = self.queue.pop_front() {
            let Some(entry) = self.entries.get(&key) else { continue };
            if entry.is_used.swap(false, Ordering::Relaxed) {
                self.queue.push_back(key);
            } else {
                self.size -= self.entries.remove(&key).map_or(0, |entry| entry.size);
                return;
            }
        }
    }

    fn remove(&mut self, key: &EntityKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.size -= entry.size;
            self.queue.retain(|queued| queued != key);
        }
    }
}

/// About what an object takes in memory.
fn size_of_object(object: &Map<String, Value>) -> usize {
    object.iter().map(|(name, value)| OVERHEAD + name.len() + size_of_value(value)).sum()
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(|value| OVERHEAD + size_of_value(value)).sum(),
        Value::Object(object) => size_of_object(object),
    }
}

impl LocalCopies for MemoryCopies {
    fn load<'a>(&'a self, key: &'a EntityKey) -> CopyFuture<'a, Option<Arc<EntityCopy>>> {
        Box::pin(std::future::ready(Ok(self.get(key))))
    }

    fn update<'a>(
        &'a self,
        key: &'a EntityKey,
        change: &'a EntityChange,
    ) -> CopyFuture<'a, Option<Arc<EntityCopy>>> {
        Box::pin(std::future::ready(Ok(self.apply(key, change))))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::Time;
    use tidegate_core::hydration::{EntityStamp, HydrationMode};

    use super::*;

    fn update(text: &str, version: u64) -> EntityChange {
        let Value::Object(data) = json!({ "text": text }) else { unreachable!() };
        let stamp = EntityStamp { version: Some(version), as_of: None };
        let source_module = "crm".to_owned();
        EntityChange::Updated { data, mode: HydrationMode::Full, stamp, source_module, at: Time::ZERO }
    }

    /// Large copies leave when there is no room for all of them, and what they took is free again.
    #[test]
    fn copies_are_bounded_by_their_size() {
        let copies = MemoryCopies::new(1_000).with_size_max(10_000);
        let key = |nth: u64| EntityKey::new("default", "customer", &nth.to_string()).unwrap();
        for nth in 0..50 {
            copies.apply(&key(nth), &update(&"x".repeat(1_000), 1));
        }
        let size = || copies.0.read().unwrap().size;
        assert!((8..=9).contains(&copies.len()) && size() <= 10_000, "{} of {}", copies.len(), size());
        assert!(copies.get(&key(49)).is_some() && copies.get(&key(0)).is_none());
        copies.apply(&key(49), &update("short", 2));
        assert!(size() <= 9_000, "{}", size());
        copies.apply(&key(50), &update(&"x".repeat(20_000), 1));
        assert!(copies.get(&key(50)).is_none(), "it is too large by itself");
        for nth in 0..51 {
            copies.apply(&key(nth), &EntityChange::Forgotten);
        }
        assert_eq!((copies.len(), size()), (0, 0));
    }

    /// What was published with a version that its owner never reaches can be forgotten.
    #[test]
    fn a_forgotten_copy_has_no_version() {
        let copies = MemoryCopies::default();
        let key = EntityKey::new("default", "customer", "c-7").unwrap();
        copies.apply(&key, &update("wrong", u64::MAX));
        copies.apply(&key, &update("right", 7));
        assert_eq!(copies.get(&key).unwrap().data["text"], "wrong");
        copies.apply(&key, &EntityChange::Forgotten);
        copies.apply(&key, &update("right", 7));
        assert_eq!(copies.get(&key).unwrap().data["text"], "right");
    }
}
