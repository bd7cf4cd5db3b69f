//! The guard of a held lease. A task renews it at a third of its time to live. The guard reports
//! the lease as lost before it expires in the store, because its time is counted from before the
//! request to the store.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::shared::lease::Lease;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Inner;
use super::token::LeaseToken;
use crate::Result;

/// A held lease. A task of its own renews it, so the work must not block the runtime.
///
/// Dropping the guard releases the lease in the background if there is a runtime and the store can
/// be reached; otherwise the lease expires.
#[must_use = "dropping the guard releases the lease"]
pub struct LeaseGuard {
    lease: Arc<Inner>,
    /// The name of the held place in the store.
    name: Arc<str>,
    held: Lease,
    state: watch::Receiver<State>,
    renewal: JoinHandle<()>,
    is_released: bool,
}

#[derive(Clone, Copy)]
struct State {
    /// The lease is certainly ours before this instant.
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

    /// A fencing token: a number that grows with every holder of this place of the lease. Pass it
    /// to whatever the work writes to, and have that reject smaller ones. It keeps out a holder
    /// that was paused and does not know yet that it lost the lease.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.held.fence
    }

    /// The name of the held place; the lease's own name if it has one place.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the lease is certainly held at this moment. Once it is not, it never is
    /// again. The result is right even in a process that was paused for longer than the time to
    /// live, unless the whole machine was suspended.
    #[must_use]
    pub fn is_held(&self) -> bool {
        let state = *self.state.borrow();
        !state.is_lost && Instant::now() < state.until
    }

    /// Waits until the lease is lost: it expired because it could not be renewed in time, or
    /// another holder took it.
    pub async fn lost(&self) {
        let mut state = self.state.clone();
        // When the renewing task has ended, the lease is lost too.
        let _ = state.wait_for(|state| state.is_lost).await;
    }

    /// Releases the lease; returns `false` if it was lost before.
    ///
    /// # Errors
    /// The store's error; the lease then expires by itself.
    pub async fn release(mut self) -> Result<bool> {
        self.renewal.abort();
        self.is_released = true;
        self.lease.release(&self.name, self.held).await
    }

    /// Hands the lease over to whoever has the token. It is neither renewed nor released by itself
    /// from now on, and expires unless someone renews it: see [`NamedLease::renew`].
    ///
    /// [`NamedLease::renew`]: crate::NamedLease::renew
    #[must_use]
    pub fn into_token(mut self) -> LeaseToken {
        self.renewal.abort();
        self.is_released = true;
        LeaseToken { place: self.name.to_string(), fence: self.held.fence }
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

/// Releases a lease without anyone waiting for the outcome: if the release fails, the lease
/// expires.
async fn release_in_background(lease: &Inner, name: &str, held: Lease) {
    let _ = lease.release(name, held).await;
}

/// Renews the lease until it is lost.
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
            // The store is unavailable: there is time to retry.
            Ok(Err(_)) => next = Instant::now() + pause(lease.ttl),
            Ok(Ok(_)) | Err(_) => break,
        }
    }
    tell.send_replace(State { until, is_lost: true });
    // The renewal may have succeeded too late to be reported: no one works under this lease any
    // more.
    release_in_background(&lease, &name, held).await;
}

/// The pause before a failed renewal is retried.
fn pause(ttl: Duration) -> Duration {
    ttl / 20
}
