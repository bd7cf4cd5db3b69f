//! Jobs that end elsewhere: the claim stays, the worker goes, and the first end wins.

use super::*;
use crate::bounds::AWAIT_MAX;
use crate::fact::SettleEffect;
use crate::model::{CancelOutcome, Cause, OverdueEffect};
use crate::operation::OnUnknown;
use crate::state::{EndState, State};

fn cap(at_once: u32) -> LimitShape {
    LimitShape::Cap { at_once }
}

fn end_of(settle: &SettleOutcome) -> Option<EndState> {
    match settle {
        SettleOutcome::Settled { ended, .. } => ended.as_ref().map(|ended| ended.state),
        SettleOutcome::Stale => None,
    }
}

fn effect_of(settle: SettleOutcome) -> SettleEffect {
    match settle {
        SettleOutcome::Settled { effect, .. } => effect,
        SettleOutcome::Stale => panic!("stale"),
    }
}

impl ModelHarness {
    /// Accepts and claims an operation of this group, whose job is then accepted.
    fn await_one(&mut self, draft: Draft, verdict: Verdict) -> Claim {
        self.accept(draft);
        let claim = self.take(1).pop().unwrap();
        assert!(matches!(effect_of(self.settle(&claim, verdict)), SettleEffect::Awaiting { .. }));
        claim
    }

    fn state(&self, claim: &Claim) -> State {
        self.model.active(claim.seq).unwrap().state
    }
}

/// An awaiting operation runs without a worker: it keeps its slot and the head of its group, and
/// says since when it waits.
#[test]
fn an_accepted_job_keeps_its_slot_and_its_group_but_no_worker() {
    let mut world = ModelHarness::new();
    world.limit("slots", cap(1));
    world.accept(charged("a", &[("slots", 1)]));
    world.accept(draft("a"));
    world.accept(charged("b", &[("slots", 1)]));
    let claim = world.take(9).pop().unwrap();
    let since = world.now;
    world.settle(&claim, accepted(None, 60));
    assert_eq!(world.take(9), [], "its slot and its group are not free");
    assert_eq!(world.model.claims(), [], "no worker holds it");
    assert_eq!((world.state(&claim), world.model.counts().running), (State::Running, 1));
    let until = since.after(Duration::from_secs(60));
    let why = world.model.why(claim.seq, world.now).unwrap();
    assert_eq!(why.cause, Cause::Awaiting { since, until, poll_at: None, then: OverdueEffect::Unknown });
    assert_eq!(world.model.next_change(true), Some(until));
    world.wait_ms(31_000);
    assert_eq!(world.take(9), [], "the lease of the worker that sent it means nothing any more");
    world.done(&claim);
    assert_eq!(world.take_seqs(9), [3, 2], "slot and group are free");
}

/// The first end wins; every later one is stale and changes nothing.
#[test]
fn the_first_end_wins() {
    let mut world = ModelHarness::new();
    let claim = world.await_one(draft("g"), accepted(Some(5), 60));
    world.wait_ms(5_000);
    let poll = world.take(1).pop().unwrap();
    assert_eq!((poll.seq, poll.attempt_fence, poll.poll, poll.attempt), (claim.seq, claim.fence, true, 1));
    world.done(&claim);
    let facts = world.facts.len();
    for late in [Verdict::Done, accepted(Some(5), 60), Verdict::Rejected(transient()), retry()] {
        assert_eq!(world.settle(&poll, late), SettleOutcome::Stale);
    }
    assert_eq!(world.facts.len(), facts);
}

/// A completion may come before the response to the submit; that response is then stale.
#[test]
fn a_completion_may_come_before_the_response() {
    let mut world = ModelHarness::new();
    world.limit("slots", cap(1));
    world.limit("api", drip(9, 9));
    world.accept(charged("g", &[("slots", 1), ("api", 1)]));
    let claim = world.take(1).pop().unwrap();
    world.done(&claim);
    assert_eq!(world.settle(&claim, accepted(Some(5), 60)), SettleOutcome::Stale);
    assert_eq!(world.model.limit("slots", world.now).unwrap().in_flight, 0);
}

