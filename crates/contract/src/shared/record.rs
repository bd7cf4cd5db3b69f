//! Idempotency records against `tidegate_core::shared::record`.

use std::collections::HashMap;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::Time;
use tidegate_core::shared::record::{self, ForgetTarget, HolderToken, OnLapse, Record, RecordClaim};
use tidegate_store::SharedState;

use super::{KEYS, STEPS, Trial};
use crate::harness::{Backend, ExpectValue};
use crate::rng::TestRng;

type State = Option<Record<Bytes>>;

/// A token from a small set: a claim is often repeated by its own caller.
fn any_token(rng: &mut TestRng) -> HolderToken {
    HolderToken([rng.below(5) as u8 * 0x33; 16])
}

fn any_claim(rng: &mut TestRng) -> RecordClaim {
    RecordClaim {
        fingerprint: if rng.percent(80) { [7; 32] } else { [0xff; 32] },
        token: any_token(rng),
        lease: Duration::from_millis(rng.within(1..3_000)),
        ttl: Duration::from_millis(rng.within(1..20_000)),
        on_lapse: if rng.percent(70) { OnLapse::TakeOver } else { OnLapse::Hold },
    }
}

/// A holder that may have lost the key: the last one, or another.
fn any_holder(rng: &mut TestRng, state: &State) -> HolderToken {
    match state {
        Some(record) if rng.percent(75) => record.token,
        _ => any_token(rng),
    }
}

/// IDM-5, IDM-7, IDM-18, IDM-22: claim, complete, release, renew, get, forget, list and sweep, in
/// any order and at any time.
pub async fn records_answer_as_the_pure_functions(backend: &dyn Backend) {
    let mut trial = Trial::begin(backend, 71).await;
    let mut states: HashMap<&str, State> = HashMap::new();
    for step in 0..STEPS {
        trial = trial.pass_time(Duration::from_millis(1_500)).await;
        let now = trial.now();
        let key = *trial.rng.pick(&KEYS);
        let state = states.remove(key).flatten();
        let next = one_step(&*trial.store, &mut trial.rng, (step, key), state, now).await;
        states.insert(key, next);
        if step % 7 == 0 {
            let mut wanted: Vec<_> =
                states.iter().filter_map(|(key, state)| listed(key, state, now)).collect();
            wanted.sort_by(|one, other| one.0.cmp(&other.0));
            assert_eq!(list_all(&*trial.store).await, wanted, "step {step}: records listed");
        }
        if step % 9 == 0 {
            let found = trial.store.sweep_records(100).await.expect_value("sweep");
            assert_eq!(found, sweep(&mut states, now), "step {step}: records swept");
        }
    }
}

async fn one_step<S: SharedState + ?Sized>(
    store: &S,
    rng: &mut TestRng,
    (step, key): (usize, &str),
    state: State,
    now: Time,
) -> State {
    let holder = any_holder(rng, &state);
    match rng.below(13) {
        0..4 => {
            let claim = any_claim(rng);
            let (next, wanted) = record::claim(state, claim, now);
            let found = store.claim_record(key, claim).await.expect_value("claim");
            assert_eq!(found, wanted, "step {step}: claim of {key}");
            next
        }
        4..6 => {
            let len = rng.below(300) as usize;
            let answer = Bytes::from(rng.bytes(len));
            let (next, wanted) = record::complete(state, holder, answer.clone());
            let found = store.complete_record(key, holder, answer).await.expect_value("complete");
            assert_eq!(found, wanted, "step {step}: complete of {key}");
            next
        }
        6 => {
            let (next, wanted) = record::release(state, holder);
            let found = store.release_record(key, holder).await.expect_value("release");
            assert_eq!(found, wanted, "step {step}: release of {key}");
            next
        }
        7 | 8 => {
            let ttl = Duration::from_millis(rng.below(3_000));
            let (next, wanted) = record::renew(state, holder, now, ttl);
            let found = store.renew_record(key, holder, ttl).await.expect_value("renew");
            assert_eq!(found, wanted, "step {step}: renew of {key}");
            next
        }
        9 | 10 => {
            let wanted = state.clone().filter(|record| record::is_live(record, now));
            let found = store.get_record(key).await.expect_value("look");
            assert_eq!(found, wanted, "step {step}: look at {key}");
            state
        }
        11 => {
            let what = if rng.percent(50) { ForgetTarget::Claim } else { ForgetTarget::Answer };
            let (next, wanted) = record::forget(state, what, now);
            let found = store.forget_record(key, what).await.expect_value("forget");
            assert_eq!(found, wanted, "step {step}: forget {what:?} of {key}");
            next
        }
        _ => state,
    }
}

