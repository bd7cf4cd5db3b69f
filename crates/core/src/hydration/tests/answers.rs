//! Which answers count, and what they leave behind.

use std::time::Duration;

use super::super::*;
use super::world::*;
use crate::time::Time;
use HydrationMode::{Existence, Full};

fn other_id() -> CorrelationId {
    CorrelationId::new("someone-else").unwrap()
}

/// HYD-17, HYD-20: "not found" is remembered, and asked again after its time.
#[test]
fn hyd_17_hyd_20_not_found_is_remembered_for_its_time() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    world.ask("7", 1, &Existence);
    assert_eq!(world.not_found("7"), [0, 1]);
    world.advance(299_999);
    assert_eq!(world.ask("7", 2, &Full).0, Reply::NotFound);
    assert_eq!(world.published.len(), 1);
    world.advance(1);
    assert_eq!(world.ask("7", 3, &Full).0, Reply::Opened);
}

/// HYD-26: entries of one moment do not expire at one moment, and none later than configured.
#[test]
fn hyd_26_negative_times_are_spread() {
    const ENTRIES: u32 = 1_000;
    let mut world = World::new();
    for n in 0..ENTRIES {
        let chance = (u32::MAX / ENTRIES) * n;
        world.table.not_found(&key(&n.to_string()), absence(), world.now, chance);
    }
    let count_expired = |world: &World| {
        let is_expired = |n: &u32| world.table.negatives.get(&key(&n.to_string()), world.now).is_none();
        (0..ENTRIES).filter(is_expired).count()
    };
    world.advance(239_999);
    let mut expired = vec![count_expired(&world)];
    for _ in 0..12 {
        world.advance(5_000);
        expired.push(count_expired(&world));
    }
    world.advance(1);
    let at_once = expired.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
    assert!(at_once < 100, "{expired:?}");
    assert_eq!((expired[0], count_expired(&world)), (0, ENTRIES as usize));
}

/// HYD-6, HYD-21: a "not found" counts if it repeats the correlation id of a question of this
/// flight, or is newer than it.
#[test]
fn hyd_21_a_not_found_must_answer_this_question() {
    let mut world = World::new();
    assert_eq!(world.table.origin(&key("7"), Some(&other_id()), None), AnswerOrigin::Unasked);
    world.ask("7", 0, &Full);
    let (own, asked) = (world.last().correlation_id, world.now);
    fn origin(world: &World, id: Option<&CorrelationId>, as_of: Option<Time>) -> AnswerOrigin {
        world.table.origin(&key("7"), id, as_of)
    }
    assert_eq!(origin(&world, Some(&own), None), AnswerOrigin::Asked);
    assert_eq!(origin(&world, Some(&other_id()), None), AnswerOrigin::Outdated);
    assert_eq!(origin(&world, None, None), AnswerOrigin::Outdated);
    let before = asked.before(Duration::from_millis(1));
    assert_eq!(origin(&world, Some(&other_id()), Some(before)), AnswerOrigin::Outdated);
    assert_eq!(origin(&world, Some(&other_id()), Some(asked)), AnswerOrigin::Asked);
    world.advance(200);
    assert_eq!(origin(&world, Some(&own), None), AnswerOrigin::Asked, "any of its questions");
    assert_eq!(origin(&world, Some(&world.last().correlation_id), None), AnswerOrigin::Asked);
}

/// HYD-21: a "not found" that was under way when the entity came into being buries nothing, whether
/// the flight ended or still waits for more, and whatever flight has opened since.
#[test]
fn hyd_21_a_late_not_found_answers_an_older_question() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    let first = world.last().correlation_id;
    world.updated("7", &Existence);
    assert_eq!(world.table.origin(&key("7"), Some(&first), None), AnswerOrigin::Outdated);
    world.advance(200);
    let retry = world.last().correlation_id;
    assert_eq!(world.table.origin(&key("7"), Some(&retry), None), AnswerOrigin::Asked);
    world.advance(6_000);
    world.ask("7", 1, &Full);
    assert_eq!(world.table.origin(&key("7"), Some(&retry), None), AnswerOrigin::Outdated);
    world.updated("7", &Full);
    assert_eq!(world.table.origin(&key("7"), Some(&retry), None), AnswerOrigin::Unasked);
}