/// Polls come when they are due, for the same attempt, and spend none.
#[test]
fn polls_come_when_they_are_due_and_spend_no_attempt() {
    let mut world = ModelHarness::new();
    let claim = world.await_one(Draft { max_attempts: 1, ..draft("g") }, accepted(Some(5), 3_600));
    for _ in 0..20 {
        world.wait_ms(4_999);
        assert_eq!(world.take(9), []);
        assert_eq!(world.model.next_change(true), Some(world.now.after(Duration::from_millis(1))));
        world.wait_ms(1);
        let poll = world.take(9).pop().unwrap();
        assert_eq!((poll.attempt_fence, poll.poll, poll.cancel_requested), (claim.fence, true, false));
        world.settle(&poll, accepted(Some(5), 3_600));
    }
    world.wait_ms(5_000);
    let poll = world.take(9).pop().unwrap();
    assert_eq!(end_of(&world.settle(&poll, Verdict::Done)), Some(EndState::Succeeded));
}

/// Nothing awaits forever: no response moves the end, and no timeout is longer than the bound.
#[test]
fn nothing_awaits_forever() {
    let mut world = ModelHarness::new();
    world.accept(draft("long"));
    let long = world.take(1).pop().unwrap();
    let verdict = Verdict::Accepted { poll_after: None, timeout: Duration::MAX };
    let until = world.now.after(AWAIT_MAX);
    assert_eq!(effect_of(world.settle(&long, verdict)), SettleEffect::Awaiting { poll_at: None, until });
    let claim = world.await_one(draft("g"), accepted(Some(5), 8));
    world.wait_ms(5_000);
    let poll = world.take(9).pop().unwrap();
    world.settle(&poll, accepted(Some(5), 3_600));
    world.wait_ms(2_999);
    assert_eq!(world.take(9), []);
    world.wait_ms(1);
    assert_eq!(world.take(9), []);
    assert_eq!(world.state(&claim), State::Unknown);
    assert_eq!(world.settle(&claim, Verdict::Done), SettleOutcome::Stale, "it came too late");
}

/// OPS-23: when the completion does not come in time, the rule of the operation decides.
#[test]
fn ops_23_a_completion_that_does_not_come_is_an_unknown_outcome() {
    let mut world = ModelHarness::new();
    world.limit("slots", cap(3));
    for (group, on_unknown) in
        [("repeat", OnUnknown::Repeat), ("look", OnUnknown::Reconcile), ("ask", OnUnknown::Ask)]
    {
        world.await_one(Draft { on_unknown, ..charged(group, &[("slots", 1)]) }, accepted(None, 8));
    }
    assert_eq!(world.model.limit("slots", world.now).unwrap().in_flight, 3);
    world.wait_ms(8_000);
    assert_eq!(world.take(9), []);
    assert_eq!(world.model.limit("slots", world.now).unwrap().in_flight, 0, "the slots are free");
    world.wait_ms(1_000);
    let again = world.take(9);
    let again: Vec<_> = again.iter().map(|c| (c.seq.0, c.attempt, c.poll, c.reconcile_first)).collect();
    assert_eq!(again, [(1, 2, false, false), (2, 2, false, true)]);
    assert_eq!(world.model.active(Seq(3)).unwrap().state, State::Unknown);
}

/// A poll that finds out nothing changes nothing, and the next one comes later each time.
#[test]
fn a_poll_that_finds_out_nothing_is_repeated_later() {
    let mut world = ModelHarness::new();
    let claim = world.await_one(Draft { max_attempts: 1, ..draft("g") }, accepted(Some(5), 3_600));
    let mut waits = Vec::new();
    world.wait_ms(5_000);
    for _ in 0..4 {
        let poll = world.take(9).pop().unwrap();
        world.settle(&poll, Verdict::Unknown(transient()));
        let next = world.model.next_change(true).unwrap();
        waits.push(next.since(world.now).as_millis());
        world.now = next;
    }
    assert!(waits.is_sorted() && waits[3] > 4 * waits[0], "{waits:?}");
    world.done(&claim);
}

