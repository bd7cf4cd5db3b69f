//! Retry budgets, unknown outcomes, lost workers, what follows a failure.

use super::*;
use crate::fact::SettleEffect;
use crate::operation::{OnFailure, OnUnknown};
use crate::state::{EndState, State};

fn ended(settle: &SettleOutcome) -> Option<(EndState, u16, Option<FaultClass>)> {
    match settle {
        SettleOutcome::Settled { ended: Some(e), .. } => {
            Some((e.state, e.attempt, e.fault.as_ref().map(|f| f.class)))
        }
        _ => None,
    }
}

/// OPS-12: when its attempts are spent an operation fails, with the last cause.
#[test]
fn ops_12_the_last_attempt_fails_with_its_cause() {
    let mut world = ModelHarness::new();
    world.accept(Draft { max_attempts: 3, ..draft("g") });
    for attempt in 1..=3 {
        world.wait_ms(60_000);
        let claim = world.take(1).pop().unwrap();
        assert_eq!(claim.attempt, attempt);
        let settle = world.settle(&claim, retry());
        assert_eq!(ended(&settle).is_some(), attempt == 3);
        if attempt == 3 {
            assert_eq!(ended(&settle), Some((EndState::Failed, 3, Some(FaultClass::Transient))));
        }
    }
}

/// OPS-10 / LIM-11: being throttled spends no attempt, but the deadline still counts.
#[test]
fn ops_10_a_429_spends_no_attempt_but_the_deadline_counts() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(9, 9));
    let deadline = world.now.after(Duration::from_secs(3));
    world.accept(Draft { max_attempts: 1, deadline: Some(deadline), ..charged("g", &[("api", 1)]) });
    let claim = world.take(1).pop().unwrap();
    assert!(matches!(
        world.settle(&claim, throttled(Some(2_000))),
        SettleOutcome::Settled { ended: None, .. }
    ));
    world.wait_ms(2_300);
    let again = world.take(1).pop().unwrap();
    assert_eq!(again.attempt, 1);
    let settle = world.settle(&again, throttled(Some(2_000)));
    assert_eq!(ended(&settle), Some((EndState::Failed, 0, Some(FaultClass::RateLimited))));
    let frozen = world.model.limit("api", world.now).unwrap().frozen_until;
    assert!(frozen.is_some(), "LIM-12: the others that share the limit still wait");
}

/// OPS-12: a deadline that passes while it waits ends it then, at any position in the queue, with
/// the last cause.
#[test]
fn ops_12_a_deadline_ends_what_waits() {
    let mut world = ModelHarness::new();
    let deadline = world.now.after(Duration::from_secs(1));
    world.accept(draft("g"));
    let behind = world.accept(Draft { deadline: Some(deadline), ..draft("g") });
    let claim = world.take(1).pop().unwrap();
    world.wait_ms(1_000);
    let take = world.model.take(world.now, 1, LEASE, 0, &mut world.facts);
    assert_eq!(take.ended.iter().map(|e| (e.seq, e.state)).collect::<Vec<_>>(), [(behind, EndState::Failed)]);
    world.done(&claim);
}

/// OPS-8: after its lease expired another worker gets it, and the late report of the first changes
/// nothing.
#[test]
fn ops_8_a_late_answer_is_fenced_off() {
    let mut world = ModelHarness::new();
    world.accept(Draft { on_unknown: OnUnknown::Repeat, ..draft("g") });
    let dead = world.take(1).pop().unwrap();
    world.wait_ms(29_999);
    assert!(world.take(1).is_empty());
    world.wait_ms(1);
    assert!(world.take(1).is_empty(), "it is repeated after a pause, not at once");
    world.wait_ms(1_000);
    let second = world.take(1).pop().unwrap();
    assert!(second.fence > dead.fence);
    let facts = world.facts.len();
    assert_eq!(world.settle(&dead, Verdict::Done), SettleOutcome::Stale);
    assert_eq!(world.facts.len(), facts);
    world.done(&second);
    assert_eq!(
        world.settle(&second, Verdict::Done),
        SettleOutcome::Stale,
        "the same settlement twice counts once"
    );
}

