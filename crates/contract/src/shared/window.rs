//! Hydration windows against `tidegate_core::shared::window`.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_core::shared::window::{self, HydrationWindow};

use super::{KEYS, STEPS, Trial};
use crate::harness::{Backend, ExpectValue};

/// HYD-10: a window opens, rises and closes, at any level and time.
pub async fn windows_answer_as_the_pure_functions(backend: &dyn Backend) {
    let mut trial = Trial::begin(backend, 73).await;
    let mut states: HashMap<&str, HydrationWindow> = HashMap::new();
    for step in 0..STEPS {
        trial = trial.pass_time(Duration::from_millis(600)).await;
        let now = trial.now();
        let key = *trial.rng.pick(&KEYS);
        let state = states.get(key).copied();
        let (store, rng) = (&trial.store, &mut trial.rng);
        let ttl = Duration::from_millis(rng.below(4_000));
        let level = *rng.pick(&[0, 1, 2, u8::MAX]);
        let (next, wanted) = window::open(state, level, now, ttl);
        let found = store.open_window(key, level, ttl).await.expect_value("open a window");
        assert_eq!(found, wanted, "step {step}: open of {key} at level {level}");
        states.insert(key, next);
    }
}
