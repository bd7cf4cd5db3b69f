//! Those who wait for a bulk operation, by its id, so that a webhook can wake them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Who waits for which operation.
#[derive(Clone, Default)]
pub(crate) struct Waiters(Arc<Mutex<HashMap<String, WaiterEntry>>>);

#[derive(Default)]
struct WaiterEntry {
    notify: Arc<Notify>,
    waiting: usize,
}

/// One who waits. It is forgotten when it is dropped.
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

    /// Wakes those who wait for this operation. With nobody there is nothing to do: who comes later looks first.
    pub(crate) fn wake(&self, id: &str) {
        if let Some(heard) = self.lock().get(id) {
            heard.notify.notify_waiters();
            // One that looks at this moment is woken when it has looked.
            heard.notify.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, WaiterEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiter {
    /// Waits until somebody tells.
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