/// A poll that fails is never repeated before the next one would have been due.
#[test]
fn a_poll_that_fails_is_not_repeated_sooner() {
    let mut world = ModelHarness::new();
    let claim = world.await_one(draft("g"), accepted(Some(5), 3_600));
    for _ in 0..6 {
        let due = world.model.next_change(true).unwrap();
        assert!(due.since(world.now) >= Duration::from_secs(5), "{due:?}");
        world.now = due;
        let poll = world.take(9).pop().unwrap();
        world.settle(&poll, Verdict::PollFailed { every: Duration::from_secs(5), fault: transient() });
    }
    assert_eq!(world.state(&claim), State::Running);
}

/// A job is polled at once when its upstream says that something happened: once, and only if it is
/// polled at all.
#[test]
fn a_job_is_polled_at_once_when_asked_for() {
    let mut world = ModelHarness::new();
    let silent = world.await_one(draft("silent"), accepted(None, 3_600));
    let claim = world.await_one(draft("g"), accepted(Some(500), 3_600));
    let mut poll_now =
        |claim: &Claim| world.model.poll_now(world.now, claim.seq, claim.fence, &mut world.facts);
    assert!(!poll_now(&silent));
    assert!(poll_now(&claim) && poll_now(&claim));
    let polls = world.take(9);
    assert_eq!(
        polls.iter().map(|poll| (poll.attempt_fence, poll.poll)).collect::<Vec<_>>(),
        [(claim.fence, true)]
    );
    assert!(!world.model.poll_now(world.now, claim.seq, claim.fence, &mut world.facts), "it is being polled");
    world.settle(&polls[0], accepted(Some(500), 3_600));
    assert_eq!(world.take(9), []);
    world.done(&claim);
    assert!(!world.model.poll_now(world.now, claim.seq, claim.fence, &mut world.facts), "it has ended");
}

/// A report that comes after its time resolves an unknown outcome, of the last attempt only; the
/// first end still wins.
#[test]
fn a_late_report_resolves_an_unknown_outcome() {
    let mut world = ModelHarness::new();
    let failed = || Verdict::Rejected(Fault::new(FaultClass::Validation, "the job failed"));
    for (group, verdict, wanted) in [
        ("a", Verdict::Done, Some(EndState::Succeeded)),
        ("b", failed(), Some(EndState::Failed)),
        ("c", retry(), None),
    ] {
        let draft = Draft { on_unknown: OnUnknown::Ask, ..draft(group) };
        let claim = world.await_one(draft, accepted(None, 8));
        let late = |world: &mut ModelHarness, attempt, verdict| {
            world.model.resolve_late(world.now, claim.seq, attempt, verdict, &mut world.facts)
        };
        assert!(late(&mut world, 0, Verdict::Done).is_err(), "it is not unknown yet");
        world.wait_ms(8_000);
        world.take(9);
        assert_eq!(world.state(&claim), State::Unknown);
        assert!(late(&mut world, 2, Verdict::Done).is_err(), "another attempt");
        let ended = late(&mut world, 1, verdict.clone()).unwrap();
        assert_eq!(ended.as_ref().map(|ended| ended.state), wanted);
        if let (Some(ended), Verdict::Rejected(fault)) = (ended, verdict) {
            assert_eq!(ended.fault, Some(fault));
        }
        if wanted.is_some() {
            assert!(late(&mut world, 1, Verdict::Done).is_err(), "the first end wins");
        }
        world.model.check().unwrap();
    }
    assert_eq!(world.take(9).iter().map(|claim| claim.attempt).collect::<Vec<_>>(), [2], "sent again");
}

