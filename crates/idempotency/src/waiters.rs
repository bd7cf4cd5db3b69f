//! Requests that wait for another one's answer: how many there may be, and a nudge for those in the same process. Others find
//! out by looking again; a nudge that is lost costs time, nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Requests that may wait for one key.
const WAITERS_OF_A_KEY_MAX: usize = 256;
/// Requests that may wait in all.
const WAITERS_MAX: usize = 10_000;

#[derive(Default)]
struct WaiterTable {
    of: HashMap<String, (usize, Arc<Notify>)>,
    waiters: usize,
}

/// Who waits for what in this process.
#[derive(Clone, Default)]
pub(crate) struct KeyWaiters(Arc<Mutex<WaiterTable>>);

/// A place among those who wait; left when it is dropped.
pub(crate) struct WaiterSlot {
    waiting: KeyWaiters,
    name: String,
    pub(crate) nudge: Arc<Notify>,
}

impl KeyWaiters {
    fn lock(&self) -> MutexGuard<'_, WaiterTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place, unless too many wait already.
    pub(crate) fn enter(&self, name: &str) -> Option<WaiterSlot> {
        let mut rooms = self.lock();
        if rooms.waiters >= WAITERS_MAX {
            return None;
        }
        let (count, nudge) = rooms.of.entry(name.to_owned()).or_default();
        if *count >= WAITERS_OF_A_KEY_MAX {
            return None;
        }
        *count += 1;
        let nudge = Arc::clone(nudge);
        rooms.waiters += 1;
        Some(WaiterSlot { waiting: self.clone(), name: name.to_owned(), nudge })
    }

    /// Tells those who wait for a key that something happened.
    pub(crate) fn notify(&self, name: &str) {
        if let Some((_, nudge)) = self.lock().of.get(name) {
            nudge.notify_waiters();
        }
    }
}

impl Drop for WaiterSlot {
    fn drop(&mut self) {
        let mut rooms = self.waiting.lock();
        rooms.waiters -= 1;
        if let Some((count, _)) = rooms.of.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                rooms.of.remove(&self.name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// IDM-15: so many wait and no more, and a place that is left is free again.
    #[test]
    fn places_are_counted() {
        let waiting = KeyWaiters::default();
        let mut places: Vec<_> = (0..WAITERS_OF_A_KEY_MAX).map(|_| waiting.enter("k").unwrap()).collect();
        assert!(waiting.enter("k").is_none() && waiting.enter("other").is_some());
        places.pop();
        places.push(waiting.enter("k").unwrap());
        assert!(waiting.enter("k").is_none());
        drop(places);
        assert!(waiting.lock().of.is_empty() && waiting.lock().waiters == 0);
    }
}
