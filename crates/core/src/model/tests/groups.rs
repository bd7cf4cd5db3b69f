//! Order inside a group, turns between groups, keys.

use super::*;
use crate::operation::DedupeEntry;
use crate::steps;

/// OPS-4: one at a time, in the order of acceptance, also while the head waits for its next
/// attempt.
#[test]
fn ops_4_strictly_one_at_a_time_and_in_order() {
    let mut world = ModelHarness::new();
    for _ in 0..3 {
        world.accept(draft("guild:1"));
    }
    let first = world.take(10);
    assert_eq!(first.len(), 1);
    assert!(world.take(10).is_empty());
    world.settle(&first[0], retry());
    assert!(world.take(10).is_empty(), "the head waits, and nobody overtakes it");
    world.wait_ms(499);
    assert!(world.take(10).is_empty());
    world.wait_ms(2);
    let again = world.take(10);
    assert_eq!((again[0].seq, again[0].attempt), (first[0].seq, 2));
    world.done(&again[0]);
    let second = world.take(10);
    assert_eq!(second[0].seq, Seq(2));
    world.done(&second[0]);
    assert_eq!(world.take_seqs(10), [3]);
}

/// OPS-5: groups take turns, whatever their backlog.
#[test]
fn ops_5_a_long_line_does_not_starve_a_short_one() {
    let mut world = ModelHarness::new();
    for _ in 0..50 {
        world.accept(draft("busy"));
    }
    for name in ["a", "b", "c"] {
        world.accept(draft(name));
        world.accept(draft(name));
    }
    let mut order = Vec::new();
    for _ in 0..9 {
        let claim = world.take(1).pop().unwrap();
        order.push(claim.group.to_string());
        world.done(&claim);
    }
    assert_eq!(order, ["busy", "a", "b", "c", "busy", "a", "b", "c", "busy"]);
}

/// OPS-9: a higher priority goes earlier, by a finite head start: no group starves.
#[test]
fn ops_9_priority_is_a_head_start() {
    let mut world = ModelHarness::new();
    for n in 0..2_000 {
        world.accept(draft(&format!("usual-{n}")));
    }
    world.accept(Draft { priority: 1, ..draft("first-class") });
    let order: Vec<_> = world.take(2_001).into_iter().map(|claim| claim.group).collect();
    let place = order.iter().position(|group| &**group == "first-class").unwrap();
    assert_eq!(place, 2_000 - 1_023, "1,024 tickets ahead of where it would have been");
    world.accept(Draft { priority: 4, ..draft("boss") });
    world.accept(draft("late"));
    assert_eq!(&*world.take(1)[0].group, "boss");
}

/// OPS-7: one key, one operation, within its window; a different request under the key is a
/// conflict.
#[test]
fn ops_7_a_key_is_one_operation_within_its_window() {
    let mut world = ModelHarness::new();
    let window = Duration::from_secs(60);
    let keyed = |now: Time, fingerprint| Draft {
        dedupe: Some(DedupeEntry { key: 7, fingerprint, expires: now.after(window) }),
        ..draft("g")
    };
    let first = world.accept(keyed(world.now, 1));
    assert_eq!(world.try_accept(keyed(world.now, 1)), AcceptOutcome::Duplicate(first));
    assert_eq!(world.try_accept(keyed(world.now, 2)), AcceptOutcome::Conflict(first));
    let claim = world.take(1).pop().unwrap();
    assert_eq!(world.try_accept(keyed(world.now, 1)), AcceptOutcome::Duplicate(first));
    world.done(&claim);
    world.wait_ms(59_999);
    assert_eq!(
        world.try_accept(keyed(world.now, 1)),
        AcceptOutcome::Duplicate(first),
        "its result is still there"
    );
    world.wait_ms(1);
    assert!(matches!(world.try_accept(keyed(world.now, 2)), AcceptOutcome::New(_)));
}

/// OPS-8: a key that was used again after its window is forgotten at the same time by a model that
/// was restored from a snapshot, which does not have its first use.
#[test]
fn ops_8_keys_are_forgotten_at_the_same_time_after_a_restart() {
    let mut world = ModelHarness::new();
    for (key, wait_ms, seconds) in [(1, 0, 30), (2, 0, 3), (2, 5_000, 15)] {
        world.wait_ms(wait_ms);
        let expires = world.now.after(Duration::from_secs(seconds));
        let dedupe = Some(DedupeEntry { key, fingerprint: 0, expires });
        world.accept(Draft { dedupe, ..draft("g") });
    }
    let mut restored = Model::new();
    for fact in world.model.snapshot() {
        restored.absorb(&fact);
    }
    world.wait_ms(60_000);
    world.accept(draft("g"));
    restored.accept(world.now, draft("g"), &mut Vec::new());
    assert!(world.model.snapshot().eq(restored.snapshot()));
    assert!(!world.model.snapshot().any(|fact| matches!(fact, Fact::KeyImage { .. })), "both have expired");
}

