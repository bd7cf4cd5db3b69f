//! A token bucket shared by many processes. Taking tokens, or learning when they will be available,
//! is one atomic step of the store. Waiting happens in this process, in one queue per handle. The
//! parameters travel with every request, so there is nothing to set up and nothing to migrate.

mod multi_bucket;
pub(crate) mod params;
mod wait_queue;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate_core::shared::bucket::{ReservationRequest, ReserveOutcome};
use tidegate_store::SharedState;
use tokio::time::Instant;

use crate::fixed_share::is_out_of_reach;
use crate::tokens::{LEAST, NOTHING, to_tokens};
use crate::{Error, FixedShare, Grant, Result, Tokens, check_name};
use params::{BucketParams, CurrentParams};
use wait_queue::WaitQueue;

pub use multi_bucket::{take_all, take_all_within, try_take_all};

/// A handle on a token bucket: its name, its capacity and its refill rate. Clones share the handle
/// and its queue.
///
/// All processes that use a bucket should pass the same parameters: the bucket follows those of the
/// last request.
#[derive(Clone)]
pub struct SharedBucket {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    store: Arc<dyn SharedState>,
    name: String,
    params: CurrentParams,
    queue: WaitQueue,
    share: OnceLock<FixedShare>,
}

impl Inner {
    /// Asks the store, or the share while the store is out of reach.
    async fn reserve_step(&self, wanted: Vec<ReservationRequest>) -> tidegate_store::Result<ReserveOutcome> {
        match self.share.get() {
            Some(share) => share.reserve(&*self.store, wanted).await,
            None => self.store.reserve(wanted).await,
        }
    }
}

/// The outcome of a take. Having to wait is not an error.
#[derive(Debug)]
#[must_use = "what was not granted must not be spent"]
pub enum TokenTakeOutcome<T> {
    /// The tokens were taken.
    Granted(T),
    /// Nothing was taken.
    Wait(Wait),
}

/// When the tokens would be available.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Wait {
    /// The time until the tokens would be available if no one else takes any; for several buckets,
    /// the longest. For a waiter in a queue it includes everything ahead of it.
    pub delay: Duration,
    /// The tokens left in each bucket, in the order of the request; empty if the wait in a queue
    /// timed out.
    pub remaining: Vec<f64>,
}

impl<T> TokenTakeOutcome<T> {
    /// Returns the grant, if there is one.
    #[must_use]
    pub fn granted(self) -> Option<T> {
        match self {
            Self::Granted(granted) => Some(granted),
            Self::Wait(_) => None,
        }
    }
}

impl SharedBucket {
    /// Creates a handle on a bucket of `capacity` tokens that refills evenly with `refill_per_s`
    /// tokens each second. The bucket starts full.
    ///
    /// On a Redis Cluster, buckets that are taken together must have the same name up to the first
    /// slash.
    ///
    /// # Errors
    /// `Invalid` when the name or a figure is out of bounds: 1 to 255 bytes on one line, and
    /// 0.000001 to 10¹² tokens.
    pub fn new(
        store: Arc<dyn SharedState>,
        name: impl Into<String>,
        capacity: impl Into<Tokens>,
        refill_per_s: impl Into<Tokens>,
    ) -> Result<Self> {
        let (name, pair) = check_params(name, capacity.into(), refill_per_s.into())?;
        Ok(Self::with_params(store, name, CurrentParams::fixed(pair)))
    }

    fn with_params(store: Arc<dyn SharedState>, name: String, params: CurrentParams) -> Self {
        let (queue, share) = (WaitQueue::default(), OnceLock::new());
        Self { inner: Arc::new(Inner { store, name, params, queue, share }) }
    }

    /// Uses a fixed share of the limit while the store is out of reach, instead of granting
    /// nothing. What is granted from it is taken from the bucket when the store is back. A handle
    /// keeps its first share; buckets that are taken together must have the same one, or none.
    #[must_use]
    pub fn with_fixed_share(self, share: &FixedShare) -> Self {
        let _ = self.inner.share.set(share.clone());
        self
    }

