//! Limits in the queue: all or nothing, turns kept, freezes shared, impossible costs refused.

use super::*;
use crate::fact::LimitSource;
use crate::model::{Cause, DraftRefusal, LimitRefusal, LimitView};
use crate::verdict::Hint;

/// LIM-7: an operation needs all its limits; while one of them is short nothing is taken from the
/// others.
#[test]
fn lim_7_all_limits_or_none() {
    let mut world = ModelHarness::new();
    world.limit("route", drip(1, 1));
    world.limit("global", drip(10, 10));
    world.accept(charged("a", &[("route", 1), ("global", 1)]));
    world.accept(charged("b", &[("route", 1), ("global", 1)]));
    world.accept(charged("c", &[("global", 1)]));
    let claims = world.take(9);
    assert_eq!(claims.iter().map(|claim| claim.seq.0).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(world.model.limit("global", world.now).unwrap().level, 8 * MICRO);
    for claim in &claims {
        world.done(claim);
    }
    world.wait_ms(1_000);
    assert_eq!(world.take_seqs(9), [2]);
}

/// LIM-11: an operation that its limit does not allow waits exactly as long as needed, with no
/// attempt spent and no worker held.
#[test]
fn lim_11_waits_exactly_as_long_as_the_limit_says() {
    let mut world = ModelHarness::new();
    world.limit("points", drip(100, 50));
    world.accept(charged("shop", &[("points", 80)]));
    world.accept(charged("shop", &[("points", 60)]));
    let first = world.take(9).pop().unwrap();
    world.done(&first);
    assert!(world.take(9).is_empty());
    let until = world.now.after(Duration::from_millis(800));
    assert_eq!(world.model.next_change(true), Some(until));
    let why = world.model.why(Seq(2), world.now).unwrap();
    assert_eq!(why.until, Some(until));
    assert!(
        matches!(why.cause, Cause::Bucket { cost, level, .. } if cost == 60 * MICRO && level == 20 * MICRO)
    );
    world.wait_ms(799);
    assert!(world.take(9).is_empty());
    world.wait_ms(1);
    let second = world.take(9).pop().unwrap();
    assert_eq!((second.seq, second.attempt), (Seq(2), 1));
}

/// A large cost is not overtaken for ever by small ones: later groups wait longer.
#[test]
fn a_large_cost_is_not_overtaken() {
    let mut world = ModelHarness::new();
    world.limit("points", drip(100, 10));
    world.accept(charged("first", &[("points", 100)]));
    world.accept(charged("large", &[("points", 90)]));
    let first = world.take(9).pop().unwrap();
    assert_eq!(first.seq, Seq(1));
    world.done(&first);
    for n in 0..20 {
        world.accept(charged(&format!("small-{n}"), &[("points", 1)]));
        assert!(world.take(9).is_empty(), "the large one is first in line");
        world.wait_ms(400);
    }
    world.wait_ms(1_000);
    assert_eq!(world.take(9)[0].seq, Seq(2));
}

/// LIM-12: a 429 stops everyone who shares the limit, not only the call that got it, and not for
/// less than it said.
#[test]
fn lim_12_a_429_stops_all_who_share_the_limit() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(10, 10));
    for group in ["a", "b", "c"] {
        world.accept(charged(group, &[("api", 1)]));
    }
    let told = world.take(1).pop().unwrap();
    world.settle(&told, throttled(Some(2_000)));
    assert!(world.take(9).is_empty());
    world.wait_ms(1_999);
    assert!(world.take(9).is_empty());
    world.wait_ms(60);
    let again = world.take(1).pop().unwrap();
    assert_eq!(
        (again.seq, again.attempt),
        (told.seq, 1),
        "LIM-20: it runs again first, its attempt unchanged"
    );
}

/// LIM-12: without a hint the wait grows with each consecutive 429 and ends at a minute.
#[test]
fn lim_12_without_a_hint_the_wait_grows() {
    let mut world = ModelHarness::new();
    world.limit("api", LimitShape::Gate);
    world.accept(charged("a", &[("api", 1)]));
    let mut waits = Vec::new();
    for _ in 0..10 {
        let claim = world.take(1).pop().unwrap();
        world.settle(&claim, throttled(None));
        let until = world.model.limit("api", world.now).unwrap().frozen_until.unwrap();
        waits.push(until.since(world.now).as_secs_f64());
        world.now = until;
    }
    assert!(waits[0] < 1.0 && waits.windows(2).all(|w| w[1] >= w[0]), "{waits:?}");
    assert!(waits[9] > 20.0 && waits[9] <= 60.0, "{waits:?}");
}

