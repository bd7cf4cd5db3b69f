//! Completions that do not come in time: what follows, and whether `why` says so.

use super::*;
use crate::model::{Cause, ClaimedCall, OverdueEffect, TakeoverOutcome};
use crate::operation::OnUnknown;
use crate::state::State;

/// OPS-24: `why` says what follows when no completion comes, and that is what follows.
#[test]
fn ops_24_why_says_what_follows_an_overdue_completion() {
    let table = [
        (OnUnknown::Ask, 3, false, OverdueEffect::Unknown, State::Unknown),
        (OnUnknown::Repeat, 3, false, OverdueEffect::Repeat, State::Waiting),
        (OnUnknown::Reconcile, 3, false, OverdueEffect::Repeat, State::Waiting),
        (OnUnknown::Reconcile, 1, false, OverdueEffect::Unknown, State::Unknown),
        (OnUnknown::Repeat, 1, false, OverdueEffect::Fail, State::Failed),
        (OnUnknown::Repeat, 3, true, OverdueEffect::Cancel, State::Canceled),
        (OnUnknown::Ask, 3, true, OverdueEffect::Cancel, State::Canceled),
    ];
    for (on_unknown, max_attempts, is_canceled, effect, state) in table {
        let mut world = ModelHarness::new();
        world.accept(Draft { on_unknown, max_attempts, ..draft("g") });
        let claim = world.take(1).pop().unwrap();
        world.settle(&claim, accepted(None, 60));
        if is_canceled {
            world.model.cancel(world.now, claim.seq, &mut world.facts);
        }
        let why = world.model.why(claim.seq, world.now).unwrap();
        assert!(matches!(why.cause, Cause::Awaiting { then, .. } if then == effect), "{why:?}");
        world.wait_ms(60_000);
        let ended = world.take_outcome(0).ended.pop().map(|ended| State::from(ended.state));
        let active = world.model.active(claim.seq).map(|active| active.state);
        assert_eq!(ended.or(active), Some(state), "{on_unknown:?} {max_attempts} {is_canceled}");
    }
}

/// A job that is polled, whose time passed while its partition had no owner; with its last poll in
/// the hands of a worker that is gone, or not.
fn unowned(call: Option<ClaimedCall>) -> (ModelHarness, Seq) {
    let mut world = ModelHarness::new();
    world.accept(draft("g"));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, accepted(Some(10), 60));
    let poll = call.map(|call| {
        world.wait_ms(10_000);
        (world.take(1).pop().unwrap(), call)
    });
    world.wait_ms(600_000);
    if let Some((poll, call)) = poll {
        let until = world.now.after(LEASE);
        let claimed = (poll.seq, poll.fence);
        let outcome = world.model.take_over(world.now, claimed, call, until, &mut world.facts).unwrap();
        let TakeoverOutcome::Settle(verdict) = outcome else { panic!("{call:?} {outcome:?}") };
        world.settle(&poll, verdict);
    }
    world.model.await_again(world.now, world.now.after(GRACE), &mut world.facts);
    (world, claim.seq)
}

const GRACE: Duration = Duration::from_secs(30);

/// OPS-24: a job whose time passed while there was no owner may have ended: it is polled again,
/// and what that says counts.
#[test]
fn ops_24_a_job_is_polled_again_when_there_was_no_owner() {
    use ClaimedCall::{Elsewhere, Orphaned, RemoteWorker};
    for call in [None, Some(Orphaned), Some(Elsewhere), Some(RemoteWorker)] {
        for (verdict, is_done) in [(Verdict::Done, true), (accepted(Some(1), 60), false)] {
            let (mut world, seq) = unowned(call);
            let poll = world.take(1).pop().unwrap();
            assert!(poll.poll, "{call:?}");
            world.settle(&poll, verdict);
            let active = world.model.active(seq).map(|active| active.state);
            assert_eq!(active, (!is_done).then_some(State::Running), "{call:?}");
            if !is_done {
                world.wait_ms(30_000);
                assert_eq!(world.take_outcome(0).overdue.len(), 1, "{call:?}: it is not awaited for ever");
            }
        }
    }
}

/// OPS-24: what only a completion can end is not awaited for longer, nor is what has time left.
#[test]
fn ops_24_only_what_can_be_polled_is_awaited_for_longer() {
    let mut world = ModelHarness::new();
    world.accept(draft("reported"));
    world.accept(draft("patient"));
    for claim in world.take(2) {
        let is_reported = &*claim.group == "reported";
        world.settle(&claim, if is_reported { accepted(None, 60) } else { accepted(Some(900), 6_000) });
    }
    world.wait_ms(600_000);
    world.model.await_again(world.now, world.now.after(GRACE), &mut world.facts);
    let outcome = world.take_outcome(2);
    assert_eq!((outcome.overdue.len(), outcome.claims.len()), (1, 0));
}
