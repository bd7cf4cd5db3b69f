//! Limits that operations open: created with the first operation that charges them, learned like
//! others, removed when no one needs them.

use super::*;
use crate::bounds::OPENED_KEPT;
use crate::fact::LimitSource;
use crate::model::{DraftRefusal, LimitRefusal};
use crate::verdict::Hint;

const UNKNOWN: LimitShape = LimitShape::Window { limit: 0, period: Duration::ZERO };

/// An operation of a group of its own that charges one limit and opens it.
fn opening(limit: &str, shape: LimitShape) -> Draft {
    Draft { opens: vec![(limit.into(), shape)], ..charged(limit, &[(limit, 1)]) }
}

/// LIM-8: an unconfigured limit is created with the first operation that charges it, and follows
/// the response.
#[test]
fn lim_8_a_limit_is_opened_and_learned() {
    let mut world = ModelHarness::new();
    world.accept(opening("route", UNKNOWN));
    world.accept(Draft { group: "other".into(), ..opening("route", UNKNOWN) });
    let first = world.take(9).pop().unwrap();
    assert!(world.take(9).is_empty(), "one goes ahead and finds out");
    let hint = Hint {
        limit: "route".into(),
        remaining: Some(4 * MICRO),
        capacity: Some(5 * MICRO),
        reset_at: Some(world.now.after(Duration::from_secs(1))),
        ..Hint::default()
    };
    world.model.settle(
        world.now,
        ClaimReport::new(first.seq, first.fence, Verdict::Done).with_hints(&[hint]),
        0,
        &mut world.facts,
    );
    let seen = world.model.limit("route", world.now).unwrap();
    assert_eq!((seen.level, seen.source), (4 * MICRO, LimitSource::Learned));
    assert_eq!(world.take(9).len(), 1);
}

/// An existing limit stays as it is, whoever created it.
#[test]
fn a_limit_that_is_there_is_not_made_again() {
    let mut world = ModelHarness::new();
    world.limit("points", drip(7, 1));
    world.accept(opening("points", UNKNOWN));
    let seen = world.model.limit("points", world.now).unwrap();
    assert_eq!((seen.shape, seen.source), (drip(7, 1), LimitSource::Config));
}

/// A limit that is not charged, or whose figures are invalid, is not opened.
#[test]
fn what_makes_no_sense_is_not_opened() {
    let mut world = ModelHarness::new();
    let stranger = Draft { opens: vec![("other".into(), UNKNOWN)], ..draft("g") };
    assert!(matches!(world.try_accept(stranger), AcceptOutcome::Refused(DraftRefusal::Invalid(_))));
    let senseless = world.try_accept(opening("cap", LimitShape::Cap { at_once: 0 }));
    assert_eq!(senseless, AcceptOutcome::Refused(DraftRefusal::CannotOpen(LimitRefusal::OutOfBounds)));
    assert!(world.model.limit("cap", world.now).is_none() && world.facts.is_empty());
}

/// However many are opened one after the other, those that are unused and have no state to keep are
/// removed; one that an operation still charges, one that is closed and one that an operator has
/// set stay.
#[test]
fn limits_that_nobody_needs_go() {
    let mut world = ModelHarness::new();
    world.accept(opening("queued", UNKNOWN));
    world.model.pause(world.now, &named("queued"), &named("ann"), &named(""), &mut world.facts);
    world.accept(opening("closed", drip(5, 1)));
    let claim = world.take(9).pop().unwrap();
    world.settle(&claim, throttled(Some(86_400_000)));
    world.model.cancel(world.now, claim.seq, &mut world.facts);
    world.accept(opening("by hand", drip(5, 1)));
    world.model.set_limit(world.now, &"by hand".into(), drip(6, 1), &mut world.facts).unwrap();
    for nth in 0..OPENED_KEPT + 500 {
        let draft = opening(&format!("route {nth}"), UNKNOWN);
        assert!(matches!(world.model.accept(world.now, draft, &mut world.facts), AcceptOutcome::New(_)));
        let lease = Duration::from_secs(9);
        for claim in world.model.take(world.now, 9, lease, 0, &mut world.facts).claims {
            let facts = &mut world.facts;
            world.model.settle(world.now, ClaimReport::new(claim.seq, claim.fence, Verdict::Done), 0, facts);
        }
    }
    let kept: Vec<_> = world.model.limits(world.now).map(|limit| limit.name).collect();
    assert!(kept.len() <= OPENED_KEPT + 5, "{}", kept.len());
    for name in ["queued", "closed", "by hand"] {
        assert!(kept.contains(&named(name)), "{name}");
    }
    assert!(!kept.contains(&named("route 0")) && kept.contains(&named(&format!("route {OPENED_KEPT}"))));
}