/// A report that comes before the next attempt makes that one needless; one that comes later, or of
/// an earlier attempt, changes nothing.
#[test]
fn a_late_report_spares_the_next_attempt() {
    for (verdict, wanted) in [
        (Verdict::Done, Some(EndState::Succeeded)),
        (Verdict::Rejected(transient()), Some(EndState::Failed)),
        (retry(), None),
    ] {
        let mut world = ModelHarness::new();
        let draft = Draft { on_unknown: OnUnknown::Repeat, ..draft("g") };
        let claim = world.await_one(draft, accepted(None, 8));
        world.wait_ms(8_000);
        assert_eq!(world.take(9), []);
        assert_eq!(world.state(&claim), State::Waiting);
        let late = |world: &mut ModelHarness, verdict| {
            let ended = world.model.resolve_late(world.now, claim.seq, 1, verdict, &mut world.facts);
            ended.ok().flatten().map(|ended| ended.state)
        };
        assert_eq!(late(&mut world, verdict), wanted);
        world.model.check().unwrap();
        world.wait_ms(60_000);
        let next = world.take(9);
        assert_eq!(next.len(), usize::from(wanted.is_none()));
        assert_eq!(late(&mut world, Verdict::Done), None, "it has ended, or the next attempt is in progress");
    }
}

/// A worker that dies while it polls loses nothing: the claim awaits its completion as before.
#[test]
fn a_lost_poll_keeps_the_claim() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(9, 9));
    let claim = world.await_one(charged("g", &[("api", 1)]), accepted(Some(5), 3_600));
    world.wait_ms(5_000);
    assert_eq!(world.take(9).len(), 1);
    assert_eq!(world.model.limit("api", world.now).unwrap().in_flight, 1);
    world.wait_ms(30_000);
    assert_eq!(world.take(9), [], "it is polled again after a pause");
    assert_eq!(world.model.limit("api", world.now).unwrap().in_flight, 0);
    assert_eq!(world.state(&claim), State::Running);
    world.wait_ms(1_000);
    let poll = world.take(9).pop().unwrap();
    world.settle(&poll, Verdict::Returned);
    assert_eq!(
        world.take(9).pop().unwrap().attempt_fence,
        claim.fence,
        "one that was not sent comes back at once"
    );
}

/// Polls keep within the limits of the upstream, take turns with other calls, and keep their slot.
#[test]
fn polls_are_paced_like_calls() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(1, 1));
    world.limit("slots", cap(2));
    let claim = world.await_one(charged("a", &[("api", 1), ("slots", 1)]), accepted(Some(1), 3_600));
    world.wait_ms(1_000);
    world.accept(charged("b", &[("api", 1)]));
    world.accept(charged("c", &[("api", 1)]));
    let first = world.take(9);
    assert_eq!(first.iter().map(|c| (c.seq.0, c.poll)).collect::<Vec<_>>(), [(1, true)]);
    assert_eq!(world.model.limit("slots", world.now).unwrap().in_flight, 1);
    world.settle(&first[0], accepted(Some(1), 3_600));
    let mut seen = Vec::new();
    for _ in 0..3 {
        world.wait_ms(1_000);
        for next in world.take(9) {
            seen.push((next.seq.0, next.poll));
            world.settle(&next, if next.poll { accepted(Some(1), 3_600) } else { Verdict::Done });
        }
    }
    assert_eq!(seen, [(2, false), (3, false), (1, true)], "a poll draws a new turn each time");
    world.done(&claim);
}

/// LIM-12: a poll that is throttled closes the limit for all, and the job is still awaited.
#[test]
fn lim_12_a_throttled_poll_closes_the_limit_and_keeps_the_claim() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(9, 9));
    let deadline = world.now.after(Duration::from_secs(6));
    let draft = Draft { deadline: Some(deadline), ..charged("g", &[("api", 1)]) };
    let claim = world.await_one(draft, accepted(Some(5), 3_600));
    world.wait_ms(5_000);
    let poll = world.take(9).pop().unwrap();
    assert_eq!(end_of(&world.settle(&poll, throttled(Some(3_000)))), None);
    assert!(world.model.limit("api", world.now).unwrap().frozen_until.is_some());
    assert_eq!(world.take(9), []);
    world.wait_ms(4_000);
    assert_eq!(world.take(9).pop().unwrap().attempt_fence, claim.fence, "after its deadline: it has started");
}

