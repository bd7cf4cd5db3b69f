//! A store in memory whose clock moves with tokio's, and that can be put out of reach.

use std::sync::Arc;
use std::time::Duration;

use tidegate_contract::{Faulty, Injury, Plan, Verb};
use tidegate_core::Time;
use tidegate_limits::{Bucket, Taken, Wait};
use tidegate_store::Clock;
use tidegate_store_embedded::Memory;
use tokio::time::Instant;

/// The store's clock, which moves with tokio's.
struct Moving(Instant);

impl Clock for Moving {
    fn now(&self) -> Time {
        Time::from_millis(1_000_000_000).after(self.0.elapsed())
    }
}

pub(crate) fn store() -> Arc<Faulty> {
    let memory = Memory::new(Arc::new(Moving(Instant::now())));
    Arc::new(Faulty::new(Arc::new(memory), Plan::none()))
}

pub(crate) fn bucket(store: &Arc<Faulty>, name: &str, capacity: f64, refill_per_s: f64) -> Bucket {
    Bucket::new(Arc::clone(store) as _, name, capacity, refill_per_s).unwrap()
}

pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// What was told to one who must wait.
#[track_caller]
pub(crate) fn told<T: std::fmt::Debug>(taken: Taken<T>) -> Wait {
    match taken {
        Taken::Wait(wait) => wait,
        Taken::Granted(granted) => panic!("it was granted: {granted:?}"),
    }
}

/// Each of the next questions for tokens meets with this.
pub(crate) fn every_reserve(injury: Injury) -> Plan {
    (1..=2_000).fold(Plan::none(), |plan, nth| plan.at(Verb::Reserve, nth, injury))
}
