//! A bucket that many processes take from. Taking or saying when is one step of the store; waiting is done here, in a line
//! for each handle. The figures travel with every call, so there is nothing to set up and nothing to migrate.

mod multi_bucket;
pub(crate) mod params;
mod wait_queue;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome};
use tidegate_store::SharedState;
use tokio::time::Instant;

use crate::tokens::{LEAST, NOTHING, to_tokens};
use crate::{Error, Grant, Result, Tokens, check_name};
use params::{BucketParams, CurrentParams};
use wait_queue::WaitQueue;

pub use multi_bucket::{take_all, take_all_within, try_take_all};

/// A bucket: its name, what it holds, and what comes back each second. Clones are the same handle, with one line.
///
/// Everybody who names it should say the same figures: it follows those of the last one who asked.
#[derive(Clone)]
pub struct SharedBucket {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: Arc<dyn SharedState>,
    name: String,
    params: CurrentParams,
    queue: WaitQueue,
}

/// Whether it was granted. To be told to wait is no error.
#[derive(Debug)]
#[must_use = "what was not granted must not be spent"]
pub enum TokenTakeOutcome<T> {
    /// It was taken.
    Granted(T),
    /// Nothing was taken.
    Wait(Wait),
}

/// When it could be had.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// Until it could be had, if nobody else takes any; of several buckets the longest. Of those who waited in a line it
    /// is reckoned with all that stand before them.
    pub delay: Duration,
    /// What was left in each bucket, in tokens, in the order asked; nothing when patience ended in a line.
    pub remaining: Vec<f64>,
}

impl<T> TokenTakeOutcome<T> {
    /// What was granted, if it was.
    #[must_use]
    pub fn granted(self) -> Option<T> {
        match self {
            Self::Granted(granted) => Some(granted),
            Self::Wait(_) => None,
        }
    }
}

