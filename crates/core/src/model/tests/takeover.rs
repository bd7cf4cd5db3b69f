//! What a new owner does about the claims that it finds.

use super::super::{ClaimedCall, TakeoverOutcome};
use super::*;
use crate::id::Fence;

/// Claims one operation of a limited group, without sending it.
fn claimed() -> (ModelHarness, Seq, Fence) {
    let mut world = ModelHarness::new();
    world.limit("api", drip(3, 1));
    world.accept(charged("g", &[("api", 1)]));
    let claim = world.model.take(world.now, 1, LEASE, u32::MAX / 2, &mut world.facts).claims.pop().unwrap();
    (world, claim.seq, claim.fence)
}

/// OPS-23: a claim stands while someone may work on it, and is renewed only by the process
/// that does. What was never sent is returned; what a dead process sent is unknown.
#[test]
fn ops_23_a_claim_is_taken_over_by_what_is_known_of_its_call() {
    let unknown = "the process stopped while the call was in flight";
    for call in [
        ClaimedCall::InFlight(Time::from_millis(1_000_000)),
        ClaimedCall::Unsent,
        ClaimedCall::NeverSent,
        ClaimedCall::Elsewhere,
        ClaimedCall::Orphaned,
        ClaimedCall::RemoteWorker,
    ] {
        let (mut world, seq, fence) = claimed();
        world.wait_ms(10_000);
        let (expires, until) = (world.model.first_expiry(), world.now.after(LEASE));
        let outcome = world.model.take_over(world.now, (seq, fence), call, until, &mut world.facts).unwrap();
        let kept = TakeoverOutcome::Kept { cancel_requested: false };
        let (expected, renewed) = match call {
            ClaimedCall::InFlight(_) | ClaimedCall::Unsent | ClaimedCall::RemoteWorker => (kept, true),
            ClaimedCall::Elsewhere => (kept, false),
            ClaimedCall::NeverSent => (TakeoverOutcome::Settle(Verdict::Returned), false),
            ClaimedCall::Orphaned => {
                let fault = Fault::new(FaultClass::Transient, unknown);
                (TakeoverOutcome::Settle(Verdict::Lost(fault)), false)
            }
        };
        assert_eq!(outcome, expected, "{call:?}");
        let expiry = if renewed { Some(until) } else { expires };
        assert_eq!(world.model.first_expiry(), expiry, "{call:?}");
        let is_marked = world.facts.iter().any(|fact| matches!(fact, Fact::Sent { .. }));
        let is_sent =
            matches!(call, ClaimedCall::InFlight(_) | ClaimedCall::Elsewhere | ClaimedCall::RemoteWorker);
        assert_eq!(is_marked, is_sent, "{call:?}: from then on its charges count");
    }
}

/// OPS-9: a cancel that was requested before the takeover still reaches the call, and a claim that
/// is gone is not taken over.
#[test]
fn ops_9_a_cancel_survives_a_takeover() {
    let (mut world, seq, fence) = claimed();
    world.model.cancel(world.now, seq, &mut world.facts);
    let until = world.now.after(LEASE);
    let take_over = |world: &mut ModelHarness, fence| {
        world.model.take_over(world.now, (seq, fence), ClaimedCall::Unsent, until, &mut world.facts)
    };
    assert_eq!(take_over(&mut world, fence), Some(TakeoverOutcome::Kept { cancel_requested: true }));
    assert_eq!(take_over(&mut world, Fence(fence.0 + 1)), None);
}

/// OPS-23: a poll changes nothing: one that another process may have sent is not waited for, and
/// its operation keeps awaiting.
#[test]
fn ops_23_a_lost_poll_is_settled_at_once() {
    for call in [ClaimedCall::Elsewhere, ClaimedCall::Orphaned] {
        let mut world = ModelHarness::new();
        world.accept(draft("g"));
        let claim = world.take(1).pop().unwrap();
        let (poll_after, timeout) = (Some(Duration::from_secs(1)), Duration::from_secs(60));
        world.settle(&claim, Verdict::Accepted { poll_after, timeout });
        world.wait_ms(2_000);
        let poll = world.take(1).pop().unwrap();
        assert!(poll.poll);
        let until = world.now.after(LEASE);
        let outcome = world.model.take_over(world.now, (poll.seq, poll.fence), call, until, &mut world.facts);
        let Some(TakeoverOutcome::Settle(verdict)) = outcome else { panic!("{outcome:?}") };
        let settled = world.settle(&poll, verdict);
        assert!(matches!(settled, SettleOutcome::Settled { ended: None, .. }), "{settled:?}");
    }
}