/// LIM-13: when a closed gate reopens, one goes first, and the others follow in steps.
#[test]
fn lim_13_an_opened_gate_is_not_stormed() {
    let mut world = ModelHarness::new();
    world.limit("api", LimitShape::Gate);
    for n in 0..100 {
        world.accept(charged(&format!("g{n}"), &[("api", 1)]));
    }
    let first = world.take(1).pop().unwrap();
    world.settle(&first, throttled(Some(1_000)));
    world.wait_ms(1_100);
    let mut sizes = Vec::new();
    for _ in 0..4 {
        let wave = world.take(64);
        sizes.push(wave.len());
        for claim in &wave {
            world.done(claim);
        }
    }
    assert_eq!(sizes, [1, 2, 8, 64], "each success doubles what may be under way");
}

/// LIM-9: a cost that the limit can never hold is refused, and one that no longer fits is ended.
#[test]
fn lim_9_more_than_a_limit_can_hold_is_an_error() {
    let mut world = ModelHarness::new();
    world.limit("points", drip(100, 10));
    let refused = world.try_accept(charged("g", &[("points", 101)]));
    assert!(
        matches!(refused, AcceptOutcome::Refused(DraftRefusal::TooCostly { cost, .. }) if cost == 101 * MICRO)
    );
    let unknown = world.try_accept(charged("g", &[("nothing", 1)]));
    assert!(matches!(unknown, AcceptOutcome::Refused(DraftRefusal::UnknownLimit(_))));
    world.accept(charged("a", &[("points", 100)]));
    world.accept(charged("b", &[("points", 100)]));
    world.take(9);
    world.model.set_limit(world.now, &named("points"), drip(50, 10), &mut world.facts).unwrap();
    let take = world.model.take(world.now, 9, LEASE, 0, &mut world.facts);
    assert_eq!(take.ended.len(), 1);
    assert_eq!(take.ended[0].fault.as_ref().unwrap().class, FaultClass::Validation);
}

/// LIM-9: an estimate proves nothing. Any estimate is accepted, takes what the limit can hold when
/// it runs, also when that became less meanwhile, and what it did not use is returned.
#[test]
fn lim_9_an_estimate_is_never_too_much() {
    let mut world = ModelHarness::new();
    world.limit("points", drip(100, 1));
    let estimated =
        |group| Draft { charges: vec![Charge::estimate("points", 960 * MICRO)], ..Draft::new(group, "kind") };
    for group in ["a", "b", "c"] {
        world.accept(estimated(group));
    }
    let first = world.take(9);
    assert_eq!(first.len(), 1, "all of the limit is taken for it");
    let hint = Hint {
        limit: named("points"),
        capacity: Some(30 * MICRO),
        refill_per_s: Some(MICRO),
        remaining: Some(20 * MICRO),
        spent: Some(10 * MICRO),
        ..Hint::default()
    };
    let Claim { seq, fence, .. } = first[0];
    world.model.settle(
        world.now,
        ClaimReport::new(seq, fence, Verdict::Done).with_hints(&[hint]),
        0,
        &mut world.facts,
    );
    world.model.set_limit(world.now, &named("points"), drip(20, 1), &mut world.facts).unwrap();
    for group in ["b", "c"] {
        world.wait_ms(60_000);
        let next = world.take(9);
        assert_eq!(next.len(), 1, "{group}");
        world.done(&next[0]);
    }
    world.accept(estimated("d"));
    let refused = world.try_accept(charged("e", &[("points", 21)]));
    assert!(
        matches!(refused, AcceptOutcome::Refused(DraftRefusal::TooCostly { .. })),
        "what a caller says counts"
    );
}

/// LIM-27: a deadline that the known limits cannot meet is refused at once, with the earliest
/// possible start.
#[test]
fn lim_27_a_deadline_that_cannot_be_met_is_refused_with_the_time() {
    let mut world = ModelHarness::new();
    world.limit("points", drip(10, 1));
    for _ in 0..3 {
        world.accept(charged("g", &[("points", 5)]));
    }
    let deadline = Some(world.now.after(Duration::from_secs(9)));
    let refused = world.try_accept(Draft { deadline, ..charged("g", &[("points", 5)]) });
    let earliest = world.now.after(Duration::from_secs(10));
    assert_eq!(
        refused,
        AcceptOutcome::Refused(DraftRefusal::TooLate { earliest }),
        "20 points wanted, 10 there, 1 a second"
    );
    let deadline = Some(world.now.after(Duration::from_secs(11)));
    assert!(matches!(
        world.try_accept(Draft { deadline, ..charged("g", &[("points", 5)]) }),
        AcceptOutcome::New(_)
    ));
}

