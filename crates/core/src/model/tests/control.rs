//! Operator commands and their results.

use super::*;
use crate::model::{CancelOutcome, Cause, ControlRefusal, RerunRefusal, Resolution};
use crate::operation::{OnFailure, OnUnknown};
use crate::state::{EndState, State};

/// OPS-9: a canceled operation that is queued leaves its queue at once; a running one is notified.
#[test]
fn ops_9_cancel_reaches_queued_and_running() {
    let mut world = ModelHarness::new();
    for _ in 0..3 {
        world.accept(draft("g"));
    }
    let running = world.take(1).pop().unwrap();
    let queued = world.model.cancel(world.now, Seq(2), &mut world.facts);
    assert!(matches!(queued, CancelOutcome::Ended(ended) if ended.state == EndState::Canceled));
    assert_eq!(
        world.model.cancel(world.now, Seq(1), &mut world.facts),
        CancelOutcome::Requested(running.fence)
    );
    assert_eq!(world.model.cancel(world.now, Seq(2), &mut world.facts), CancelOutcome::NotActive);
    let settle = world.settle(&running, retry());
    let SettleOutcome::Settled { ended: Some(ended), .. } = settle else { panic!("not ended") };
    assert_eq!(ended.state, EndState::Canceled, "what was called off is not tried again");
    assert_eq!(world.take_seqs(9), [3]);
}

/// OPS-9: a paused group finishes what runs and takes nothing more until it is resumed.
#[test]
fn ops_9_pause_and_resume() {
    let mut world = ModelHarness::new();
    for _ in 0..2 {
        world.accept(draft("g"));
    }
    let running = world.take(1).pop().unwrap();
    let (group, by, reason) = (named("g"), named("anna"), named("template fix"));
    world.model.pause(world.now, &group, &by, &reason, &mut world.facts);
    world.done(&running);
    assert!(world.take(9).is_empty());
    world.model.pause(world.now, &group, &named("local"), &named(""), &mut world.facts);
    let why = world.model.why(Seq(2), world.now).unwrap();
    assert!(matches!(why.cause, Cause::Paused { by, .. } if &*by == "anna"), "a repeat without a reason");
    world.model.resume(world.now, &group, &mut world.facts).unwrap();
    assert_eq!(world.model.resume(world.now, &group, &mut world.facts), Err(ControlRefusal::NotStopped));
    assert_eq!(world.take_seqs(9), [2]);
}

/// OPS-9: a group that is paused again for another reason has been paused all the time; it says so
/// with nothing in its queue too.
#[test]
fn ops_9_a_new_reason_is_no_new_pause() {
    let mut world = ModelHarness::new();
    let (group, begun) = (named("g"), world.now);
    world.model.pause(begun, &group, &named("anna"), &named("template fix"), &mut world.facts);
    let later = begun.after(Duration::from_secs(60));
    world.model.pause(later, &group, &named("ben"), &named("rollback"), &mut world.facts);
    let Some(Cause::Paused { by, since, reason, .. }) = world.model.why_stopped("g").map(|why| why.cause)
    else {
        panic!("it is not paused");
    };
    assert_eq!((&*by, since, &*reason), ("ben", begun, "rollback"));
    assert_eq!(world.model.why_stopped("other"), None);
}

/// OPS-23: a canceled operation of unknown outcome keeps its fault.
#[test]
fn ops_23_a_canceled_unknown_keeps_its_fault() {
    let mut world = ModelHarness::new();
    world.accept(Draft { on_unknown: OnUnknown::Ask, ..draft("g") });
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, Verdict::Unknown(transient()));
    let canceled = world.model.cancel(world.now, Seq(1), &mut world.facts);
    assert!(matches!(canceled, CancelOutcome::Ended(ended) if ended.fault == Some(transient().in_doubt())));
}