/// A cancel is passed on at once, and the job may have ended first.
#[test]
fn a_cancel_is_passed_on_once() {
    let mut world = ModelHarness::new();
    let claim = world.await_one(draft("g"), accepted(None, 3_600));
    let canceled = world.model.cancel(world.now, claim.seq, &mut world.facts);
    assert_eq!(canceled, CancelOutcome::Requested(claim.fence));
    let poll = world.take(9).pop().unwrap();
    assert_eq!((poll.attempt_fence, poll.poll, poll.cancel_requested), (claim.fence, true, true));
    world.settle(&poll, accepted(Some(5), 3_600));
    assert_eq!(world.take(9), [], "the upstream is at it: asked again when the next poll is due");
    world.wait_ms(5_000);
    let poll = world.take(9).pop().unwrap();
    let settle = world.settle(&poll, Verdict::Canceled { may_have_happened: true });
    assert_eq!(end_of(&settle), Some(EndState::Canceled));
    let finished = world.await_one(draft("g"), accepted(None, 3_600));
    world.model.cancel(world.now, finished.seq, &mut world.facts);
    assert_eq!(end_of(&world.settle(&finished, Verdict::Done)), Some(EndState::Succeeded));
}

/// A cancel during a poll is passed on by the next one, which comes at once.
#[test]
fn a_cancel_during_a_poll_is_passed_on_by_the_next() {
    let mut world = ModelHarness::new();
    world.await_one(draft("g"), accepted(Some(5), 3_600));
    world.wait_ms(5_000);
    let poll = world.take(9).pop().unwrap();
    world.model.cancel(world.now, poll.seq, &mut world.facts);
    world.settle(&poll, Verdict::Returned);
    assert!(world.take(9).pop().unwrap().cancel_requested);
}

/// A retry ends the claim: the job is submitted again under a new fence.
#[test]
fn a_job_that_asks_for_it_is_submitted_again() {
    let mut world = ModelHarness::new();
    world.limit("slots", cap(1));
    let claim = world.await_one(charged("g", &[("slots", 1)]), accepted(None, 3_600));
    world.settle(&claim, retry());
    assert_eq!(world.model.limit("slots", world.now).unwrap().in_flight, 0);
    world.wait_ms(1_000);
    let again = world.take(9).pop().unwrap();
    assert!(again.fence > claim.fence && !again.poll && again.attempt == 2);
    assert_eq!(world.settle(&claim, Verdict::Done), SettleOutcome::Stale);
}

/// OPS-8: after a restart, from the log or a snapshot, an operation still awaits its completion.
#[test]
fn ops_8_an_awaiting_operation_survives_a_restart() {
    let mut world = ModelHarness::new();
    world.limit("slots", cap(1));
    world.limit("api", drip(9, 9));
    let claim = world.await_one(charged("g", &[("slots", 1), ("api", 1)]), accepted(Some(5), 60));
    let mut models = vec![world.replayed(), Model::new()];
    world.model.snapshot().for_each(|fact| models[1].absorb(&fact));
    for mut model in models {
        assert_eq!(model.claims(), []);
        let now = world.now.after(Duration::from_secs(5));
        let poll = model.take(now, 9, LEASE, 0, &mut Vec::new()).claims;
        assert_eq!(poll.iter().map(|c| (c.attempt_fence, c.poll)).collect::<Vec<_>>(), [(claim.fence, true)]);
        let settle =
            model.settle(now, ClaimReport::new(claim.seq, claim.fence, Verdict::Done), 0, &mut Vec::new());
        assert_eq!(end_of(&settle), Some(EndState::Succeeded));
        model.check().unwrap();
        assert_eq!(model.limit("slots", now).unwrap().in_flight, 0);
    }
}

/// A paused group finishes what runs: its awaiting operation is polled and completed.
#[test]
fn a_paused_group_finishes_what_it_awaits() {
    let mut world = ModelHarness::new();
    let claim = world.await_one(draft("g"), accepted(Some(5), 60));
    world.accept(draft("g"));
    world.model.pause(world.now, &named("g"), &named("ann"), &named("why"), &mut world.facts);
    world.wait_ms(5_000);
    assert_eq!(world.take(9).pop().unwrap().attempt_fence, claim.fence);
    world.done(&claim);
    assert_eq!(world.take(9), []);
}

