//! Waiters for bulk operations, by the operation's id, so that a webhook can wake them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// All waiters, by operation.
#[derive(Clone, Default)]
pub(crate) struct Waiters(Arc<Mutex<HashMap<String, WaiterEntry>>>);

#[derive(Default)]
struct WaiterEntry {
    notify: Arc<Notify>,
    waiting: usize,
}

/// One waiter. Dropping it removes it.
pub(crate) struct Waiter {
    waiters: Waiters,
    id: String,
    notify: Arc<Notify>,
}

impl Waiters {
    pub(crate) fn register(&self, id: &str) -> Waiter {
        let mut all = self.lock();
        let heard = all.entry(id.to_owned()).or_default();
        heard.waiting += 1;
        Waiter { waiters: self.clone(), id: id.to_owned(), notify: Arc::clone(&heard.notify) }
    }

    /// Wakes the waiters of this operation. Without any there is nothing to do: a later one polls
    /// first.
    pub(crate) fn wake(&self, id: &str) {
        if let Some(heard) = self.lock().get(id) {
            heard.notify.notify_waiters();
            // A waiter that is polling at this moment is woken after the poll.
            heard.notify.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, WaiterEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Waits for a wake-up.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut all = self.waiters.lock();
        if let Some(heard) = all.get_mut(&self.id) {
            heard.waiting -= 1;
            if heard.waiting == 0 {
                all.remove(&self.id);
            }
        }
    }
}