/// LIM-23: the requested cost is held, the actual one settled, once.
#[test]
fn lim_23_reserve_then_settle() {
    let mut world = ModelHarness::new();
    world.limit("points", drip(100, 1));
    world.accept(charged("g", &[("points", 50)]));
    let claim = world.take(1).pop().unwrap();
    assert_eq!(world.model.limit("points", world.now).unwrap().level, 50 * MICRO);
    let hint = Hint { limit: named("points"), spent: Some(12 * MICRO), ..Hint::default() };
    let (now, hints) = (world.now, [hint]);
    for _ in 0..2 {
        world.model.settle(
            now,
            ClaimReport::new(claim.seq, claim.fence, Verdict::Done).with_hints(&hints),
            0,
            &mut world.facts,
        );
        assert_eq!(world.model.limit("points", now).unwrap().level, 88 * MICRO);
    }
}

/// LIM-16: slots that the API says are taken by others close nothing for other groups: the group
/// alone waits, with no attempt spent, and is not retried at once.
#[test]
fn lim_16_a_cap_that_is_full_elsewhere_makes_its_group_wait() {
    let mut world = ModelHarness::new();
    world.limit("shop", LimitShape::Gate);
    world.limit("shop/bulk", LimitShape::Cap { at_once: 1 });
    world.accept(charged("bulk", &[("shop", 1), ("shop/bulk", 1)]));
    world.accept(charged("calls", &[("shop", 1)]));
    let [bulk, call]: [Claim; 2] = world.take(9).try_into().unwrap();
    world.done(&call);
    let fault = Fault::new(FaultClass::RateLimited, "one is under way");
    let after = Some(Duration::from_secs(10));
    world.settle(&bulk, Verdict::Throttled { after, scope: Some("shop/bulk".into()), fault });
    assert!(world.take(9).is_empty());
    world.accept(charged("calls", &[("shop", 1)]));
    assert_eq!(world.take_seqs(9), [3], "the gate is open");
    world.wait_ms(9_999);
    assert!(world.take(9).is_empty());
    world.wait_ms(600);
    let again = world.take(9).pop().unwrap();
    assert_eq!((again.seq, again.attempt), (Seq(1), 1));
}

/// LIM-16: an operation that waits for slots that others have starts when it is woken, once; one
/// behind it, or one that waits for its own time, does not.
#[test]
fn lim_16_a_woken_operation_starts_at_once() {
    let mut world = ModelHarness::new();
    world.limit("shop/bulk", LimitShape::Cap { at_once: 1 });
    let delayed = Draft {
        not_before: Some(world.now.after(Duration::from_secs(60))),
        ..charged("later", &[("shop/bulk", 1)])
    };
    for draft in [charged("bulk", &[("shop/bulk", 1)]), charged("bulk", &[("shop/bulk", 1)]), delayed] {
        world.accept(draft);
    }
    let claim = world.take(9).pop().unwrap();
    let wake =
        |world: &mut ModelHarness, seq| world.model.wake_operation(world.now, Seq(seq), &mut world.facts);
    assert!(!wake(&mut world, 1), "it runs");
    let fault = Fault::new(FaultClass::RateLimited, "others have it");
    let after = Some(Duration::from_secs(10));
    world.settle(&claim, Verdict::Throttled { after, scope: Some("shop/bulk".into()), fault });
    assert!(world.take(9).is_empty());
    assert_eq!([2, 3, 9].map(|seq| wake(&mut world, seq)), [false; 3]);
    assert!(wake(&mut world, 1));
    assert!(!wake(&mut world, 1), "it is awake");
    world.model.check().unwrap();
    let mut replayed = world.replayed();
    let claims = replayed.take(world.now, 9, Duration::from_secs(9), 0, &mut Vec::new()).claims;
    assert_eq!(claims.iter().map(|claim| claim.seq).collect::<Vec<_>>(), [Seq(1)]);
    let again = world.take(9).pop().unwrap();
    assert_eq!((again.seq, again.attempt), (Seq(1), 1));
}