/// OPS-23: an attempt that may have happened is not forgotten because a later one was refused, came
/// too late or was not sent; what an operator knows ends the doubt.
#[test]
fn ops_23_what_may_have_happened_is_not_forgotten() {
    let refused = || Fault::new(FaultClass::NotFound, "404");
    let ended_by = |first: Verdict, last: Verdict| {
        let mut world = ModelHarness::new();
        world.accept(Draft { on_unknown: OnUnknown::Repeat, max_attempts: 3, ..draft("g") });
        for verdict in [first, retry(), last] {
            world.wait_ms(60_000);
            let claim = world.take(1).pop().unwrap();
            if let SettleOutcome::Settled { ended: Some(ended), .. } = world.settle(&claim, verdict) {
                return ended.fault.unwrap();
            }
        }
        panic!("it has not ended")
    };
    let lost = || Verdict::Unknown(Fault::new(FaultClass::Transient, "the answer was lost"));
    let fault = ended_by(lost(), Verdict::Rejected(refused()));
    assert_eq!((fault.class, fault.may_have_happened), (FaultClass::NotFound, true));
    assert_eq!(fault.message, "404; before that: the answer was lost");
    assert!(ended_by(lost(), retry()).may_have_happened);
    assert!(ended_by(retry(), lost()).may_have_happened);
    assert_eq!(ended_by(retry(), Verdict::Rejected(refused())), refused());

    let mut world = ModelHarness::new();
    world.accept(Draft { on_unknown: OnUnknown::Ask, ..draft("g") });
    let claim = world.take(1).pop().unwrap();
    assert!(!claim.in_doubt);
    world.settle(&claim, lost());
    world.model.resolve(world.now, Seq(1), Resolution::Repeat, &mut world.facts).unwrap();
    let claim = world.take(1).pop().unwrap();
    assert!(claim.in_doubt, "the next attempt knows it");
    world.settle(&claim, lost());
    let ended =
        world.model.resolve(world.now, Seq(1), Resolution::Failed, &mut world.facts).unwrap().unwrap();
    let fault = ended.fault.unwrap();
    assert!(!fault.may_have_happened);
    let resolved = "an operator resolved its unknown outcome as failed; before that: the answer was lost";
    assert_eq!(fault.message, resolved);
}

/// OPS-23: a canceled operation keeps what is known of a call that may have happened, whether it
/// waits for its next attempt, is in flight again, or was throttled since.
#[test]
fn ops_23_a_cancel_keeps_what_is_known() {
    let lost = "the answer was lost";
    let message = |ended: super::super::EndedOperation| ended.fault.map(|fault| fault.message);
    let lost_once = || {
        let mut world = ModelHarness::new();
        world.accept(Draft { on_unknown: OnUnknown::Repeat, ..draft("g") });
        let claim = world.take(1).pop().unwrap();
        world.settle(&claim, Verdict::Unknown(Fault::new(FaultClass::Transient, lost)));
        world
    };
    let mut waiting = lost_once();
    let canceled = waiting.model.cancel(waiting.now, Seq(1), &mut waiting.facts);
    assert!(
        matches!(canceled, CancelOutcome::Ended(ended) if message(ended.clone()).as_deref() == Some(lost))
    );

    let throttled = Verdict::Throttled {
        after: Some(Duration::from_secs(1)),
        scope: None,
        fault: Fault::new(FaultClass::RateLimited, "429"),
    };
    let table = [
        (Verdict::Returned, lost.to_owned()),
        (Verdict::Canceled { may_have_happened: false }, lost.to_owned()),
        (retry(), format!("{}; before that: {lost}", transient().message)),
        (Verdict::Unknown(transient()), format!("{}; before that: {lost}", transient().message)),
        (throttled.clone(), format!("429; before that: {lost}")),
    ];
    for (verdict, known) in table {
        let mut running = lost_once();
        running.wait_ms(30_000);
        let claim = running.take(1).pop().unwrap();
        assert_eq!(
            running.model.cancel(running.now, Seq(1), &mut running.facts),
            CancelOutcome::Requested(claim.fence)
        );
        let SettleOutcome::Settled { ended: Some(ended), .. } = running.settle(&claim, verdict.clone())
        else {
            panic!("{verdict:?} did not end it")
        };
        assert_eq!((ended.state, message(ended)), (EndState::Canceled, Some(known)), "{verdict:?}");
    }

    let mut closed = lost_once();
    closed.wait_ms(30_000);
    let claim = closed.take(1).pop().unwrap();
    closed.settle(&claim, throttled);
    let CancelOutcome::Ended(ended) = closed.model.cancel(closed.now, Seq(1), &mut closed.facts) else {
        panic!("it was not under way")
    };
    assert_eq!(message(ended), Some(format!("429; before that: {lost}")));
}

/// A group can be paused before it has any operation.
#[test]
fn a_pause_can_come_first() {
    let mut world = ModelHarness::new();
    world.model.pause(world.now, &named("g"), &named("anna"), &named(""), &mut world.facts);
    world.accept(draft("g"));
    assert!(world.take(9).is_empty());
    world.model.resume(world.now, &named("g"), &mut world.facts).unwrap();
    assert_eq!(world.take_seqs(9), [1]);
    assert_eq!(world.model.resume(world.now, &named("h"), &mut world.facts), Err(ControlRefusal::NotActive));
}

