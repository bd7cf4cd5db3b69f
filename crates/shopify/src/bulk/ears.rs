//! Those who wait for a bulk operation, by its id, so that a webhook can wake them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Who waits for which operation.
#[derive(Clone, Default)]
pub(crate) struct Ears(Arc<Mutex<HashMap<String, Heard>>>);

#[derive(Default)]
struct Heard {
    notify: Arc<Notify>,
    waiting: usize,
}

/// One who waits. It is forgotten when it is dropped.
pub(crate) struct Ear {
    ears: Ears,
    id: String,
    notify: Arc<Notify>,
}

impl Ears {
    pub(crate) fn listen(&self, id: &str) -> Ear {
        let mut all = self.all();
        let heard = all.entry(id.to_owned()).or_default();
        heard.waiting += 1;
        Ear { ears: self.clone(), id: id.to_owned(), notify: Arc::clone(&heard.notify) }
    }

    /// Wakes those who wait for this operation. With nobody there is nothing to do: who comes later looks first.
    pub(crate) fn tell(&self, id: &str) {
        if let Some(heard) = self.all().get(id) {
            heard.notify.notify_waiters();
            // One that looks at this moment is woken when it has looked.
            heard.notify.notify_one();
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Heard>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ear {
    /// Waits until somebody tells.
    pub(crate) async fn told(&self) {
        self.notify.notified().await;
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let mut all = self.ears.all();
        if let Some(heard) = all.get_mut(&self.id) {
            heard.waiting -= 1;
            if heard.waiting == 0 {
                all.remove(&self.id);
            }
        }
    }
}
