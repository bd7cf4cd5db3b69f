//! Requests that wait for another one's response: how many there may be, and notifications within
//! the process. Those in other processes poll; a lost notification costs time, nothing else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The most requests that may wait for one key.
const WAITERS_OF_A_KEY_MAX: usize = 256;
/// The most requests that may wait in total.
const WAITERS_MAX: usize = 10_000;

/// What those who wait for the same request share.
#[derive(Default)]
pub(crate) struct AwaitedRequest {
    pub(crate) nudge: Notify,
    /// Whether its outcome is unknown.
    is_in_doubt: AtomicBool,
}

#[derive(Default)]
struct WaiterTable {
    of: HashMap<String, (usize, Arc<AwaitedRequest>)>,
    waiters: usize,
}

/// The requests that wait in this process.
#[derive(Clone, Default)]
pub(crate) struct KeyWaiters(Arc<Mutex<WaiterTable>>);

/// A slot among the waiters; freed on drop.
pub(crate) struct WaiterSlot {
    waiting: KeyWaiters,
    name: String,
    pub(crate) awaited: Arc<AwaitedRequest>,
}

impl WaiterSlot {
    /// Whether the outcome of the request that it waits for is unknown.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.awaited.is_in_doubt.load(Ordering::Acquire)
    }
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
        let (count, awaited) = rooms.of.entry(name.to_owned()).or_default();
        if *count >= WAITERS_OF_A_KEY_MAX {
            return None;
        }
        *count += 1;
        let awaited = Arc::clone(awaited);
        rooms.waiters += 1;
        Some(WaiterSlot { waiting: self.clone(), name: name.to_owned(), awaited })
    }

    /// Notifies those who wait for a key.
    pub(crate) fn notify(&self, name: &str) {
        if let Some((_, awaited)) = self.lock().of.get(name) {
            awaited.nudge.notify_waiters();
        }
    }

    /// Tells those who wait for a key, before it is freed, that the outcome of its request is
    /// unknown. Those who come later wait for another request.
    pub(crate) fn doubt(&self, name: &str) {
        if let Some((_, awaited)) = self.lock().of.get_mut(name) {
            let awaited = std::mem::take(awaited);
            awaited.is_in_doubt.store(true, Ordering::Release);
            awaited.nudge.notify_waiters();
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