/// OPS-9: a delayed operation does not start before its time.
#[test]
fn ops_9_a_delay_holds_its_group_until_then() {
    let mut world = ModelHarness::new();
    let then = world.now.after(Duration::from_secs(5));
    world.accept(Draft { not_before: Some(then), ..draft("g") });
    world.accept(draft("g"));
    world.accept(draft("other"));
    assert_eq!(world.take_seqs(9), [3]);
    world.wait_ms(4_999);
    assert!(world.take(9).is_empty());
    assert_eq!(world.model.next_change(true), Some(then));
    world.wait_ms(1);
    assert_eq!(world.take_seqs(9), [1]);
}

/// A partition with this many groups that may run, as many that wait for an empty limit, as many
/// that sleep, and one that is stuck: claimed and never settled.
fn crowded(groups: usize, now: Time) -> Model {
    const HOUR: Duration = Duration::from_secs(3_600);
    let (mut model, mut facts) = (Model::new(), Vec::new());
    model.configure(now, &named("empty"), drip(1, 1), &mut facts).unwrap();
    let accept = |model: &mut Model, draft| {
        assert!(matches!(model.accept(now, draft, &mut Vec::new()), AcceptOutcome::New(_)));
    };
    accept(&mut model, draft("stuck"));
    accept(&mut model, draft("stuck"));
    // The first one leaves nothing to the others.
    for n in 0..=groups {
        accept(&mut model, charged(&format!("waiting-{n}"), &[("empty", 1)]));
    }
    assert_eq!(model.take(now, usize::MAX, HOUR, 0, &mut facts).claims.len(), 2);
    for n in 0..groups {
        accept(&mut model, Draft { not_before: Some(now.after(HOUR)), ..draft(&format!("asleep-{n}")) });
        accept(&mut model, draft(&format!("ready-{n}")));
    }
    model
}

/// How many steps a take of one operation takes at the most, and then one that finds nothing to
/// take.
fn steps_of_takes(groups: usize) -> (u64, u64) {
    let now = Time::from_millis(1_000_000);
    let (mut model, mut facts, mut most) = (crowded(groups, now), Vec::new(), 0);
    for _ in 0..10 {
        let (taken, steps) = steps::of(|| model.take(now, 1, LEASE, 0, &mut facts).claims);
        assert_eq!(taken.len(), 1);
        most = most.max(steps);
    }
    let others = model.take(now, usize::MAX, LEASE, 0, &mut facts).claims;
    assert_eq!(others.len(), groups - 10);
    let (idle, steps) = steps::of(|| {
        let taken = model.take(now, 1, LEASE, 0, &mut facts).claims.len();
        (taken, model.next_change(true))
    });
    assert_eq!(idle, (0, Some(now.after(LEASE))), "it rests until a claim expires");
    (most, steps)
}

/// OPS-27: a take costs the same among ten groups as among a hundred thousand, whatever the others
/// do: run, wait for a limit, sleep, or be stuck. Counted in steps, of which a scan would take at
/// least one for each group.
#[test]
fn ops_27_a_take_does_not_scan() {
    let (few, many) = (steps_of_takes(10), steps_of_takes(100_000));
    println!("steps: {few:?} among 10 groups, {many:?} among 100,000");
    // The trees are a few levels higher.
    assert!(many.0 <= few.0 + 200 && many.1 <= few.1 + 200, "{few:?}, {many:?}");
}

/// OPS-27: a hundred thousand groups that wait for one limit cost nothing: a take moves only as
/// many as it claims.
#[test]
fn ops_27_waiting_groups_are_left_alone() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(10, 10));
    for n in 0..20_000 {
        let answer =
            world.model.accept(world.now, charged(&format!("g{n}"), &[("api", 1)]), &mut world.facts);
        assert!(matches!(answer, AcceptOutcome::New(_)));
    }
    let first = world.model.take(world.now, 64, LEASE, 0, &mut world.facts).claims;
    let mut out = first.len();
    assert_eq!(out, 10);
    answer(&mut world, &first);
    for _ in 0..5 {
        world.wait_ms(500);
        let before = world.model.limit("api", world.now).unwrap().waiting;
        let taken = world.model.take(world.now, 64, LEASE, 0, &mut world.facts).claims;
        let after = world.model.limit("api", world.now).unwrap().waiting;
        assert_eq!((taken.len(), before - after), (5, 5), "exactly those that can be fed were woken");
        answer(&mut world, &taken);
        out += taken.len();
    }
    assert_eq!(out, 35);
    world.model.check().unwrap();
}

/// Settles without checking every invariant, which takes long with so many groups.
fn answer(world: &mut ModelHarness, claims: &[Claim]) {
    for claim in claims {
        world.model.settle(
            world.now,
            ClaimReport::new(claim.seq, claim.fence, Verdict::Done),
            0,
            &mut world.facts,
        );
    }
}
