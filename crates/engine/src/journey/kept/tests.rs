//! Journeys: what is recorded of an operation, and the time in each step.

use tidegate_core::{EndState, Fault, FaultClass, Fence, OnUnknown};

use super::*;

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn claim(seq: u64, accepted: u64, attempt: u16) -> Claim {
    Claim {
        seq: Seq(seq),
        fence: Fence(seq),
        attempt_fence: Fence(seq),
        accepted_at: at(accepted),
        until: Time::MAX,
        kind: "http".into(),
        group: "g".into(),
        attempt,
        reconcile_first: false,
        in_doubt: false,
        on_unknown: OnUnknown::Ask,
        deadline: None,
        poll: false,
        cancel_requested: false,
        alternative: None,
    }
}

fn report(seq: u64, verdict: Verdict) -> Report {
    Report::without_call(Seq(seq), Fence(seq), verdict)
}

fn ended(seq: u64, millis: u64, next: Option<(u64, u64)>) -> EndedOperation {
    let next = next.map(|(seq, queued)| (Seq(seq), at(queued)));
    EndedOperation {
        seq: Seq(seq),
        at: at(millis),
        state: EndState::Succeeded,
        attempt: 1,
        fault: None,
        next,
        identity: None,
    }
}

fn millis(times: JourneyTimes) -> [Option<u128>; 4] {
    [times.turn, times.limit, times.sent, times.answer].map(|time| Some(time?.as_millis()))
}

/// OPS-24: the time of each step of two operations of a group, one of which is tried twice.
#[test]
fn ops_24_the_steps_of_a_journey_add_up() {
    let mut journeys = Journeys::new(at(0));
    journeys.claimed(&claim(1, 10, 1), at(15));
    journeys.sent(Seq(1), at(17));
    let fault = Fault::new(FaultClass::Transient, "502");
    journeys.settled(&report(1, Verdict::Retry { fault, after: None }), at(117));
    journeys.claimed(&claim(1, 10, 2), at(317));
    journeys.sent(Seq(1), at(318));
    assert_eq!(
        millis(journeys.get(Seq(1)).unwrap().times(at(400))),
        [Some(0), Some(205), Some(3), Some(182)]
    );
    journeys.settled(&report(1, Verdict::Done), at(418));
    journeys.ended(&ended(1, 418, Some((2, 20))), at(420));
    journeys.claimed(&claim(2, 20, 1), at(430));
    journeys.sent(Seq(2), at(430));
    assert_eq!(
        millis(journeys.get(Seq(1)).unwrap().times(at(999))),
        [Some(0), Some(205), Some(3), Some(200)]
    );
    let second = journeys.get(Seq(2)).unwrap();
    assert_eq!(millis(second.times(at(440))), [Some(398), Some(12), Some(0), Some(10)]);
    let steps: Duration =
        [Some(398), Some(12), Some(0), Some(10)].map(|ms| Duration::from_millis(ms.unwrap())).iter().sum();
    assert_eq!(at(440).since(at(20)), steps, "nothing is counted twice");
}

fn decision(times: JourneyTimes) -> [Option<u128>; 2] {
    [times.limit, times.decision].map(|time| Some(time?.as_millis()))
}

/// OPS-23, OPS-24: the time until an operator decides about an unknown outcome is a step of its
/// own, and no part of the wait for limits, whatever is decided.
#[test]
fn ops_23_ops_24_the_wait_for_a_decision_is_a_step() {
    let mut journeys = Journeys::new(at(0));
    let unknown = || Verdict::Unknown(Fault::new(FaultClass::Transient, "reset"));
    journeys.claimed(&claim(1, 10, 1), at(15));
    journeys.sent(Seq(1), at(15));
    journeys.settled(&report(1, unknown()), at(20));
    journeys.undecided(Seq(1), at(20));
    let now = |journeys: &Journeys, millis| decision(journeys.get(Seq(1)).unwrap().times(at(millis)));
    assert_eq!(now(&journeys, 12_020), [Some(5), Some(12_000)], "it still waits");
    journeys.repeated(Seq(1), at(13_020));
    assert_eq!(now(&journeys, 13_027), [Some(12), Some(13_000)], "then for its limits");
    // A worker that is lost with its call reports nothing.
    journeys.claimed(&claim(1, 10, 2), at(13_030));
    journeys.undecided(Seq(1), at(14_000));
    journeys.ended(&ended(1, 15_000, None), at(15_001));
    assert_eq!(now(&journeys, 99_999), [Some(15), Some(14_000)], "until it was resolved");
    let times = journeys.get(Seq(1)).unwrap().times(at(99_999));
    assert_eq!(millis(times), [Some(0), Some(15), Some(0), Some(975)]);
}

/// OPS-24, OPS-25: the head of a held group waits for an operator, from its turn until the
/// group is resumed.
#[test]
fn ops_24_ops_25_the_head_of_a_held_group_waits_for_a_decision() {
    let mut journeys = Journeys::new(at(0));
    journeys.claimed(&claim(1, 10, 1), at(10));
    journeys.ended(&ended(1, 100, Some((2, 20))), at(100));
    assert_eq!(decision(journeys.of_held(Seq(2), at(20), at(100), at(600))), [Some(0), Some(500)]);
    journeys.released(&ReleasedHead { seq: Seq(2), accepted_at: at(20), held_since: at(100) }, at(700));
    journeys.claimed(&claim(2, 20, 1), at(730));
    assert_eq!(decision(journeys.get(Seq(2)).unwrap().times(at(800))), [Some(30), Some(600)]);
    // One that came into the empty group waits from then on.
    assert_eq!(decision(journeys.of_held(Seq(3), at(300), at(100), at(900))), [Some(0), Some(600)]);
    journeys.released(&ReleasedHead { seq: Seq(3), accepted_at: at(300), held_since: at(100) }, at(900));
    assert_eq!(decision(journeys.get(Seq(3)).unwrap().times(at(950))), [Some(50), Some(600)]);
}

