//! Tests of idempotency records, on the pure functions.

use super::*;

const FIRST: HolderToken = HolderToken([1; 16]);
const SECOND: HolderToken = HolderToken([2; 16]);
const CLAIM: RecordClaim = RecordClaim {
    fingerprint: [7; 32],
    token: FIRST,
    lease: Duration::from_secs(30),
    ttl: Duration::from_secs(3_600),
    on_lapse: OnLapse::TakeOver,
};
const REPEAT: RecordClaim = RecordClaim { token: SECOND, ..CLAIM };

fn at(s: u64) -> Time {
    Time::from_millis(s * 1_000)
}

/// IDM-7: after the lease the next request takes over, and the old owner's late answer changes
/// nothing.
#[test]
fn a_dead_owner_is_taken_over_and_its_late_answer_changes_nothing() {
    let (state, _) = claim::<&str>(None, CLAIM, at(0));
    let (state, busy) = claim(state, REPEAT, at(29));
    assert_eq!(busy, RecordClaimOutcome::Processing { until: at(30) });
    let (state, second) = claim(state, REPEAT, at(31));
    assert_eq!(second, RecordClaimOutcome::Granted { taken_over: true });
    let (state, done) = complete(state, FIRST, "late");
    assert!(!done);
    let (state, done) = complete(state, SECOND, "right");
    assert!(done);
    assert_eq!(claim(state, CLAIM, at(40)).1, RecordClaimOutcome::Completed("right"));
}

/// IDM-7: nor does it when the new holder released the key and another caller has claimed it since.
#[test]
fn a_key_given_back_and_claimed_anew_is_not_its_first_owners() {
    let (state, _) = claim::<&str>(None, CLAIM, at(0));
    let (state, _) = claim(state, REPEAT, at(31));
    let (state, gone) = release(state, SECOND);
    assert!(gone && state.is_none());
    let third = RecordClaim { token: HolderToken([3; 16]), ..CLAIM };
    let (state, mine) = claim(state, third, at(32));
    assert_eq!(mine, RecordClaimOutcome::Granted { taken_over: false });
    let (state, done) = complete(state, FIRST, "very late");
    assert!(!done);
    let (state, gone) = release(state, FIRST);
    assert!(!gone && state.is_some());
}

/// IDM-5: the answer is kept for an hour after the claim, not extended by repeats; another body is
/// a conflict.
#[test]
fn at_the_end_of_its_time_the_key_is_new() {
    let (state, _) = claim::<u8>(None, CLAIM, at(0));
    let (state, _) = complete(state, FIRST, 1);
    let other = RecordClaim { fingerprint: [8; 32], ..REPEAT };
    assert_eq!(claim(state.clone(), other, at(10)).1, RecordClaimOutcome::Conflict);
    assert_eq!(claim(state.clone(), REPEAT, at(3_600)).1, RecordClaimOutcome::Completed(1));
    assert!(!is_sweepable(state.as_ref().unwrap(), at(3_600)));
    let after = at(3_600).after(Duration::from_micros(1));
    assert!(is_sweepable(state.as_ref().unwrap(), after));
    assert_eq!(claim(state, other, after).1, RecordClaimOutcome::Granted { taken_over: false });
}

/// A claim whose reply was lost is repeated and is still the same claim.
#[test]
fn the_same_claim_again_is_granted_again() {
    let (state, _) = claim::<u8>(None, CLAIM, at(0));
    let (state, again) = claim(state, CLAIM, at(20));
    assert_eq!(again, RecordClaimOutcome::Granted { taken_over: false });
    assert_eq!(claim(state, REPEAT, at(40)).1, RecordClaimOutcome::Processing { until: at(50) });
}

/// IDM-18: a holder that does not know the outcome of its request lets go; the key is held until it
/// expires.
#[test]
fn an_unknown_outcome_is_held_until_the_key_expires() {
    let holding = RecordClaim { on_lapse: OnLapse::Hold, ..CLAIM };
    let (state, _) = claim::<u8>(None, holding, at(0));
    let (state, done) = renew(state, FIRST, at(5), Duration::ZERO);
    assert!(done);
    assert_eq!(claim(state.clone(), REPEAT, at(6)).1, RecordClaimOutcome::Unknown);
    assert_eq!(claim(state.clone(), REPEAT, at(3_600)).1, RecordClaimOutcome::Unknown);
    assert_eq!(claim(state.clone(), REPEAT, at(3_601)).1, RecordClaimOutcome::Granted { taken_over: false });
    let (state, done) = complete(state, FIRST, 1);
    assert!(done, "the holder found out after all");
    assert_eq!(claim(state, REPEAT, at(7)).1, RecordClaimOutcome::Completed(1));
}

/// IDM-22: an operator frees a claim or an answer, each by its own target, and the holder has lost
/// the key.
#[test]
fn a_person_frees_what_they_named_and_nothing_else() {
    let (state, _) = claim::<u8>(None, CLAIM, at(0));
    assert_eq!(forget(state.clone(), ForgetTarget::Answer, at(1)).1, ForgetOutcome::Mismatch);
    let (gone, forgot) = forget(state.clone(), ForgetTarget::Claim, at(1));
    assert_eq!((gone.is_none(), forgot), (true, ForgetOutcome::Gone));
    assert!(!complete(gone, FIRST, 1).1);
    let (state, _) = complete(state, FIRST, 1);
    assert_eq!(forget(state.clone(), ForgetTarget::Claim, at(1)).1, ForgetOutcome::Mismatch);
    assert_eq!(forget(state.clone(), ForgetTarget::Answer, at(3_601)).1, ForgetOutcome::Absent);
    assert_eq!(forget(state, ForgetTarget::Answer, at(1)).1, ForgetOutcome::Gone);
    assert_eq!(forget::<u8>(None, ForgetTarget::Claim, at(1)).1, ForgetOutcome::Absent);
}

/// IDM-6: clean-up leaves records in progress alone; what a dead owner left is removed a day after
/// it expires.
#[test]
fn what_a_dead_owner_left_is_swept_in_the_end() {
    let (state, _) = claim::<u8>(None, CLAIM, at(0));
    let record = state.unwrap();
    let forgotten = 3_600 + ABANDONED_RETENTION.as_secs();
    assert!(!is_sweepable(&record, at(3_601)));
    assert!(!is_sweepable(&record, at(forgotten - 1)));
    assert!(is_sweepable(&record, at(forgotten)));
    let (renewed, _) = renew(Some(record), FIRST, at(forgotten - 1), Duration::from_secs(30));
    assert!(!is_sweepable(&renewed.unwrap(), at(forgotten)));
}
