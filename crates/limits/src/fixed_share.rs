//! What a process may use of its buckets while their store is out of reach. The share is counted in
//! this process, begins empty, and is paid to the store when it is back: so as long as the shares
//! of all processes add up to no more than one, all of them together keep within the limit.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_core::Time;
use tidegate_core::shared::bucket::{self, Level, ReservationRequest, ReserveOutcome, Settlement};
use tidegate_store::{SharedState, StoreErrorKind};
use tokio::time::Instant;

use crate::{Error, Result};

/// A fixed share of the limit for each bucket that [has it](crate::SharedBucket::with_fixed_share),
/// to be used while the store is out of reach. Clones are the same share: a process has one.
#[derive(Clone)]
pub struct FixedShare(Arc<ShareState>);

struct ShareState {
    share: f64,
    start: Instant,
    ledger: Mutex<Ledger>,
}

/// What was used of the share, by bucket. An entry lasts from the first failure to the first
/// success.
type Ledger = HashMap<String, LocalBucket>;

struct LocalBucket {
    level: Level,
    /// Granted here, and unknown to the store.
    owed: u64,
}

impl FixedShare {
    /// Creates a share of each limit: with four processes, `0.25`.
    ///
    /// # Errors
    /// `Invalid` when it is not above 0 and at most 1.
    pub fn new(share: f64) -> Result<Self> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(Error::Invalid(format!("A share of a limit is above 0 and at most 1, not {share}.")));
        }
        let (start, ledger) = (Instant::now(), Mutex::default());
        Ok(Self(Arc::new(ShareState { share, start, ledger })))
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.0.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves in the store; while that is out of reach, from the share. What was granted from it
    /// before is paid first.
    pub(crate) async fn reserve(
        &self,
        store: &dyn SharedState,
        wanted: Vec<ReservationRequest>,
    ) -> tidegate_store::Result<ReserveOutcome> {
        let reserved = match self.pay(store, &wanted).await {
            Ok(()) => store.reserve(wanted.clone()).await,
            Err(error) => Err(error),
        };
        match reserved {
            Ok(decided) => {
                self.close(&wanted);
                Ok(decided)
            }
            Err(error) if is_out_of_reach(error.kind()) => self.reserve_here(&wanted).ok_or(error),
            Err(error) => Err(error),
        }
    }

    /// Takes from the store what was granted here, so that it grants that much less.
    async fn pay(
        &self,
        store: &dyn SharedState,
        wanted: &[ReservationRequest],
    ) -> tidegate_store::Result<()> {
        for want in wanted {
            let owed = self.ledger().get(&want.name).map_or(0, |here| here.owed);
            if owed > 0 {
                store.settle_bucket(&want.name, Settlement { reserved: 0, actual: owed }).await?;
                if let Some(here) = self.ledger().get_mut(&want.name) {
                    here.owed = here.owed.saturating_sub(owed);
                }
            }
        }
        Ok(())
    }

    /// Ends the use of the share, as far as it is paid.
    fn close(&self, wanted: &[ReservationRequest]) {
        let mut ledger = self.ledger();
        for want in wanted {
            if ledger.get(&want.name).is_some_and(|here| here.owed == 0) {
                ledger.remove(&want.name);
            }
        }
    }

    /// Reserves from the share; `None` when it can never hold that much.
    fn reserve_here(&self, wanted: &[ReservationRequest]) -> Option<ReserveOutcome> {
        let now = Time::ZERO.after(self.0.start.elapsed());
        let mut ledger = self.ledger();
        let wanted: Vec<_> = wanted.iter().map(|want| self.scaled(want)).collect();
        let mut levels = Vec::with_capacity(wanted.len());
        for want in &wanted {
            // Nothing at first: the store may have granted all of it just now.
            let empty = Level {
                tokens: 0,
                carry: 0,
                at: now,
                capacity: want.capacity,
                refill_per_s: want.refill_per_s,
            };
            let here = ledger.entry(want.name.clone()).or_insert(LocalBucket { level: empty, owed: 0 });
            levels.push(Some(here.level));
        }
        let (levels, reserved) = bucket::reserve(&levels, &wanted, now);
        for (want, level) in wanted.iter().zip(levels) {
            if let Some(here) = ledger.get_mut(&want.name) {
                here.level = level;
                if matches!(reserved, ReserveOutcome::Granted { .. }) {
                    here.owed = here.owed.saturating_add(want.cost);
                }
            }
        }
        (!matches!(reserved, ReserveOutcome::Never { .. })).then_some(reserved)
    }

    fn scaled(&self, want: &ReservationRequest) -> ReservationRequest {
        let scaled = |figure: u64| ((figure as f64 * self.0.share) as u64).min(figure);
        let (capacity, refill_per_s) = (scaled(want.capacity), scaled(want.refill_per_s));
        ReservationRequest { capacity, refill_per_s, ..want.clone() }
    }
}

/// Whether an error means that the store did not answer.
pub(crate) const fn is_out_of_reach(kind: StoreErrorKind) -> bool {
    matches!(kind, StoreErrorKind::Unavailable | StoreErrorKind::Unsure)
}

impl fmt::Debug for FixedShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FixedShare({})", self.0.share)
    }
}
