//! A named lease: one holder at a time among all processes, or as many as it has places. A release
//! wakes its waiters by a hint; the lease of a dead holder expires.

pub(crate) mod guard;
pub(crate) mod token;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::bounds::NAMED_LEASE_TTL_MAX;
use tidegate_core::shared::lease::{AcquireOutcome as Answer, Lease};
use tidegate_store::SharedState;
use tidegate_store::hints::lease_topic;
use tokio::sync::{Mutex, Notify, mpsc};
use tokio::time::{Instant, timeout_at};

use crate::{Error, Result, check_name};
use guard::LeaseGuard;

/// The shortest time to live: a holder must be able to renew the lease three times over a network
/// within it.
const TTL_MIN: Duration = Duration::from_millis(100);
/// The longest pause between two polls of a waiter that gets hints: one may be lost, and a dead
/// holder sends none.
const HINTED_LOOK_MAX: Duration = Duration::from_secs(5);
/// The longest pause between two polls of a waiter that gets no hints.
const LOOK_MAX: Duration = Duration::from_secs(1);
/// The shortest pause between two polls of a waiter.
const LOOK_MIN: Duration = Duration::from_millis(20);
/// The most places of one lease: each one costs a request.
const PLACES_MAX: u32 = 64;

/// A lease, by name. Clones share the handle.
#[derive(Clone)]
pub struct NamedLease {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: Arc<dyn SharedState>,
    name: String,
    ttl: Duration,
    places: u32,
    /// Waiters at this handle poll one after the other.
    queue: Mutex<()>,
    /// Notified when the lease is released through this handle.
    freed: Notify,
}

/// The outcome of an acquisition. A lease that is already held is not an error.
#[derive(Debug)]
#[must_use = "dropping the guard releases the lease"]
pub enum LeaseAcquisition {
    /// The lease is held until the guard is released, dropped or lost.
    Held(LeaseGuard),
    /// The lease, or each of its places, is held by another.
    Busy {
        /// When the lease expires unless it is renewed, by the store's clock; for several places,
        /// the earliest.
        until: Time,
    },
}

impl LeaseAcquisition {
    /// Returns the guard, if the lease was acquired.
    #[must_use]
    pub fn held(self) -> Option<LeaseGuard> {
        match self {
            Self::Held(guard) => Some(guard),
            Self::Busy { .. } => None,
        }
    }
}

impl NamedLease {
    /// Creates a handle on the lease `name`, which expires `ttl` after its holder last renewed it.
    ///
    /// # Errors
    /// `Invalid` when the name is not 1 to 255 bytes on one line, or the time is not 100 ms to a
    /// day.
    pub fn new(store: Arc<dyn SharedState>, name: impl Into<String>, ttl: Duration) -> Result<Self> {
        Self::with_places(store, name, ttl, 1)
    }

    /// Creates a handle on a lease with `places` for as many holders at once. The first place is
    /// the lease `name`, the others are named `name:2`, `name:3` and so on, so the number may be
    /// changed while others hold the lease. A fence grows with the holders of its own place only.
    ///
    /// # Errors
    /// As for [`NamedLease::new`]; and `Invalid` when there are not 1 to 64 places.
    pub fn with_places(
        store: Arc<dyn SharedState>,
        name: impl Into<String>,
        ttl: Duration,
        places: u32,
    ) -> Result<Self> {
        let name = check_name("lease", name)?;
        if !(1..=PLACES_MAX).contains(&places) {
            let message = format!("The lease {name:?} has {places} places, and must have 1 to {PLACES_MAX}.");
            return Err(Error::Invalid(message));
        }
        check_name("lease", place_name(&name, places))?;
        if !(TTL_MIN..=NAMED_LEASE_TTL_MAX).contains(&ttl) {
            let message = format!(
                "The time to live of the lease {name:?} is {ttl:?}, and must be {TTL_MIN:?} to {NAMED_LEASE_TTL_MAX:?}."
            );
            return Err(Error::Invalid(message));
        }
        let (line, freed) = (Mutex::default(), Notify::new());
        Ok(Self { inner: Arc::new(Inner { store, name, ttl, places, queue: line, freed }) })
    }

