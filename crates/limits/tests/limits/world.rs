//! A store in memory whose clock moves with tokio's, and that can be made unavailable.

use std::sync::Arc;
use std::time::Duration;

use tidegate_contract::{FaultPlan, FaultyStore, InjectedFault, StoreMethod};
use tidegate_core::Time;
use tidegate_limits::{SharedBucket, TokenTakeOutcome, Wait};
use tidegate_store::Clock;
use tidegate_store_embedded::MemoryStore;
use tokio::time::Instant;

/// The store's clock, which moves with tokio's.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Time {
        Time::from_millis(1_000_000_000).after(self.0.elapsed())
    }
}

pub(crate) fn store() -> Arc<FaultyStore> {
    let memory = MemoryStore::new(Arc::new(TokioClock(Instant::now())));
    Arc::new(FaultyStore::new(Arc::new(memory), FaultPlan::none()))
}

pub(crate) fn bucket(store: &Arc<FaultyStore>, name: &str, capacity: f64, refill_per_s: f64) -> SharedBucket {
    SharedBucket::new(Arc::clone(store) as _, name, capacity, refill_per_s).unwrap()
}

pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Expects that the take has to wait.
#[track_caller]
pub(crate) fn expect_wait<T: std::fmt::Debug>(taken: TokenTakeOutcome<T>) -> Wait {
    match taken {
        TokenTakeOutcome::Wait(wait) => wait,
        TokenTakeOutcome::Granted(granted) => panic!("it was granted: {granted:?}"),
    }
}

/// Injects this fault into each of the next reservations.
pub(crate) fn every_reserve(injury: InjectedFault) -> FaultPlan {
    (1..=2_000).fold(FaultPlan::none(), |plan, nth| plan.at(StoreMethod::Reserve, nth, injury))
}