/// LIM-8: an operator's figures take precedence over learned ones, also after a restart; after a
/// reset it learns again.
#[test]
fn lim_8_what_a_person_set_stands_above_what_is_learned() {
    let mut world = ModelHarness::new();
    world.limit("points", drip(100, 1));
    let says = Hint {
        limit: named("points"),
        remaining: Some(30 * MICRO),
        capacity: Some(200 * MICRO),
        refill_per_s: Some(9 * MICRO),
        ..Hint::default()
    };
    let hear = |world: &mut ModelHarness| {
        world.accept(charged("g", &[("points", 1)]));
        let claim = world.take(1).pop().unwrap();
        let hints = [says.clone()];
        world.model.settle(
            world.now,
            ClaimReport::new(claim.seq, claim.fence, Verdict::Done).with_hints(&hints),
            0,
            &mut world.facts,
        );
        world.model.limit("points", world.now).unwrap()
    };
    let shape = |view: &LimitView| match view.shape {
        LimitShape::Drip { capacity, refill_per_s, .. } => (capacity / MICRO, refill_per_s / MICRO),
        _ => (0, 0),
    };
    let learned = hear(&mut world);
    assert_eq!((shape(&learned), learned.source), ((200, 9), LimitSource::Learned));
    world.model.set_limit(world.now, &named("points"), drip(50, 2), &mut world.facts).unwrap();
    let set = hear(&mut world);
    assert_eq!((shape(&set), set.source), ((50, 2), LimitSource::Operator));
    assert!(set.level <= 30 * MICRO, "what is left is believed all the same");
    let replayed = world.replayed().limit("points", world.now).unwrap();
    assert_eq!((shape(&replayed), replayed.source), ((50, 2), LimitSource::Operator));
    world.model.reset_limit(world.now, &named("points"), &mut world.facts).unwrap();
    assert_eq!(world.model.limit("points", world.now).unwrap().source, LimitSource::Config);
    let again = hear(&mut world);
    assert_eq!((shape(&again), again.source), ((200, 9), LimitSource::Learned));
    let unknown = world.model.reset_limit(world.now, &named("nothing"), &mut world.facts);
    assert_eq!(unknown, Err(LimitRefusal::Unknown));
}

/// LIM-3: a cap limits concurrent calls; a released slot wakes the next group at once.
#[test]
fn lim_3_a_cap_is_not_a_rate() {
    let mut world = ModelHarness::new();
    world.limit("bulk", LimitShape::Cap { at_once: 1 });
    world.accept(charged("a", &[("bulk", 1)]));
    world.accept(charged("b", &[("bulk", 1)]));
    let first = world.take(9);
    assert_eq!(first.len(), 1);
    assert!(matches!(world.model.why(Seq(2), world.now).unwrap().cause, Cause::Cap { held: 1, .. }));
    world.done(&first[0]);
    assert_eq!(world.take_seqs(9), [2]);
}

/// LIM-24: after a restart the buckets stand where the grants in the log left them: no burst.
#[test]
fn lim_24_no_burst_after_a_restart() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(5, 1));
    for n in 0..20 {
        world.accept(charged(&format!("g{n}"), &[("api", 1)]));
    }
    assert_eq!(world.take(99).len(), 5);
    let mut again = world.replayed();
    let mut facts = Vec::new();
    assert!(again.take(world.now, 99, LEASE, 0, &mut facts).claims.is_empty());
    // There was no response: they are assumed to have arrived after half a second.
    let later = world.now.after(Duration::from_millis(2_500));
    assert_eq!(again.take(later, 99, LEASE, 0, &mut facts).claims.len(), 2);
}

/// An operator's figures stand until the configuration itself changes.
#[test]
fn configuration_and_operator_do_not_fight() {
    let mut world = ModelHarness::new();
    world.limit("api", drip(5, 1));
    world.model.set_limit(world.now, &named("api"), drip(7, 1), &mut world.facts).unwrap();
    let same = world.model.configure(world.now, &named("api"), drip(5, 1), &mut world.facts);
    assert_eq!(same, Ok(false));
    assert_eq!(world.model.limit("api", world.now).unwrap().shape, drip(7, 1));
    world.limit("gate", LimitShape::Gate);
    let budget = world.model.set_limit(world.now, &named("gate"), drip(5, 1), &mut world.facts);
    assert_eq!(budget, Err(LimitRefusal::OtherKind), "there would be no way back");
    let changed = world.model.configure(world.now, &named("api"), drip(9, 1), &mut world.facts);
    assert_eq!(changed, Ok(true));
    assert_eq!(world.model.limit("api", world.now).unwrap().shape, drip(9, 1));
}

/// A limit that the configuration changes to another kind has that kind from then on; an operator
/// cannot change it.
#[test]
fn the_configuration_may_change_the_kind_of_a_limit() {
    let mut world = ModelHarness::new();
    world.limit("api", LimitShape::Cap { at_once: 5 });
    for group in ["a", "b", "c", "d"] {
        world.accept(charged(group, &[("api", 1)]));
    }
    let claims = world.take(2);
    world.limit("api", drip(1, 1));
    assert!(world.take(9).is_empty(), "what is under way took the token, whatever the cap had room for");
    for claim in &claims {
        world.done(claim);
    }
    world.wait_ms(1_000);
    assert_eq!(world.take(9).len(), 1, "one token");
    world.limit("api", LimitShape::Cap { at_once: 1 });
    assert!(world.take(9).is_empty(), "one place, and it is taken");
    let now = world.now;
    let by_person = world.model.set_limit(now, &"api".into(), drip(9, 9), &mut Vec::new());
    assert_eq!(by_person, Err(LimitRefusal::OtherKind));
}
