//! Copies in memory, at most a set number. When there is no room, those that were not read since
//! the last look go first.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tidegate_core::hydration::EntityKey;

use super::{CopyFuture, EntityChange, EntityCopy, LocalCopies};

/// Copies that are kept by default.
const COPIES_DEFAULT: usize = 100_000;

/// Copies in memory. Clones are the same copies.
#[derive(Clone, Debug)]
pub struct MemoryCopies(Arc<RwLock<CopyTable>>);

#[derive(Debug)]
struct CopyTable {
    entries: HashMap<EntityKey, CopyEntry>,
    /// The keys in the order in which they are considered for eviction.
    queue: VecDeque<EntityKey>,
    most: usize,
}

#[derive(Debug)]
struct CopyEntry {
    copy: Arc<EntityCopy>,
    is_used: AtomicBool,
}

impl MemoryCopies {
    /// Creates a store of at most `most` copies.
    #[must_use]
    pub fn new(most: usize) -> Self {
        let table = CopyTable { entries: HashMap::new(), queue: VecDeque::new(), most: most.max(1) };
        Self(Arc::new(RwLock::new(table)))
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
        if let Some(entry) = self.entries.get_mut(key) {
            entry.copy = copy;
            return;
        }
        while self.entries.len() >= self.most {
            self.evict_one();
        }
        self.queue.push_back(key.clone());
        self.entries.insert(key.clone(), CopyEntry { copy, is_used: AtomicBool::new(false) });
    }

    /// Removes the first copy that was not read since it was last considered.
    fn evict_one(&mut self) {
        while let Some(key) = self.queue.pop_front() {
            let Some(entry) = self.entries.get(&key) else { continue };
            if entry.is_used.swap(false, Ordering::Relaxed) {
                self.queue.push_back(key);
            } else {
                self.entries.remove(&key);
                return;
            }
        }
    }

    fn remove(&mut self, key: &EntityKey) {
        if self.entries.remove(key).is_some() {
            self.queue.retain(|queued| queued != key);
        }
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
