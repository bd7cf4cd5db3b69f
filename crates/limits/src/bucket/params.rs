//! The capacity and refill rate of a bucket, either fixed or learned from the upstream API. The
//! store remembers the parameters of the last request, so a process starts with what another one
//! has learned.

use std::sync::{Mutex, PoisonError};

use tidegate_core::shared::bucket::{Level, ReservationRequest, Settlement};
use tidegate_store::SharedState;
use tokio::sync::OnceCell;

use super::SharedBucket;
use crate::tokens::LEAST;
use crate::{Result, Tokens};

/// The levels that an API reported for a bucket. Values that it did not mention are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReportedLevels {
    /// The capacity.
    pub capacity: Option<Tokens>,
    /// The refill per second.
    pub refill_per_s: Option<Tokens>,
    /// The tokens that are left.
    pub remaining: Option<Tokens>,
}

/// Capacity and refill, in micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketParams {
    pub(super) capacity: u64,
    pub(super) refill_per_s: u64,
}

/// The parameters that the next request carries.
pub(super) struct CurrentParams {
    now: Mutex<BucketParams>,
    /// Set once the store was asked what others have learned; set from the start for fixed
    /// parameters.
    loaded: OnceCell<()>,
}

impl CurrentParams {
    /// Parameters that never change.
    pub(super) fn fixed(pair: BucketParams) -> Self {
        Self { now: Mutex::new(pair), loaded: OnceCell::new_with(Some(())) }
    }

    /// Parameters that apply only until better ones are known.
    pub(super) fn bootstrap(pair: BucketParams) -> Self {
        Self { now: Mutex::new(pair), loaded: OnceCell::new() }
    }

    pub(super) fn now(&self) -> BucketParams {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, pair: BucketParams) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = pair;
    }

    /// Loads what others have learned. Asks the store once.
    pub(super) async fn load_learned(&self, store: &dyn SharedState, name: &str) -> Result<()> {
        if self.loaded.initialized() {
            return Ok(());
        }
        let look = || async {
            if let Some(level) = store.observe_bucket(name).await? {
                self.set(BucketParams { capacity: level.capacity, refill_per_s: level.refill_per_s });
            }
            Ok(())
        };
        self.loaded.get_or_try_init(look).await.copied()
    }

    /// Updates the parameters of a request that was built some time ago to what is known by now.
    pub(super) fn renew(&self, name: &str, wanted: &mut [ReservationRequest]) {
        let BucketParams { capacity, refill_per_s } = self.now();
        for want in wanted.iter_mut().filter(|want| want.name == name) {
            (want.capacity, want.refill_per_s) = (capacity, refill_per_s);
        }
    }
}

impl SharedBucket {
    /// Learns the parameters that an API reported: later requests through this handle carry them.
    /// Invalid values are ignored. The reported remainder is for
    /// [`Grant::settle_as_reported`](crate::Grant::settle_as_reported).
    pub fn learn(&self, told: &ReportedLevels) {
        let sensible = |figure: Option<Tokens>, what| figure?.checked(what, self.name(), LEAST).ok();
        let known = self.inner.params.now();
        let learned = BucketParams {
            capacity: sensible(told.capacity, "capacity").unwrap_or(known.capacity),
            refill_per_s: sensible(told.refill_per_s, "refill").unwrap_or(known.refill_per_s),
        };
        if learned != known {
            self.inner.params.set(learned);
        }
    }

    /// Settles, and trusts the API where it reports fewer tokens than known.
    pub(crate) async fn settle_reported(&self, settlement: Settlement, remaining: Option<u64>) -> Result<()> {
        let level: Option<Level> = self.store().settle_bucket(self.name(), settlement).await?;
        let lower = level.zip(remaining).and_then(|(level, remaining)| level.lowering_to(remaining));
        if let Some(lower) = lower {
            // Two processes that learn the same at once take it twice. That errs on the safe side,
            // and only once: a level below the reported one is left alone.
            self.store().settle_bucket(self.name(), lower).await?;
        }
        Ok(())
    }
}