/// OPS-8: a worker that still works keeps its claim.
#[test]
fn ops_8_a_renewed_claim_holds() {
    let mut world = ModelHarness::new();
    world.accept(draft("g"));
    let claim = world.take(1).pop().unwrap();
    world.wait_ms(20_000);
    let until = world.now.after(LEASE);
    assert!(world.model.renew(claim.seq, claim.fence, until, &mut world.facts));
    world.wait_ms(20_000);
    assert!(world.take(1).is_empty());
    world.done(&claim);
    assert!(!world.model.renew(claim.seq, claim.fence, until, &mut world.facts));
}

/// OPS-23: what follows an unknown outcome is each operation's own rule; nothing is repeated
/// blindly.
#[test]
fn ops_23_unknown_is_repeated_looked_up_or_asked() {
    let mut world = ModelHarness::new();
    for (group, on_unknown) in
        [("repeat", OnUnknown::Repeat), ("look", OnUnknown::Reconcile), ("ask", OnUnknown::Ask)]
    {
        world.accept(Draft { on_unknown, ..draft(group) });
        world.accept(draft(group));
    }
    let claims = world.take(9);
    let after: Vec<_> = claims
        .iter()
        .map(|claim| match world.settle(claim, Verdict::Unknown(transient())) {
            SettleOutcome::Settled { effect: after, .. } => after,
            SettleOutcome::Stale => panic!("stale"),
        })
        .collect();
    assert!(matches!(after[0], SettleEffect::Retry { reconcile_first: false, .. }));
    assert!(matches!(after[1], SettleEffect::Retry { reconcile_first: true, .. }));
    assert_eq!(after[2], SettleEffect::Held);
    assert_eq!(world.model.active(claims[2].seq).unwrap().state, State::Unknown);
    world.wait_ms(60_000);
    let again = world.take(9);
    assert_eq!(
        again.iter().map(|c| (c.seq, c.reconcile_first)).collect::<Vec<_>>(),
        [(Seq(1), false), (Seq(3), true)]
    );
    assert_eq!(world.model.counts().unknown, 1);
}

/// OPS-25: after a permanent failure the group continues, or waits for an operator.
#[test]
fn ops_25_skip_goes_on_and_hold_waits() {
    let mut world = ModelHarness::new();
    for (group, on_failure) in [("skip", OnFailure::Skip), ("hold", OnFailure::Hold)] {
        world.accept(Draft { on_failure, ..draft(group) });
        world.accept(draft(group));
    }
    for claim in world.take(9) {
        world.settle(&claim, Verdict::Rejected(Fault::new(FaultClass::Forbidden, "403")));
    }
    assert_eq!(world.take_seqs(9), [2]);
    let stopped: Vec<_> = world.model.stopped_groups(None).map(|group| group.name.to_string()).collect();
    assert_eq!(stopped, ["hold"]);
    world.model.resume(world.now, &named("hold"), &mut world.facts).unwrap();
    assert_eq!(world.take_seqs(9), [4]);
}

/// OPS-10: each class and what follows it.
#[test]
fn ops_10_what_may_pass_is_repeated_and_the_rest_fails_at_once() {
    for class in FaultClass::ALL {
        let mut world = ModelHarness::new();
        world.accept(draft("g"));
        let claim = world.take(1).pop().unwrap();
        let fault = Fault::new(class, "said so");
        let verdict = match class {
            FaultClass::RateLimited => throttled(None),
            FaultClass::Transient => Verdict::Retry { after: None, fault },
            _ => Verdict::Rejected(fault),
        };
        let settle = world.settle(&claim, verdict);
        assert_eq!(ended(&settle).is_none(), class.is_repeatable(), "{class}");
    }
}

/// A worker returns an operation before sending: no attempt is spent, and its turn and its tokens
/// are restored.
#[test]
fn given_back_is_as_if_it_had_not_been_taken() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(1, 1));
    world.accept(charged("g", &[("api", 1)]));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, Verdict::Returned);
    let again = world.take(1).pop().unwrap();
    assert_eq!((again.seq, again.attempt), (claim.seq, 1));
}
