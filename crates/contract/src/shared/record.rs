//! Idempotency records against `tidegate_core::shared::record`.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::shared::record::{self, Claim, Claimed, Held, Record};
use tidegate_store::Shared;

use super::{KEYS, STEPS, Trial};
use crate::dice::Dice;
use crate::harness::{Backend, Must};

type State = Option<Record<Bytes>>;

fn any_claim(dice: &mut Dice) -> Claim {
    Claim {
        fingerprint: if dice.percent(80) { [7; 32] } else { [0xff; 32] },
        lease: Duration::from_millis(dice.within(1..3_000)),
        ttl: Duration::from_millis(dice.within(1..20_000)),
    }
}

/// A holder that may have lost the key: the last fence, or one near it.
fn any_holder(dice: &mut Dice, state: &State) -> Held {
    let fence = state.as_ref().map_or(1, |record| record.fence);
    Held { fence: if dice.percent(75) { fence } else { dice.below(fence + 3) } }
}

/// IDM-5, IDM-7: claim, complete, release, renew and sweep, in any order and at any time.
pub async fn records_answer_as_the_pure_functions(backend: &dyn Backend) {
    let mut trial = Trial::begin(backend, 71).await;
    let mut states: HashMap<&str, State> = HashMap::new();
    for step in 0..STEPS {
        trial = trial.pass_time(Duration::from_millis(1_500)).await;
        let now = trial.now();
        let key = *trial.dice.pick(&KEYS);
        let state = states.remove(key).flatten();
        let holder = any_holder(&mut trial.dice, &state);
        let (store, dice) = (&trial.store, &mut trial.dice);
        let next = match dice.below(10) {
            0..4 => {
                let claim = any_claim(dice);
                let (next, wanted) = record::claim(state, claim, now);
                let found = store.claim_record(key, claim).await.must("claim");
                assert_eq!(found, wanted, "step {step}: claim of {key}");
                next
            }
            4..6 => {
                let len = dice.below(300) as usize;
                let answer = Bytes::from(dice.bytes(len));
                let (next, wanted) = record::complete(state, holder, answer.clone());
                let found = store.complete_record(key, holder, answer).await.must("complete");
                assert_eq!(found, wanted, "step {step}: complete of {key}");
                next
            }
            6 => {
                let (next, wanted) = record::release(state, holder);
                let found = store.release_record(key, holder).await.must("release");
                assert_eq!(found, wanted, "step {step}: release of {key}");
                next
            }
            7 | 8 => {
                let ttl = Duration::from_millis(dice.below(3_000));
                let (next, wanted) = record::renew(state, holder, now, ttl);
                let found = store.renew_record(key, holder, ttl).await.must("renew");
                assert_eq!(found, wanted, "step {step}: renew of {key}");
                next
            }
            _ => state,
        };
        states.insert(key, next);
        if step % 9 == 0 {
            let found = trial.store.sweep_records(100).await.must("sweep");
            assert_eq!(found, sweep(&mut states, now), "step {step}: records swept");
        }
    }
}

fn sweep(states: &mut HashMap<&str, State>, now: tidegate_core::Time) -> usize {
    let mut swept = 0;
    for state in states.values_mut() {
        if state.as_ref().is_some_and(|record| record::is_swept(record, now)) {
            *state = None;
            swept += 1;
        }
    }
    swept
}

/// IDM-6: a sweep takes completed records that expired, at most as many as it may, and none that is in work.
pub async fn sweeping_records_is_bounded(backend: &dyn Backend) {
    let clock = backend.clock();
    let store = backend.open().await.must("open the store");
    let claim = Claim { fingerprint: [1; 32], lease: Duration::from_secs(30), ttl: Duration::from_secs(60) };
    for index in 0..30 {
        let key = format!("key-{index}");
        let Claimed::Yours { holder, .. } = store.claim_record(&key, claim).await.must("claim") else {
            continue;
        };
        if index % 3 > 0 {
            assert!(store.complete_record(&key, holder, Bytes::new()).await.must("complete"));
        }
    }
    clock.advance(claim.ttl - Duration::from_micros(1));
    assert_eq!(store.sweep_records(100).await.must("sweep too early"), 0, "nothing has expired yet");
    clock.advance(Duration::from_micros(1));
    let mut swept = Vec::new();
    for _ in 0..4 {
        swept.push(store.sweep_records(8).await.must("sweep"));
    }
    assert_eq!(swept, [8, 8, 4, 0], "20 completed records go, eight at a time; 10 in work stay");
    for index in (0..30).step_by(3) {
        assert!(holds(&*store, &format!("key-{index}")).await, "record {index} was in work and was swept");
    }
}

/// Whether the first claim of this key still stands.
async fn holds<S: Shared + ?Sized>(store: &S, key: &str) -> bool {
    let first = Held { fence: 1 };
    store.renew_record(key, first, Duration::from_secs(30)).await.must("renew")
}