/// OPS-9: limits that left the configuration are removed, except those still charged, closed, or
/// set by an operator. An opened one was never in it.
#[test]
fn ops_9_what_left_the_configuration_goes() {
    let mut world = ModelHarness::new();
    for name in ["kept", "gone", "charged", "closed", "set"] {
        world.limit(name, drip(7, 1));
    }
    world.accept(opening("opened", UNKNOWN));
    world.accept(charged("g", &[("charged", 7)]));
    world.accept(charged("h", &[("closed", 1)]));
    let claims = world.take(9);
    let closed = claims.iter().find(|claim| &*claim.group == "h").unwrap();
    let fault = Fault::new(FaultClass::RateLimited, "x");
    let scope = Some(named("closed"));
    let after = Some(Duration::from_secs(60));
    world.settle(closed, Verdict::Throttled { after, scope, fault });
    world.model.set_limit(world.now, &named("set"), drip(9, 1), &mut world.facts).unwrap();
    world.model.retain_configured(world.now, &[(named("kept"), drip(7, 1))], &mut world.facts);
    let mut left: Vec<_> = world.model.limits(world.now).map(|limit| limit.name.to_string()).collect();
    left.sort();
    assert_eq!(left, ["charged", "closed", "kept", "opened", "set"]);
    world.limit("gone", drip(3, 1));
    assert_eq!(world.model.limit("gone", world.now).unwrap().shape, drip(3, 1), "it may come back");
}

/// OPS-9, LIM-12: an operator opens, changes and resets a limit that no one configured, assumed or
/// learned, also while operations wait for it.
#[test]
fn ops_9_an_operator_changes_an_opened_limit() {
    let mut world = ModelHarness::new();
    let assumed = LimitShape::Window { limit: 2 * MICRO, period: Duration::from_secs(600) };
    for group in ["a", "b", "c", "d"] {
        world.accept(Draft { group: group.into(), ..opening("renames", assumed) });
    }
    assert_eq!(world.take(9).len(), 2);
    assert!(world.take(9).is_empty(), "the rest waits for ten minutes");
    world.model.thaw(world.now, &named("renames"), &mut world.facts).unwrap();
    assert_eq!(world.take(9).len(), 2, "it was opened");
    let wide = LimitShape::Window { limit: 50 * MICRO, period: Duration::from_secs(1) };
    world.model.set_limit(world.now, &named("renames"), wide, &mut world.facts).unwrap();
    assert_eq!(world.model.limit("renames", world.now).unwrap().shape, wide);
    world.model.reset_limit(world.now, &named("renames"), &mut world.facts).unwrap();
    let seen = world.model.limit("renames", world.now).unwrap();
    assert_eq!((seen.shape, seen.source), (UNKNOWN, LimitSource::Learned));
    world.accept(Draft { group: "e".into(), ..opening("renames", assumed) });
    assert_eq!(world.model.limit("renames", world.now).unwrap().shape, assumed, "assumed again");
    assert_eq!(world.replayed().limit("renames", world.now).unwrap().shape, assumed);
}

/// LIM-12: a refused call closes every limit of which it says that nothing is left, not only the
/// one that it names.
#[test]
fn lim_12_a_refusal_closes_all_that_it_names() {
    let mut world = ModelHarness::new();
    let both = |group: &str| Draft {
        opens: vec![("route".into(), UNKNOWN), ("bucket".into(), UNKNOWN)],
        ..charged(group, &[("route", 1), ("bucket", 1)])
    };
    world.accept(both("a"));
    let claim = world.take(9).pop().unwrap();
    let until = world.now.after(Duration::from_secs(9));
    let spent = |limit: &str| Hint {
        limit: limit.into(),
        remaining: Some(0),
        capacity: Some(5 * MICRO),
        reset_at: Some(until),
        spent: Some(0),
        ..Hint::default()
    };
    let fault = Fault::new(FaultClass::RateLimited, "x");
    let after = Some(Duration::from_secs(9));
    let verdict = Verdict::Throttled { after, scope: Some(named("route")), fault };
    let hints = [spent("route"), spent("bucket")];
    world.model.settle(
        world.now,
        ClaimReport::new(claim.seq, claim.fence, verdict).with_hints(&hints),
        0,
        &mut world.facts,
    );
    for limit in ["route", "bucket"] {
        let seen = world.model.limit(limit, world.now).unwrap();
        assert_eq!(seen.frozen_until, Some(until), "{limit}");
    }
}
