//! A named lease: one holder at a time among all processes, or as many as it has places. Who waits for it looks again; a dead holder's lease runs out.

pub(crate) mod guard;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::Time;
use tidegate_core::bounds::NAMED_LEASE_TTL_MAX;
use tidegate_core::shared::lease::AcquireOutcome as Answer;
use tidegate_store::SharedState;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, timeout_at};

use crate::{Error, Result, check_name};
use guard::LeaseGuard;

/// Shortest time to live: a holder must be able to renew it three times over a network in it.
const TTL_MIN: Duration = Duration::from_millis(100);
/// Who waits looks again at least this often, and at most so often.
const LOOK_MAX: Duration = Duration::from_secs(1);
const LOOK_MIN: Duration = Duration::from_millis(20);
/// Most places of one lease: each one is asked for by itself.
const PLACES_MAX: u32 = 64;

/// A lease, by name. Clones are the same handle.
#[derive(Clone)]
pub struct NamedLease {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: Arc<dyn SharedState>,
    name: String,
    ttl: Duration,
    places: u32,
    /// Those who wait here look one after the other.
    queue: Mutex<()>,
    /// It was released here.
    freed: Notify,
}

/// Whether it was acquired. That somebody else holds it is no error.
#[derive(Debug)]
#[must_use = "a guard that is dropped gives the lease back"]
pub enum LeaseAcquisition {
    /// It is held until the guard is released or dropped, or it is lost.
    Held(LeaseGuard),
    /// Somebody else holds it, or each of its places.
    Busy {
        /// When it runs out unless it is renewed, by the store's clock; of several places the first one.
        until: Time,
    },
}

impl LeaseAcquisition {
    /// The guard, if it was acquired.
    #[must_use]
    pub fn held(self) -> Option<LeaseGuard> {
        match self {
            Self::Held(guard) => Some(guard),
            Self::Busy { .. } => None,
        }
    }
}

impl NamedLease {
    /// A handle on the lease `name`, which runs out `ttl` after its holder has last renewed it.
    ///
    /// # Errors
    /// `Invalid` when the name is not 1 to 255 bytes on one line, or the time is not 100 ms to a day.
    pub fn new(store: Arc<dyn SharedState>, name: impl Into<String>, ttl: Duration) -> Result<Self> {
        Self::with_places(store, name, ttl, 1)
    }

    /// The same with `places` for as many holders at once. The first place is the lease `name`, the others are called
    /// `name:2`, `name:3` and so on, so the number may be changed while others hold it. A fence grows with the holders of
    /// its own place only.
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

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Acquires it if it is free. Asks once for each place, until one is free.
    ///
    /// # Errors
    /// The store's: it is not held then. When that [is unsure](Error::is_unsure) it may stay taken until it runs out.
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

    /// Acquires it, and waits for it at most for `patience`, behind those who wait at this handle already. It is noticed at
    /// once when the lease is released through this handle; else it is looked at every tenth of its time to live, which is
    /// at least every second and at most every 20 ms.
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
        let pause = (self.inner.ttl / 10).clamp(LOOK_MIN, LOOK_MAX);
        loop {
            let freed = self.inner.freed.notified();
            let looked = self.try_acquire().await?;
            let now = Instant::now();
            if matches!(looked, LeaseAcquisition::Held(_)) || end.is_some_and(|end| end <= now) {
                return Ok(looked);
            }
            let next = end.map_or(now + pause, |end| end.min(now + pause));
            // Either way it is time to look again.
            let _ = timeout_at(next, freed).await;
        }
    }
}

/// What a place is called in the store. The first one has the lease's own name.
fn place_name(lease: &str, place: u32) -> String {
    if place == 1 { lease.to_owned() } else { format!("{lease}:{place}") }
}

impl fmt::Debug for NamedLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease({:?}, {:?})", self.inner.name, self.inner.ttl)
    }
}
