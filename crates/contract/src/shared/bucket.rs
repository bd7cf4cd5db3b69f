//! Stand-alone buckets against `tidegate_core::shared::bucket`.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_core::bounds::TOKENS_MAX;
use tidegate_core::operation::MICRO;
use tidegate_core::shared::bucket::{self, Level, ReservationRequest, Settlement};

use super::{KEYS, STEPS, Trial};
use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;

/// A family of buckets, and the size of their figures.
#[derive(Clone, Copy)]
struct Figures {
    family: &'static str,
    capacity: u64,
    refill_per_s: u64,
}

impl Figures {
    fn name(self, key: &str) -> String {
        format!("{}/{key}", self.family)
    }
}

/// Requests for one to three different buckets, rarely more than they can hold.
fn any_wants(rng: &mut TestRng, most: Figures) -> Vec<ReservationRequest> {
    let first = rng.index(KEYS.len());
    let count = 1 + rng.index(3);
    let want = |rng: &mut TestRng, place: usize| {
        let capacity = rng.within(1..most.capacity);
        ReservationRequest {
            name: most.name(KEYS[(first + place) % KEYS.len()]),
            cost: if rng.percent(96) { rng.below(capacity + 1) } else { capacity + 1 },
            capacity,
            refill_per_s: rng.below(most.refill_per_s),
        }
    };
    (0..count).map(|place| want(rng, place)).collect()
}

/// LIM-5, LIM-7, LIM-9, LIM-23: reserve from one or several, settle, observe and forget, with
/// figures that change along the way.
pub async fn buckets_answer_as_the_pure_functions(backend: &dyn Backend) {
    let figures = Figures { family: "usual", capacity: 1_000 * MICRO, refill_per_s: 500 * MICRO };
    compare(backend, 74, figures, Duration::from_secs(2)).await;
}

/// LIM-5: the same with figures up to the bounds, where plain floating point is not exact.
pub async fn buckets_bear_the_largest_figures(backend: &dyn Backend) {
    let figures = Figures { family: "large", capacity: TOKENS_MAX * MICRO, refill_per_s: TOKENS_MAX * MICRO };
    compare(backend, 75, figures, Duration::from_secs(3_600)).await;
    let slow = Figures { family: "slow", capacity: TOKENS_MAX * MICRO, refill_per_s: 2 };
    compare(backend, 76, slow, Duration::from_secs(100_000)).await;
}

async fn compare(backend: &dyn Backend, seed: u64, figures: Figures, time: Duration) {
    let mut trial = Trial::begin(backend, seed).await;
    let mut states: HashMap<String, Level> = HashMap::new();
    for step in 0..STEPS {
        trial = trial.pass_time(time).await;
        let now = trial.now();
        let (store, rng) = (&trial.store, &mut trial.rng);
        let name = figures.name(KEYS[rng.index(KEYS.len())]);
        match rng.below(31) {
            30 => {
                let wanted = states.remove(&name).is_some();
                let found = store.forget_bucket(&name).await.expect_value("forget");
                assert_eq!(found, wanted, "step {step}: forget of {name} at {now:?}");
            }
            0..18 => {
                let wants = any_wants(rng, figures);
                let before: Vec<_> = wants.iter().map(|want| states.get(&want.name).copied()).collect();
                let (after, wanted) = bucket::reserve(&before, &wants, now);
                let found = store.reserve(wants.clone()).await.expect_value("reserve");
                assert_eq!(found, wanted, "step {step}: reserve of {wants:?} at {now:?} from {before:?}");
                states.extend(wants.into_iter().map(|want| want.name).zip(after));
            }
            18..24 => {
                let reserved = rng.below(figures.capacity);
                let settlement = Settlement { reserved, actual: rng.below(reserved.saturating_mul(2) + 1) };
                let wanted = states.get(&name).map(|state| bucket::settle(*state, settlement, now));
                let found = store.settle_bucket(&name, settlement).await.expect_value("settle");
                assert_eq!(found, wanted, "step {step}: settle of {name} by {settlement:?} at {now:?}");
                states.extend(wanted.map(|level| (name, level)));
            }
            _ => {
                let wanted = states.get(&name).map(|state| bucket::observe(*state, now));
                let found = store.observe_bucket(&name).await.expect_value("observe");
                assert_eq!(found, wanted, "step {step}: observe of {name} at {now:?}");
            }
        }
    }
}