/// HYD-24: a question of before a gap buries nothing either.
#[test]
fn hyd_24_a_not_found_of_before_a_gap_does_not_count() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    let before = world.last().correlation_id;
    world.advance(600);
    world.table.gap(world.now);
    world.tick();
    assert_eq!(world.table.origin(&key("7"), Some(&before), None), AnswerOrigin::Outdated);
    assert_eq!(world.table.origin(&key("7"), Some(&world.last().correlation_id), None), AnswerOrigin::Asked);
}

/// HYD-11: an update that no one asked for clears the negative cache.
#[test]
fn hyd_11_an_update_clears_the_negative_entry() {
    let mut world = World::new();
    world.not_found("7");
    assert_eq!(world.ask("7", 0, &Full).0, Reply::NotFound);
    assert_eq!(world.updated("7", &Full), []);
    assert_eq!(world.ask("7", 1, &Full).0, Reply::Opened);
}

/// HYD-21: an update from before the entity was found missing is not stored.
#[test]
fn hyd_21_an_update_older_than_the_absence_is_refused() {
    let mut world = World::new();
    let at = |millis| EntityStamp { version: None, as_of: Some(Time::from_millis(millis)) };
    let absence = Absence { reason: AbsenceReason::DeletedOrNeverExisted, stamp: at(500) };
    world.table.not_found(&key("7"), absence, world.now, 0);
    assert!(!world.table.admits_update(&key("7"), &at(499), world.now));
    assert!(world.table.admits_update(&key("7"), &at(500), world.now));
    assert!(world.table.admits_update(&key("7"), &EntityStamp::default(), world.now));
    assert!(world.table.admits_update(&key("8"), &at(1), world.now));
}

/// HYD-24: after a gap a "not found" lives for one more window at most; a new one for its time.
#[test]
fn hyd_24_after_a_gap_absences_are_checked_soon() {
    let mut world = World::new();
    world.not_found("old");
    world.table.gap(world.now);
    world.advance(1);
    world.not_found("new");
    world.advance(4_998);
    assert_eq!(world.ask("old", 0, &Full).0, Reply::NotFound);
    world.advance(1);
    assert_eq!(world.ask("old", 0, &Full).0, Reply::Opened);
    assert_eq!(world.ask("new", 0, &Full).0, Reply::NotFound);
}

/// HYD-27: tenants neither wake nor bury each other's entities.
#[test]
fn hyd_27_tenants_are_apart() {
    let mut world = World::new();
    let other = EntityKey::new("globex", "customer", "7").unwrap();
    world.ask("7", 0, &Full);
    let waiter = world.waiter(1, &Full, WaiterKind::Blocking);
    assert_eq!(world.ask_as(&other, waiter).0, Reply::Opened);
    assert_eq!(world.not_found("7"), [0]);
    assert_eq!(handles(&world.table.updated(&other, &Full, world.now, world.now)), [1]);
    assert_eq!(world.ask("7", 2, &Full).0, Reply::NotFound);
    let waiter = world.waiter(3, &Full, WaiterKind::Blocking);
    assert_eq!(world.ask_as(&other, waiter).0, Reply::Opened);
}

/// What an answer brings is known by the question that it repeats.
#[test]
fn the_question_of_an_answer_says_what_was_asked() {
    let mut world = World::new();
    world.ask("7", 0, &Existence);
    let first = world.last().correlation_id;
    world.ask("7", 1, &Full);
    assert_eq!(world.table.asked_by(&key("7"), &first), Some(&Existence));
    assert_eq!(world.table.asked_by(&key("7"), &world.last().correlation_id), Some(&Full));
    assert_eq!(world.table.asked_by(&key("7"), &other_id()), None);
}