/// What happened before this owner, or was forgotten, is not guessed.
#[test]
fn what_is_not_known_is_not_guessed() {
    let mut journeys = Journeys::new(at(100));
    journeys.claimed(&claim(1, 50, 1), at(150));
    assert_eq!(millis(journeys.get(Seq(1)).unwrap().times(at(160))), [None, None, None, Some(10)]);
    journeys.claimed(&claim(2, 120, 3), at(150));
    assert_eq!(millis(journeys.get(Seq(2)).unwrap().times(at(160))), [None; 4]);
    assert_eq!(millis(journeys.of_waiting(at(50), false, at(160))), [None; 4]);
    assert_eq!(millis(journeys.of_waiting(at(50), true, at(160))), [Some(110), None, None, None]);
    assert_eq!(millis(journeys.of_waiting(at(110), false, at(160))), [Some(0), Some(50), None, None]);
    // Turns are forgotten before they are used.
    for seq in 0..=JOURNEYS_MAX as u64 {
        journeys.ended(&ended(seq, 200, Some((seq + 10_000, 150))), at(200));
    }
    assert_eq!((journeys.kept.len(), journeys.places.len()), (JOURNEYS_MAX, JOURNEYS_MAX));
    journeys.claimed(&claim(10_000, 150, 1), at(300));
    assert_eq!(millis(journeys.get(Seq(10_000)).unwrap().times(at(300)))[0], None);
}

/// OPS-24: what stays unknown, what failed and what was tried again is remembered while thousands
/// of others come and succeed. Of too many that go on, the oldest is forgotten, and then nothing of
/// it is guessed.
#[test]
fn ops_24_what_goes_on_or_failed_is_remembered_longest() {
    let mut journeys = Journeys::new(at(0));
    journeys.claimed(&claim(1, 10, 1), at(15));
    journeys.settled(&report(1, Verdict::Unknown(Fault::new(FaultClass::Transient, "reset"))), at(20));
    journeys.undecided(Seq(1), at(20));
    journeys.claimed(&claim(2, 10, 1), at(30));
    journeys.settled(&report(2, Verdict::Rejected(Fault::new(FaultClass::NotFound, "404"))), at(50));
    journeys.ended(&ended(2, 50, None), at(50));
    journeys.claimed(&claim(3, 10, 1), at(30));
    journeys.settled(
        &report(3, Verdict::Retry { fault: Fault::new(FaultClass::Transient, "502"), after: None }),
        at(40),
    );
    journeys.claimed(&claim(3, 10, 2), at(50));
    journeys.settled(&report(3, Verdict::Done), at(70));
    journeys.ended(&ended(3, 70, None), at(70));
    for seq in 4..5 * JOURNEYS_MAX as u64 {
        journeys.claimed(&claim(seq, 100, 1), at(100));
        journeys.ended(&ended(seq, 110, None), at(110));
    }
    assert_eq!(decision(journeys.get(Seq(1)).unwrap().times(at(900))), [Some(5), Some(880)]);
    assert_eq!(millis(journeys.get(Seq(2)).unwrap().times(at(900))), [Some(0), Some(20), None, Some(20)]);
    assert_eq!(millis(journeys.get(Seq(3)).unwrap().times(at(900))), [Some(0), Some(30), None, Some(30)]);
    let many = 10_000..10_000 + 2 * JOURNEYS_MAX as u64;
    many.for_each(|seq| journeys.claimed(&claim(seq, 200, 1), at(200)));
    assert!(journeys.get(Seq(1)).is_none());
    assert_eq!(millis(journeys.of_waiting(at(10), false, at(900))), [None; 4]);
}

/// The job of an attempt is awaited as part of it, whatever its polls say.
#[test]
fn a_job_is_part_of_its_attempt() {
    let mut journeys = Journeys::new(at(0));
    journeys.claimed(&claim(1, 0, 1), at(0));
    journeys.sent(Seq(1), at(0));
    journeys
        .settled(&report(1, Verdict::Accepted { poll_after: None, timeout: Duration::from_secs(9) }), at(20));
    journeys.claimed(&Claim { poll: true, ..claim(1, 0, 1) }, at(500));
    journeys.settled(&report(1, Verdict::Returned), at(510));
    journeys.ended(&ended(1, 1_000, None), at(1_000));
    let journey = journeys.get(Seq(1)).unwrap();
    assert_eq!((journey.attempts.len(), journey.attempts[0].accepted_at), (1, Some(at(20))));
    assert_eq!(millis(journey.times(at(2_000))), [Some(0), Some(0), Some(0), Some(1_000)]);
    let earlier_attempts = journey.attempts.clone();
    journeys.reopened(Seq(1), at(5_000));
    let anew = Journey { earlier_attempts, ..Journey::new(at(5_000)) };
    assert_eq!(journeys.get(Seq(1)), Some(&anew), "a rerun starts anew, and keeps what was before it");
}
