//! A limit that worsens ends what can no longer start in time, at once and not only at its
//! deadline: as a model does that replays the log and examines every group anew.

use std::time::Duration;

use super::*;
use crate::fact::LimitShape;
use crate::model::DraftRefusal;

/// An operation that must start within so many seconds.
fn within(group: &str, charges: &[(&str, u64)], secs: u64, world: &ModelHarness) -> Draft {
    Draft { deadline: Some(world.now.after(Duration::from_secs(secs))), ..charged(group, charges) }
}

/// Takes on the live model and on a replayed one, which must agree; returns what ended.
fn take_alike(world: &mut ModelHarness) -> Vec<u64> {
    let mut fresh = world.replayed();
    let again = fresh.take(world.now, 9, LEASE, u32::MAX / 2, &mut Vec::new());
    let live = world.model.take(world.now, 9, LEASE, u32::MAX / 2, &mut world.facts);
    world.model.check().unwrap();
    assert_eq!(live, again, "the replayed model (right) takes otherwise");
    live.ended.iter().map(|ended| ended.seq.0).collect()
}

fn slow() -> LimitShape {
    LimitShape::Drip { capacity: 9 * MICRO, refill_per_s: 1_000, margin: 0 }
}

/// OPS-12: an operation cannot start before the first of its group, which was delayed.
#[test]
fn ops_12_a_deadline_behind_a_delay_is_refused() {
    let mut world = ModelHarness::new();
    let later = world.now.after(Duration::from_secs(5));
    world.accept(Draft { not_before: Some(later), ..draft("g") });
    let too_late = within("g", &[], 1, &world);
    let refused = world.model.accept(world.now, too_late, &mut world.facts);
    assert_eq!(refused, AcceptOutcome::Refused(DraftRefusal::TooLate { earliest: later }));
    let in_time = within("g", &[], 9, &world);
    assert_eq!(world.accept(in_time), Seq(2));
}

/// OPS-12: an operator slows a limit down: the operation that waits for it and can no longer
/// start in time ends now.
#[test]
fn ops_12_a_limit_that_is_slowed_down_ends_what_waits_for_it() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(2, 1));
    world.accept(charged("a", &[("api", 2)]));
    world.accept(within("b", &[("api", 1)], 60, &world));
    assert_eq!(world.take_seqs(9), [1]);
    assert_eq!(take_alike(&mut world), [0; 0], "it can start in a second");
    world.model.set_limit(world.now, &named("api"), slow(), &mut world.facts).unwrap();
    assert_eq!(take_alike(&mut world), [2]);
}

/// OPS-12: neither is one spared that waits behind others, whatever they cost.
#[test]
fn ops_12_those_further_back_end_too() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(9, 1));
    world.accept(charged("a", &[("api", 9)]));
    world.accept(charged("b", &[("api", 1)]));
    world.accept(within("c", &[("api", 1)], 30, &world));
    world.accept(within("d", &[("api", 6)], 60, &world));
    world.accept(within("e", &[("api", 1)], 3_600, &world));
    assert_eq!(world.take_seqs(9), [1]);
    world.model.set_limit(world.now, &named("api"), slow(), &mut world.facts).unwrap();
    assert_eq!(take_alike(&mut world), [3, 4]);
    assert_eq!(world.model.limit(&named("api"), world.now).unwrap().waiting, 2);
}

/// OPS-12, LIM-2: an operation that waits for one limit ends when the upstream closes another one
/// that it charges for longer than it may wait.
#[test]
fn ops_12_a_closed_limit_ends_what_waits_for_another() {
    let mut world = ModelHarness::new();
    world.limit("gate", LimitShape::Gate);
    world.limit("api", drip(1, 1));
    world.accept(charged("a", &[("gate", 1), ("api", 1)]));
    world.accept(within("b", &[("gate", 1), ("api", 1)], 30, &world));
    let claim = world.take(9).pop().unwrap();
    let fault = Fault::new(FaultClass::RateLimited, "429");
    let (after, scope) = (Some(Duration::from_secs(90)), Some(named("gate")));
    world.settle(&claim, Verdict::Throttled { after, scope, fault });
    assert_eq!(take_alike(&mut world), [2]);
}

/// OPS-12: a lower capacity ends what now costs more than the limit can ever hold.
#[test]
fn ops_12_a_smaller_limit_ends_what_it_can_never_hold() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(9, 1));
    world.accept(charged("a", &[("api", 9)]));
    world.accept(charged("b", &[("api", 1)]));
    world.accept(within("c", &[("api", 5)], 60, &world));
    assert_eq!(world.take_seqs(9), [1]);
    world.model.set_limit(world.now, &named("api"), drip(4, 1), &mut world.facts).unwrap();
    assert_eq!(take_alike(&mut world), [3]);
}