    /// Creates a handle on a bucket whose parameters are [learned](SharedBucket::learn) from the
    /// upstream API. The given ones apply only until then, and not at all if another process has
    /// already learned better ones. The first take asks the store for them once.
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
        Ok(Self::with_params(store, name, CurrentParams::bootstrap(pair)))
    }

    /// The capacity and the refill per second, in tokens, as far as this handle knows.
    #[must_use]
    pub fn capacity_and_refill(&self) -> (f64, f64) {
        let BucketParams { capacity, refill_per_s } = self.inner.params.now();
        (to_tokens(capacity), to_tokens(refill_per_s))
    }

    /// The name of the bucket.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns the current level, in tokens. An unused bucket is full.
    ///
    /// # Errors
    /// The store's error.
    pub async fn level(&self) -> Result<f64> {
        let level = self.inner.store.observe_bucket(self.name()).await?;
        Ok(to_tokens(level.map_or(self.inner.params.now().capacity, |level| level.tokens)))
    }

    /// Takes `cost`, or returns when it would be available. Asks the store once and bypasses the
    /// queue.
    ///
    /// # Errors
    /// `Invalid`, `TooCostly`, or the store's error. Nothing is granted then.
    pub async fn try_take(&self, cost: impl Into<Tokens>) -> Result<TokenTakeOutcome<Grant>> {
        let wanted = self.wanted(cost.into()).await?;
        let cost = wanted.cost;
        let reserved = self.inner.reserve_step(vec![wanted]).await?;
        self.single(reserved, cost)
    }

    /// Takes `cost`, waiting as long as necessary, behind those who already wait at this handle. It
    /// asks the store again when the store said so, never earlier. Dropping the future leaves the
    /// queue and takes nothing.
    ///
    /// Handles in other processes have queues of their own. Between queues, whoever asks first is
    /// served first, so a waiter that wants nearly the whole capacity may wait long while others
    /// take little and often.
    ///
    /// # Errors
    /// `Invalid`, `TooCostly`, or the store's error. Nothing is granted then.
    pub async fn take(&self, cost: impl Into<Tokens>) -> Result<Grant> {
        let wanted = self.wanted(cost.into()).await?;
        loop {
            let reserved = self.reserve(vec![wanted.clone()], None).await?;
            if let TokenTakeOutcome::Granted(grant) = self.single(reserved, wanted.cost)? {
                return Ok(grant);
            }
        }
    }

    /// Takes `cost`, waiting for at most `patience`. Returns at once, without waiting, when the
    /// store says that the wait would be longer. A slow response of the store is awaited in any
    /// case.
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

    /// Builds the reservation request, if it can ever be granted.
    async fn wanted(&self, cost: Tokens) -> Result<ReservationRequest> {
        match self.inner.params.load_learned(self.store(), self.name()).await {
            // What others have learned is not known; a share of what this handle knows is used.
            Err(Error::Store(error)) if self.inner.share.get().is_some() && is_out_of_reach(error.kind()) => {
            }
            loaded => loaded?,
        }
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

    /// Asks the store at once if no one waits at this handle; otherwise, or when told to wait,
    /// joins the queue.
    async fn reserve(
        &self,
        wanted: Vec<ReservationRequest>,
        until: Option<Instant>,
    ) -> Result<ReserveOutcome> {
        let mut not_before = Instant::now();
        if self.inner.queue.is_empty() {
            match self.inner.reserve_step(wanted.clone()).await? {
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

/// Checks the name and both figures against their bounds.
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

/// Costs are checked before the store is asked, so a store that reports this has parameters of its
/// own.
fn too_costly(bucket: &str, cost: u64, capacity: u64) -> Error {
    Error::TooCostly { bucket: bucket.to_owned(), cost: to_tokens(cost), capacity: to_tokens(capacity) }
}

impl fmt::Debug for SharedBucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, (capacity, refill_per_s)) = (&self.inner.name, self.capacity_and_refill());
        write!(f, "Bucket({name:?}, {capacity} tokens, {refill_per_s} each second)")
    }
}
