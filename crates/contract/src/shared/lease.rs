//! Named leases against `tidegate_core::shared::lease`.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_core::shared::lease::{self, Lease, LeaseState};

use super::{KEYS, STEPS, Trial};
use crate::harness::{Backend, ExpectValue};

/// LIM-15: acquire, renew, release and status, in any order and at any time, also by holders that
/// lost the lease. The fence never restarts.
pub async fn leases_answer_as_the_pure_functions(backend: &dyn Backend) {
    let mut trial = Trial::begin(backend, 72).await;
    let mut states: HashMap<&str, LeaseState> = HashMap::new();
    for step in 0..STEPS {
        trial = trial.pass_time(Duration::from_millis(800)).await;
        let now = trial.now();
        let name = *trial.rng.pick(&KEYS);
        let state = states.entry(name).or_default();
        let (store, rng) = (&trial.store, &mut trial.rng);
        let ttl = Duration::from_millis(rng.within(0..4_000));
        let fence = if rng.percent(75) { state.fence } else { rng.below(state.fence + 3) };
        let holder = Lease { fence, until: state.until };
        let found = store.lease_status(name).await.expect_value("look");
        assert_eq!(found, lease::status(*state, now), "step {step}: look at {name}");
        *state = match rng.below(3) {
            0 => {
                let (next, wanted) = lease::acquire(*state, now, ttl);
                let found = store.acquire_lease(name, ttl).await.expect_value("acquire");
                assert_eq!(found, wanted, "step {step}: acquire of {name}");
                next
            }
            1 => {
                let (next, wanted) = lease::renew(*state, fence, now, ttl);
                let found = store.renew_lease(name, holder, ttl).await.expect_value("renew");
                assert_eq!(found, wanted, "step {step}: renew of {name}");
                next
            }
            _ => {
                let (next, wanted) = lease::release(*state, fence, now);
                let found = store.release_lease(name, holder).await.expect_value("release");
                assert_eq!(found, wanted, "step {step}: release of {name}");
                next
            }
        };
    }
}