impl SharedBucket {
    /// A handle on a bucket of `capacity` tokens of which `refill_per_s` come back each second, evenly. It starts full.
    ///
    /// On a Redis Cluster, buckets that are taken together must have the same name up to the first slash.
    ///
    /// # Errors
    /// `Invalid` when the name or a figure is out of bounds: 1 to 255 bytes on one line, and 0.000001 to 10¹² tokens.
    pub fn new(
        store: Arc<dyn SharedState>,
        name: impl Into<String>,
        capacity: impl Into<Tokens>,
        refill_per_s: impl Into<Tokens>,
    ) -> Result<Self> {
        let (name, pair) = check_params(name, capacity.into(), refill_per_s.into())?;
        let inner = Inner { store, name, params: CurrentParams::fixed(pair), queue: WaitQueue::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// A handle on a bucket whose figures are [learned](Bucket::learn) from the API behind it: these serve only until then,
    /// and not at all when somebody has learned better ones before. It asks the store for them once, with its first take.
    ///
    /// # Errors
    /// As for [`SharedBucket::new`].
    pub fn learning(
        store: Arc<dyn SharedState>,
        name: impl Into<String>,
        capacity: impl Into<Tokens>,
        refill_per_s: impl Into<Tokens>,
    ) -> Result<Self> {
        let (name, pair) = check_params(name, capacity.into(), refill_per_s.into())?;
        let inner =
            Inner { store, name, params: CurrentParams::bootstrap(pair), queue: WaitQueue::default() };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The most it holds and what comes back each second, in tokens, as far as is known here.
    #[must_use]
    pub fn capacity_and_refill(&self) -> (f64, f64) {
        let BucketParams { capacity, refill_per_s } = self.inner.params.now();
        (to_tokens(capacity), to_tokens(refill_per_s))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// What is in it now, in tokens. One that nobody has used is full.
    ///
    /// # Errors
    /// The store's.
    pub async fn level(&self) -> Result<f64> {
        let level = self.inner.store.observe_bucket(self.name()).await?;
        Ok(to_tokens(level.map_or(self.inner.params.now().capacity, |level| level.tokens)))
    }

    /// Takes `cost`, or says when. Asks once, and looks at no line.
    ///
    /// # Errors
    /// `Invalid`, `TooCostly`, or the store's. Nothing is granted then.
    pub async fn try_take(&self, cost: impl Into<Tokens>) -> Result<TokenTakeOutcome<Grant>> {
        let wanted = self.wanted(cost.into()).await?;
        let cost = wanted.cost;
        let reserved = self.inner.store.reserve(vec![wanted]).await?;
        self.single(reserved, cost)
    }

    /// Takes `cost`, and waits for it as long as it takes, behind those who wait at this handle already. It asks again when
    /// it was told to, never earlier. Dropped while it waits, it leaves the line and takes nothing.
    ///
    /// Handles in other processes have lines of their own: between lines whoever asks first is first, so one that wants
    /// nearly the whole capacity may wait long while others take little and often.
    ///
    /// # Errors
    /// `Invalid`, `TooCostly`, or the store's. Nothing is granted then.
    pub async fn take(&self, cost: impl Into<Tokens>) -> Result<Grant> {
        let wanted = self.wanted(cost.into()).await?;
        loop {
            let reserved = self.reserve(vec![wanted.clone()], None).await?;
            if let TokenTakeOutcome::Granted(grant) = self.single(reserved, wanted.cost)? {
                return Ok(grant);
            }
        }
    }

    /// The same, waiting at most for `patience`. When it is told that this will not do, it says so at once and does not wait.
    /// A store that answers slowly is waited for all the same.
    ///
    /// # Errors
    /// As for [`SharedBucket::take`].
    pub async fn take_within(
        &self,
        cost: impl Into<Tokens>,
        patience: Duration,
    ) -> Result<TokenTakeOutcome<Grant>> {
        let wanted = self.wanted(cost.into()).await?;
        let cost = wanted.cost;
        let reserved = self.reserve(vec![wanted], Instant::now().checked_add(patience)).await?;
        self.single(reserved, cost)
    }

    pub(crate) fn store(&self) -> &dyn SharedState {
        &*self.inner.store
    }

    /// What is wanted of it, if it can ever be had.
    async fn wanted(&self, cost: Tokens) -> Result<ReservationRequest> {
        self.inner.params.load_learned(self.store(), self.name()).await?;
        let BucketParams { capacity, refill_per_s } = self.inner.params.now();
        let name = self.inner.name.clone();
        let cost = cost.checked("cost", &name, NOTHING)?;
        if cost > capacity {
            return Err(Error::TooCostly {
                bucket: name,
                cost: to_tokens(cost),
                capacity: to_tokens(capacity),
            });
        }
        Ok(ReservationRequest { name, cost, capacity, refill_per_s })
    }

    /// Asks at once when nobody waits here; else, and when it was told to wait, it stands in line.
    async fn reserve(
        &self,
        wanted: Vec<ReservationRequest>,
        until: Option<Instant>,
    ) -> Result<ReserveOutcome> {
        let mut not_before = Instant::now();
        if self.inner.queue.is_empty() {
            match self.inner.store.reserve(wanted.clone()).await? {
                ReserveOutcome::Wait { delay, remaining } => {
                    let told = wait_queue::after(delay);
                    if until.is_some_and(|until| told > until) {
                        return Ok(ReserveOutcome::Wait { delay, remaining });
                    }
                    not_before = told;
                }
                decided => return Ok(decided),
            }
        }
        wait_queue::wait_in_queue(&self.inner, wanted, not_before, until).await
    }

    fn single(&self, reserved: ReserveOutcome, cost: u64) -> Result<TokenTakeOutcome<Grant>> {
        match reserved {
            ReserveOutcome::Granted { remaining } => {
                let remaining = remaining.first().copied().unwrap_or_default();
                Ok(TokenTakeOutcome::Granted(Grant::new(self.clone(), cost, remaining)))
            }
            ReserveOutcome::Wait { delay, remaining } => {
                Ok(TokenTakeOutcome::Wait(Wait::new(delay, &remaining)))
            }
            ReserveOutcome::Never { .. } => {
                Err(too_costly(self.name(), cost, self.inner.params.now().capacity))
            }
        }
    }
}

impl Wait {
    fn new(delay: Duration, remaining: &[u64]) -> Self {
        Self { delay, remaining: remaining.iter().copied().map(to_tokens).collect() }
    }
}

/// The name and both figures, if they are within bounds.
fn check_params(
    name: impl Into<String>,
    capacity: Tokens,
    refill_per_s: Tokens,
) -> Result<(String, BucketParams)> {
    let name = check_name("bucket", name)?;
    let capacity = capacity.checked("capacity", &name, LEAST)?;
    let refill_per_s = refill_per_s.checked("refill", &name, LEAST)?;
    Ok((name, BucketParams { capacity, refill_per_s }))
}

/// It is checked before the store is asked, so a store that says so has figures of its own.
fn too_costly(bucket: &str, cost: u64, capacity: u64) -> Error {
    Error::TooCostly { bucket: bucket.to_owned(), cost: to_tokens(cost), capacity: to_tokens(capacity) }
}

impl fmt::Debug for SharedBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, (capacity, refill_per_s)) = (&self.inner.name, self.capacity_and_refill());
        write!(f, "Bucket({name:?}, {capacity} tokens, {refill_per_s} each second)")
    }
}