/// OPS-23: an operator resolves the outcome; until then the group waits and cannot simply be
/// resumed.
#[test]
fn ops_23_a_person_resolves_what_is_unknown() {
    for resolution in [Resolution::Succeeded, Resolution::Failed, Resolution::Repeat] {
        let mut world = ModelHarness::new();
        world.accept(Draft { on_unknown: OnUnknown::Ask, ..draft("g") });
        world.accept(draft("g"));
        let claim = world.take(1).pop().unwrap();
        let early = world.model.resolve(world.now, Seq(1), resolution, &mut world.facts);
        assert_eq!(early, Err(ControlRefusal::NotUnknown));
        world.settle(&claim, Verdict::Unknown(transient()));
        assert!(world.take(9).is_empty());
        let resumed = world.model.resume(world.now, &named("g"), &mut world.facts);
        assert_eq!(resumed, Err(ControlRefusal::Unresolved(Seq(1))));
        let ended = world.model.resolve(world.now, Seq(1), resolution, &mut world.facts).unwrap();
        world.model.check().unwrap();
        let expected = match resolution {
            Resolution::Succeeded => (Some(EndState::Succeeded), Seq(2)),
            Resolution::Failed => (Some(EndState::Failed), Seq(2)),
            Resolution::Repeat => (None, Seq(1)),
        };
        assert_eq!((ended.map(|e| e.state), world.take(9)[0].seq), expected);
    }
}

/// OPS-9: a failed operation reruns at the end of its group, with a fresh retry budget and its own
/// id.
#[test]
fn ops_9_rerun_joins_the_end_of_the_line() {
    let mut world = ModelHarness::new();
    let at = world.now;
    world.accept(draft("g"));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, Verdict::Rejected(transient()));
    world.wait_ms(5_000);
    world.accept(draft("g"));
    let reopen = |world: &mut ModelHarness, ended| {
        world.model.reopen(world.now, (Seq(1), at), ended, draft("g"), &mut world.facts)
    };
    assert_eq!(reopen(&mut world, EndState::Succeeded), Err(RerunRefusal::Succeeded));
    assert_eq!(reopen(&mut world, EndState::Failed), Ok(()));
    assert_eq!(reopen(&mut world, EndState::Failed), Err(RerunRefusal::NotEnded));
    assert_eq!(world.model.active(Seq(1)).unwrap().at, at);
    let first = world.take(9).pop().unwrap();
    assert_eq!(first.seq, Seq(2));
    world.done(&first);
    assert_eq!(world.take(9)[0].attempt, 1);
}

/// OPS-9, OPS-23: what an earlier run may have done is not forgotten by a rerun, however that ends.
#[test]
fn ops_9_ops_23_a_rerun_keeps_the_doubt() {
    let lost = transient().in_doubt();
    let refused = || Verdict::Rejected(Fault::new(FaultClass::NotFound, "404"));
    for is_canceled in [false, true] {
        let mut world = ModelHarness::new();
        let at = world.now;
        world.accept(draft("g"));
        let claim = world.take(1).pop().unwrap();
        world.settle(&claim, Verdict::Rejected(lost.clone()));
        let again = Draft { doubt: Some(lost.clone()), ..draft("g") };
        world.model.reopen(world.now, (Seq(1), at), EndState::Failed, again, &mut world.facts).unwrap();
        let ended = if is_canceled {
            world.model.withdraw(world.now, Seq(1), &mut world.facts).unwrap()
        } else {
            let claim = world.take(1).pop().unwrap();
            assert!(claim.in_doubt);
            let SettleOutcome::Settled { ended: Some(ended), .. } = world.settle(&claim, refused()) else {
                panic!("it has not ended");
            };
            ended
        };
        let fault = ended.fault.unwrap();
        assert!(fault.may_have_happened && fault.message.contains("502 from the upstream"), "{fault}");
    }
}

/// OPS-9, OPS-3: a group that is held because an operation failed continues with that one after its
/// rerun, also when it is read back from its log or a snapshot.
#[test]
fn ops_9_ops_3_a_rerun_of_what_holds_the_group_is_the_first_again() {
    let mut world = ModelHarness::new();
    let at = world.now;
    let holding = || Draft { on_failure: OnFailure::Hold, ..draft("g") };
    for _ in 0..3 {
        world.accept(holding());
    }
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, Verdict::Rejected(transient()));
    assert!(world.take(9).is_empty(), "it is held");
    let reopened = world.model.reopen(world.now, (Seq(1), at), EndState::Failed, holding(), &mut world.facts);
    assert_eq!(reopened, Ok(()));
    assert!(world.take(9).is_empty(), "an operator resumes it");
    world.check_read_back();
    world.model.resume(world.now, &"g".into(), &mut world.facts).unwrap();
    for seq in 1..=3 {
        let next = world.take(9).pop().unwrap();
        assert_eq!((next.seq, next.attempt), (Seq(seq), 1));
        world.done(&next);
    }
    assert!(world.take(9).is_empty());
}