/// A worker that lost its claim to a completion cannot renew it, nor can one whose job is awaited.
#[test]
fn without_a_worker_there_is_nothing_to_renew() {
    let mut world = ModelHarness::new();
    let claim = world.await_one(draft("g"), accepted(Some(5), 60));
    assert!(!world.model.renew(claim.seq, claim.fence, world.now.after(LEASE), &mut world.facts));
    world.wait_ms(5_000);
    let poll = world.take(9).pop().unwrap();
    assert!(world.model.renew(poll.seq, poll.fence, world.now.after(LEASE), &mut world.facts));
}

/// Each poll has a fence of its own: a report, an extension or a repeat of an earlier one settles
/// nothing and holds nothing, also after a restart. A completion still names the attempt.
#[test]
fn a_late_poll_settles_nothing() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(9, 9));
    let claim = world.await_one(charged("g", &[("api", 1)]), accepted(Some(5), 3_600));
    world.wait_ms(5_000);
    let slow = world.take(9).pop().unwrap();
    world.wait_ms(31_000);
    assert_eq!(world.take(9), [], "its lease is over");
    world.wait_ms(10_000);
    let poll = world.take(9).pop().unwrap();
    assert!(claim.fence < slow.fence && slow.fence < poll.fence);
    assert_eq!(world.settle(&slow, Verdict::Done), SettleOutcome::Stale);
    let mut models = [world.replayed(), Model::new()];
    world.model.snapshot().for_each(|fact| models[1].absorb(&fact));
    for model in &mut models {
        let facts = &mut Vec::new();
        assert_eq!(model.claims(), [(poll.seq, poll.fence)]);
        assert!(!model.renew(slow.seq, slow.fence, world.now.after(LEASE), facts));
        let late = model.settle(world.now, ClaimReport::new(slow.seq, slow.fence, Verdict::Done), 0, facts);
        assert_eq!((late, facts.len()), (SettleOutcome::Stale, 0));
        assert_eq!(model.claim_status(claim.seq, claim.fence).unwrap().worker, Some(poll.fence));
        assert!(model.renew(poll.seq, poll.fence, world.now.after(LEASE), facts));
        model.check().unwrap();
    }
    world.settle(&poll, accepted(Some(5), 3_600));
    assert_eq!(world.settle(&poll, Verdict::Done), SettleOutcome::Stale, "sent twice");
    assert_eq!(end_of(&world.settle(&claim, Verdict::Done)), Some(EndState::Succeeded), "a completion");
}

/// OPS-9: whoever was to stop a job may never report: after a while it is canceled all the same. No
/// poll in between extends that time.
#[test]
fn ops_9_the_cancel_of_a_job_has_an_end() {
    for by_poll in [false, true] {
        let mut world = ModelHarness::new();
        world.limit("slots", cap(1));
        let claim = world.await_one(charged("g", &[("slots", 1)]), accepted(Some(5), 360_000));
        world.wait_ms(5_000);
        // Requested while it is polled, or while no one does.
        let poll = by_poll.then(|| world.take(9).pop().unwrap());
        world.model.cancel(world.now, claim.seq, &mut world.facts);
        if let Some(poll) = poll {
            world.settle(&poll, Verdict::Returned);
        }
        let end = world.now.after(crate::bounds::CANCEL_AWAIT_MAX);
        let mut polls = 0;
        while world.now < end.before(Duration::from_secs(1)) {
            for poll in world.take(9) {
                polls += 1;
                world.settle(&poll, accepted(Some(5), 360_000));
            }
            assert_eq!(world.state(&claim), State::Running);
            world.wait_ms(1_000);
        }
        assert!(polls > 50, "{polls}");
        world.now = end;
        let take = world.model.take(end, 9, LEASE, 0, &mut world.facts);
        let fault = take.ended[0].fault.as_ref().unwrap();
        assert_eq!((take.claims.len(), take.ended[0].state), (0, EndState::Canceled));
        assert!(fault.may_have_happened && fault.message.contains("cancel"), "{fault:?}");
        assert_eq!(world.model.limit("slots", world.now).unwrap().in_flight, 0);
        world.model.check().unwrap();
    }
}
