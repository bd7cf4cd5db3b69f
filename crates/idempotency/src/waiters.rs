//! Requests that wait for another one's response: how many there may be, and notifications within
//! the process. Those in other processes poll; a lost notification costs time, nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The most requests that may wait for one key.
const WAITERS_OF_A_KEY_MAX: usize = 256;
/// The most requests that may wait in total.
const WAITERS_MAX: usize = 10_000;

#[derive(Default)]
struct WaiterTable {
    of: HashMap<String, (usize, Arc<Notify>)>,
    waiters: usize,
}

/// The requests that wait in this process.
#[derive(Clone, Default)]
pub(crate) struct KeyWaiters(Arc<Mutex<WaiterTable>>);

/// A slot among the waiters; freed on drop.
pub(crate) struct WaiterSlot {
    waiting: KeyWaiters,
    name: String,
    pub(crate) nudge: Arc<Notify>,
}

impl KeyWaiters {
    fn lock(&self) -> MutexGuard<'_, WaiterTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a slot, unless too many wait already.
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

    /// Notifies those who wait for a key.
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

    /// IDM-15: the number of waiters is limited, and a freed slot can be taken again.
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