    /// The name of the lease.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Acquires the lease if it is free. Asks the store once for each place, until one is free.
    ///
    /// # Errors
    /// The store's error; the lease is not held then. If the outcome [is unsure](Error::is_unsure)
    /// the lease may stay taken until it expires.
    pub async fn try_acquire(&self) -> Result<LeaseAcquisition> {
        let mut first = Time::MAX;
        for place in 1..=self.inner.places {
            let name = place_name(self.name(), place);
            let asked = Instant::now();
            match self.inner.store.acquire_lease(&name, self.inner.ttl).await? {
                Answer::Held(held) => {
                    let guard = LeaseGuard::with_renewal(Arc::clone(&self.inner), name, held, asked);
                    return Ok(LeaseAcquisition::Held(guard));
                }
                Answer::Busy { until } => first = first.min(until),
            }
        }
        Ok(LeaseAcquisition::Busy { until: first })
    }

    /// Acquires the lease, waiting for at most `patience`, behind those who already wait at this
    /// handle. A release wakes the waiters in all processes. A holder that dies wakes no one, so
    /// the lease is also polled every sixth of its time to live, at least every 5 s; every tenth,
    /// at least every second, if the store cannot be listened to.
    ///
    /// # Errors
    /// As for [`NamedLease::try_acquire`].
    pub async fn acquire_within(&self, patience: Duration) -> Result<LeaseAcquisition> {
        let end = Instant::now().checked_add(patience);
        let turn = match end {
            None => Some(self.inner.queue.lock().await),
            Some(end) => timeout_at(end, self.inner.queue.lock()).await.ok(),
        };
        if turn.is_none() {
            return self.try_acquire().await;
        }
        let mut releases = Releases::NotAsked;
        loop {
            let freed = self.inner.freed.notified();
            let looked = self.try_acquire().await?;
            let now = Instant::now();
            if matches!(looked, LeaseAcquisition::Held(_)) || end.is_some_and(|end| end <= now) {
                return Ok(looked);
            }
            if matches!(releases, Releases::NotAsked) {
                releases = self.listen(end).await;
                // It may have been released just before.
                continue;
            }
            let pause = match releases {
                Releases::Heard(_) => (self.inner.ttl / 6).clamp(LOOK_MIN, HINTED_LOOK_MAX),
                Releases::NotAsked | Releases::Unheard => (self.inner.ttl / 10).clamp(LOOK_MIN, LOOK_MAX),
            };
            let next = end.map_or(now + pause, |end| end.min(now + pause));
            let woken = async {
                tokio::select! {
                    () = freed => {}
                    () = releases.next() => {}
                }
            };
            // Either way it is time to poll again.
            let _ = timeout_at(next, woken).await;
        }
    }

    /// Listens to the releases of this lease through other handles.
    async fn listen(&self, end: Option<Instant>) -> Releases {
        let topic = lease_topic(self.name());
        let listening = self.inner.store.listen(&topic);
        let hints = match end {
            None => listening.await.ok(),
            Some(end) => timeout_at(end, listening).await.ok().and_then(std::result::Result::ok),
        };
        hints.map_or(Releases::Unheard, Releases::Heard)
    }
}

/// The hints about releases.
enum Releases {
    NotAsked,
    Heard(mpsc::Receiver<String>),
    /// The store cannot be listened to.
    Unheard,
}

impl Releases {
    /// Waits for the next hint.
    async fn next(&mut self) {
        match self {
            Self::Heard(hints) => {
                if hints.recv().await.is_none() {
                    *self = Self::Unheard;
                }
            }
            Self::NotAsked | Self::Unheard => std::future::pending().await,
        }
    }
}

impl Inner {
    /// Releases a place. A waiter that the hint does not reach finds out by itself.
    async fn release(&self, place: &str, held: Lease) -> Result<bool> {
        let was_held = self.store.release_lease(place, held).await?;
        self.freed.notify_one();
        if was_held {
            let _ = self.store.notify(&lease_topic(&self.name), &held.fence.to_string()).await;
        }
        Ok(was_held)
    }
}

/// The name of a place in the store. The first one has the lease's own name.
fn place_name(lease: &str, place: u32) -> String {
    if place == 1 { lease.to_owned() } else { format!("{lease}:{place}") }
}

impl fmt::Debug for NamedLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({:?}, {:?})", self.inner.name, self.inner.ttl)
    }
}