/// OPS-9: the only operation of a held group is its head and its tail.
#[test]
fn ops_9_a_rerun_of_what_holds_an_empty_group_is_followed_by_others() {
    let mut world = ModelHarness::new();
    let at = world.now;
    world.accept(Draft { on_failure: OnFailure::Hold, ..draft("g") });
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, Verdict::Rejected(transient()));
    world.model.reopen(world.now, (Seq(1), at), EndState::Failed, draft("g"), &mut world.facts).unwrap();
    world.accept(draft("g"));
    world.model.resume(world.now, &"g".into(), &mut world.facts).unwrap();
    for seq in 1..=2 {
        let next = world.take(9).pop().unwrap();
        assert_eq!(next.seq, Seq(seq));
        world.done(&next);
    }
}

/// LIM-28: an operation that no one waits for any more is withdrawn before it is sent, and not
/// while its call is in flight.
#[test]
fn lim_28_only_what_is_not_in_flight_is_withdrawn() {
    let mut world = ModelHarness::new();
    world.accept(draft("g"));
    world.accept(draft("g"));
    let claim = world.take(1).pop().unwrap();
    assert_eq!(world.model.withdraw(world.now, claim.seq, &mut world.facts), None);
    assert!(!world.model.claim_status(claim.seq, claim.fence).unwrap().cancel_requested);
    let ended = world.model.withdraw(world.now, Seq(2), &mut world.facts).unwrap();
    assert_eq!((ended.seq, ended.state), (Seq(2), EndState::Canceled));
    assert_eq!(world.model.withdraw(world.now, Seq(2), &mut world.facts), None);
    world.done(&claim);
}

/// LIM-28: when no one waits for an operation whose call is in flight, the call completes, and no
/// further attempt follows, whatever it ends with; a success stays one.
#[test]
fn lim_28_what_no_one_waits_for_is_not_attempted_again() {
    let table = [
        (retry(), EndState::Canceled),
        (Verdict::Unknown(transient()), EndState::Canceled),
        (throttled(Some(1_000)), EndState::Canceled),
        (Verdict::Returned, EndState::Canceled),
        (Verdict::Rejected(transient()), EndState::Failed),
        (Verdict::Done, EndState::Succeeded),
    ];
    for (verdict, expected) in table {
        let mut world = ModelHarness::new();
        world.accept(Draft { on_unknown: OnUnknown::Repeat, ..draft("g") });
        let claim = world.take(1).pop().unwrap();
        assert_eq!(world.model.abandon(world.now, claim.seq, &mut world.facts), None);
        assert!(world.model.claim_status(claim.seq, claim.fence).is_some(), "its call goes on");
        let SettleOutcome::Settled { ended: Some(ended), .. } = world.settle(&claim, verdict.clone()) else {
            panic!("{verdict:?} did not end it")
        };
        assert_eq!(ended.state, expected, "{verdict:?}");
        assert_eq!(world.model.abandon(world.now, claim.seq, &mut world.facts), None);
    }
    let mut world = ModelHarness::new();
    let seq = world.accept(draft("g"));
    let ended = world.model.abandon(world.now, seq, &mut world.facts).unwrap();
    assert_eq!(ended.state, EndState::Canceled, "what was not sent is not sent");
}

/// OPS-24: for every operation there is an answer why it does not run, which names one cause.
#[test]
fn ops_24_why_names_the_one_thing() {
    let mut world = ModelHarness::new();
    world.accept(draft("g"));
    world.accept(draft("g"));
    assert_eq!(world.model.why(Seq(1), world.now).unwrap().cause, Cause::Worker);
    let claim = world.take(1).pop().unwrap();
    let behind = world.model.why(Seq(2), world.now).unwrap();
    assert_eq!(behind.behind, Some((Seq(1), 1)));
    assert!(matches!(behind.cause, Cause::Running { .. }));
    world.settle(&claim, retry());
    let waiting = world.model.why(Seq(1), world.now).unwrap();
    assert_eq!((waiting.cause, waiting.fault), (Cause::Time, Some(transient())));
    assert_eq!(world.model.active(Seq(1)).unwrap().state, State::Waiting);
    assert_eq!(world.model.why(Seq(9), world.now), None);
}
