//! Listens to the releases of a shop's lease while jobs of the queue wait for it, so that they
//! start when it is free and not when they ask the next time.

use std::collections::BTreeSet;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_core::OperationId;
use tidegate_store::SharedState;
use tidegate_store::hints::lease_topic;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long a store may take to confirm that it is listened to.
const CONFIRM_MAX: Duration = Duration::from_secs(2);
/// How long it listens without a release. The next job that waits listens again.
const IDLE_MAX: Duration = Duration::from_secs(120);
/// How many jobs of one shop are woken by a release; others ask again after a while.
const WAITING_MAX: usize = 64;

/// Reports the jobs that may start because a lease was released.
pub(super) struct ReleaseWatch {
    store: Arc<dyn SharedState>,
    topic: String,
    starts: broadcast::Sender<OperationId>,
    waiting: Arc<WaitingJobs>,
    listener: tokio::sync::Mutex<Option<Listener>>,
}

/// The jobs that wait for a lease.
#[derive(Default)]
struct WaitingJobs(Mutex<BTreeSet<OperationId>>);

impl WaitingJobs {
    fn change<T>(&self, change: impl FnOnce(&mut BTreeSet<OperationId>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A task that ends with its owner.
struct Listener(JoinHandle<()>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ReleaseWatch {
    /// Watches the lease of this name; jobs that may start are sent to `starts`.
    pub(super) fn new(
        store: Arc<dyn SharedState>,
        lease: &str,
        starts: broadcast::Sender<OperationId>,
    ) -> Self {
        let (waiting, listener) = (Arc::default(), tokio::sync::Mutex::default());
        Self { store, topic: lease_topic(lease), starts, waiting, listener }
    }

    /// Lets a job wait for the next release, and listens from now on unless it does already;
    /// returns `false` if the store cannot be listened to.
    pub(super) async fn add(&self, job: Option<OperationId>) -> bool {
        self.waiting.change(|waiting| {
            if waiting.len() < WAITING_MAX {
                waiting.extend(job);
            }
        });
        let mut listener = self.listener.lock().await;
        if listener.as_ref().is_some_and(|listener| !listener.0.is_finished()) {
            return true;
        }
        let Ok(Ok(hints)) = timeout(CONFIRM_MAX, self.store.listen(&self.topic)).await else {
            return false;
        };
        let report = report_releases(hints, Arc::clone(&self.waiting), self.starts.clone());
        *listener = Some(Listener(tokio::spawn(report)));
        true
    }

    /// Forgets a job that waits no longer.
    pub(super) fn remove(&self, job: Option<OperationId>) {
        if let Some(job) = job {
            self.waiting.change(|waiting| waiting.remove(&job));
        }
    }
}

async fn report_releases(
    mut hints: mpsc::Receiver<String>,
    waiting: Arc<WaitingJobs>,
    starts: broadcast::Sender<OperationId>,
) {
    while let Ok(Some(_)) = timeout(IDLE_MAX, hints.recv()).await {
        for job in waiting.change(mem::take) {
            // Without an engine no one waits.
            let _ = starts.send(job);
        }
    }
}
