//! A lease that is held: renewed beside the work at a third of its time to live, and lost in good time. It counts as lost
//! here before it has run out in the store, because the time is counted from before the store was asked.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::shared::lease::Lease;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Inner;
use crate::Result;

/// A lease that is held. It is renewed by itself on a task of its own, so the work must not block the runtime.
///
/// Dropped, it is released in the background, as far as there is a runtime and the store can be reached; else it runs out.
#[must_use = "a guard that is dropped gives the lease back"]
pub struct LeaseGuard {
    lease: Arc<Inner>,
    /// What the place is called in the store.
    name: Arc<str>,
    held: Lease,
    state: watch::Receiver<State>,
    renewal: JoinHandle<()>,
    is_released: bool,
}

#[derive(Clone, Copy)]
struct State {
    /// It is surely ours before this.
    until: Instant,
    is_lost: bool,
}

impl LeaseGuard {
    pub(super) fn with_renewal(lease: Arc<Inner>, name: String, held: Lease, asked: Instant) -> Self {
        let (tell, state) = watch::channel(State { until: asked + lease.ttl, is_lost: false });
        let name: Arc<str> = name.into();
        let renewal = tokio::spawn(renew(Arc::clone(&lease), Arc::clone(&name), held, asked, tell));
        Self { lease, name, held, state, renewal, is_released: false }
    }

    /// A number that grows with every holder of this place of the lease. Give it to whatever the work writes to, and let that refuse
    /// smaller ones: it keeps a holder out that stood still and does not know yet that it lost the lease.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.held.fence
    }

    /// The name of the place that is held, which is the lease's own where it has one place.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is surely held at this moment. Once it is not, it never is again. Right even in a process that stood still
    /// for longer than the time to live, unless the whole machine was asleep.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let state = *self.state.borrow();
        !state.is_lost && Instant::now() < state.until
    }

    /// Waits until it is lost: it ran out because it could not be renewed in time, or somebody took it away.
    pub async fn lost(&self) {
        let mut state = self.state.clone();
        // When nobody renews it any more, it is lost too.
        let _ = state.wait_for(|state| state.is_lost).await;
    }

    /// Gives it back; `false` when it was lost before.
    ///
    /// # Errors
    /// The store's: then it runs out by itself.
    pub async fn release(mut self) -> Result<bool> {
        self.renewal.abort();
        self.is_released = true;
        let was_held = self.lease.store.release_lease(&self.name, self.held).await?;
        self.lease.freed.notify_one();
        Ok(was_held)
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.renewal.abort();
        if self.is_released {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (lease, name, held) = (Arc::clone(&self.lease), Arc::clone(&self.name), self.held);
            runtime.spawn(async move { release_in_background(&lease, &name, held).await });
        }
    }
}

impl fmt::Debug for LeaseGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = if self.is_held() { "held" } else { "lost" };
        write!(f, "Guard({:?}, fence {}, {held})", self.name, self.held.fence)
    }
}

/// Nobody waits for the outcome: what is not given back runs out.
async fn release_in_background(lease: &Inner, name: &str, held: Lease) {
    let _ = lease.store.release_lease(name, held).await;
    lease.freed.notify_one();
}

/// Renews until it is lost.
async fn renew(
    lease: Arc<Inner>,
    name: Arc<str>,
    held: Lease,
    mut asked: Instant,
    tell: watch::Sender<State>,
) {
    let third = lease.ttl / 3;
    let mut until = asked + lease.ttl;
    let mut next = asked + third;
    loop {
        sleep_until(next.min(until)).await;
        let now = Instant::now();
        if now >= until {
            break;
        }
        asked = now;
        match timeout_at(until, lease.store.renew_lease(&name, held, lease.ttl)).await {
            Ok(Ok(Some(_))) if Instant::now() < until => {
                until = asked + lease.ttl;
                next = asked + third;
                tell.send_replace(State { until, is_lost: false });
            }
            // Out of reach: there is time to try again.
            Ok(Err(_)) => next = Instant::now() + pause(lease.ttl),
            Ok(Ok(_)) | Err(_) => break,
        }
    }
    tell.send_replace(State { until, is_lost: true });
    // It may have been renewed too late to be told: nobody works under it any more.
    release_in_background(&lease, &name, held).await;
}

/// Between two tries of a renewal that failed.
fn pause(ttl: Duration) -> Duration {
    ttl / 20
}