/// The expected list entry of a record; `None` when it is no longer in force.
fn listed(key: &str, state: &State, now: Time) -> Option<(String, Record<usize>)> {
    let record = state.as_ref().filter(|record| record::is_live(record, now))?;
    Some((key.to_owned(), record.without_answer()))
}

/// Lists all records, page by page, sorted by key.
async fn list_all<S: SharedState + ?Sized>(store: &S) -> Vec<(String, Record<usize>)> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_records(after, 3).await.expect_value("list");
        assert!(page.records.len() <= 3, "a page of at most three has {}", page.records.len());
        found.extend(page.records);
        after = page.next;
        if after.is_none() {
            found.sort_by(|one, other| one.0.cmp(&other.0));
            return found;
        }
    }
}

fn sweep(states: &mut HashMap<&str, State>, now: Time) -> usize {
    let mut swept = 0;
    for state in states.values_mut() {
        if state.as_ref().is_some_and(|record| record::is_sweepable(record, now)) {
            *state = None;
            swept += 1;
        }
    }
    swept
}

/// The claim used by the bounded sweep.
const IN_WORK: RecordClaim = RecordClaim {
    fingerprint: [1; 32],
    token: HolderToken([1; 16]),
    lease: Duration::from_secs(30),
    ttl: Duration::from_secs(60),
    on_lapse: OnLapse::TakeOver,
};

/// IDM-6: a sweep removes completed records that expired, at most the allowed number, and none in
/// progress; what dead owners left is removed a day later.
pub async fn sweeping_records_is_bounded(backend: &dyn Backend) {
    let clock = backend.clock();
    let store = backend.open().await.expect_value("open the store");
    for index in 0..30 {
        let key = format!("key-{index}");
        store.claim_record(&key, IN_WORK).await.expect_value("claim");
        if index % 3 > 0 {
            assert!(store.complete_record(&key, IN_WORK.token, Bytes::new()).await.expect_value("complete"));
        }
    }
    clock.advance(IN_WORK.ttl);
    assert_eq!(
        store.sweep_records(100).await.expect_value("sweep too early"),
        0,
        "the last moment is part of their time"
    );
    clock.advance(Duration::from_micros(1));
    let mut swept = Vec::new();
    for _ in 0..4 {
        swept.push(store.sweep_records(8).await.expect_value("sweep"));
    }
    assert_eq!(swept, [8, 8, 4, 0], "20 completed records go, eight at a time; 10 in work stay");
    for index in (0..30).step_by(3) {
        let key = format!("key-{index}");
        let renewed = store.renew_record(&key, IN_WORK.token, IN_WORK.lease).await.expect_value("renew");
        assert!(renewed, "record {index} was in work and was swept");
    }
    clock.advance(record::ABANDONED_RETENTION - Duration::from_micros(2));
    assert_eq!(
        store.sweep_records(100).await.expect_value("sweep"),
        0,
        "nobody is given up before a day is over"
    );
    assert!(store.renew_record("key-0", IN_WORK.token, IN_WORK.lease).await.expect_value("renew"));
    clock.advance(Duration::from_micros(1));
    assert_eq!(
        store.sweep_records(100).await.expect_value("sweep"),
        9,
        "what dead owners left goes, what is renewed stays"
    );
    assert!(store.renew_record("key-0", IN_WORK.token, IN_WORK.lease).await.expect_value("renew"));
}
