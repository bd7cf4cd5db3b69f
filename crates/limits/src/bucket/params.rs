//! What a bucket holds and what comes back each second: as it was said, or as it was learned from the API behind it. The
//! store remembers the figures of the last one who asked, so what one process has learned the next one begins with.

use std::sync::{Mutex, PoisonError};

use tidegate_core::shared::bucket::{Level, ReservationRequest, Settlement};
use tidegate_store::SharedState;
use tokio::sync::OnceCell;

use super::SharedBucket;
use crate::tokens::LEAST;
use crate::{Result, Tokens};

/// What an API said about a bucket. What it did not mention is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReportedLevels {
    /// The most it holds.
    pub capacity: Option<Tokens>,
    /// What comes back each second.
    pub refill_per_s: Option<Tokens>,
    /// What is left.
    pub remaining: Option<Tokens>,
}

/// Both figures, in micro-tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BucketParams {
    pub(super) capacity: u64,
    pub(super) refill_per_s: u64,
}

/// The figures that the next question carries.
pub(super) struct CurrentParams {
    now: Mutex<BucketParams>,
    /// Done once the store was asked what others have learned; from the start where nothing is learned.
    loaded: OnceCell<()>,
}

impl CurrentParams {
    /// Figures that stay as they are.
    pub(super) fn fixed(pair: BucketParams) -> Self {
        Self { now: Mutex::new(pair), loaded: OnceCell::new_with(Some(())) }
    }

    /// Figures that only serve until better ones are known.
    pub(super) fn bootstrap(pair: BucketParams) -> Self {
        Self { now: Mutex::new(pair), loaded: OnceCell::new() }
    }

    pub(super) fn now(&self) -> BucketParams {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, pair: BucketParams) {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = pair;
    }

    /// Begins with what others have learned. Asks the store once.
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

    /// A question asked some time after it was put together carries what is known by then.
    pub(super) fn renew(&self, name: &str, wanted: &mut [ReservationRequest]) {
        let BucketParams { capacity, refill_per_s } = self.now();
        for want in wanted.iter_mut().filter(|want| want.name == name) {
            (want.capacity, want.refill_per_s) = (capacity, refill_per_s);
        }
    }
}

impl SharedBucket {
    /// Learns what an API said: what is asked through this handle from now on carries these figures. One that makes no
    /// sense is not learned; what is left is a matter of [`Grant::settle_as_reported`](crate::Grant::settle_as_reported).
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

    /// Settles, and believes the API where it says that less is left. More than we know of is never believed: calls that
    /// are under way have not reached it yet.
    pub(crate) async fn settle_reported(&self, settlement: Settlement, remaining: Option<u64>) -> Result<()> {
        let level: Option<Level> = self.store().settle_bucket(self.name(), settlement).await?;
        if let (Some(level), Some(remaining)) = (level, remaining)
            && level.tokens > remaining
        {
            // Two who learn the same at once take it twice. That errs on the safe side, and not again: what is lower than
            // the API says is left alone.
            let beyond = Settlement { reserved: 0, actual: level.tokens - remaining };
            self.store().settle_bucket(self.name(), beyond).await?;
        }
        Ok(())
    }
}
