//! An endpoint that fails for a while: the same time after the start for us and for the peer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

/// When the outage begins and ends, after the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutageWindow {
    pub from: Duration,
    pub lasts: Duration,
}

/// An outage that comes. Dropping it ends it.
pub(super) struct ScheduledOutage {
    endpoint: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl OutageWindow {
    pub(super) fn schedule(self, start: Instant, endpoint: Arc<AtomicBool>) -> ScheduledOutage {
        let switch = Arc::clone(&endpoint);
        let task = tokio::spawn(async move {
            sleep_until(start + self.from).await;
            switch.store(true, Ordering::Relaxed);
            sleep_until(start + self.from + self.lasts).await;
            switch.store(false, Ordering::Relaxed);
        });
        ScheduledOutage { endpoint, task }
    }

    /// Whether a time after the start is in it.
    pub(super) fn contains(self, at: Duration) -> bool {
        at >= self.from && at < self.from + self.lasts
    }
}

impl Drop for ScheduledOutage {
    fn drop(&mut self) {
        self.task.abort();
        self.endpoint.store(false, Ordering::Relaxed);
    }
}
