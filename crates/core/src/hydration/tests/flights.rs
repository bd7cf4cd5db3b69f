//! The course of a flight: questions, windows, upgrades, gaps, and those who leave.

use super::super::*;
use super::world::*;
use crate::time::Time;
use HydrationMode::{Existence, Full};

/// HYD-19, HYD-10: a thousand callers, one question.
#[test]
fn hyd_19_many_callers_are_one_question() {
    let mut world = World::new();
    assert_eq!(world.ask("7", 0, &Full).0, Reply::Opened);
    assert!((1..1_000).all(|who| world.ask("7", who, &Full).0 == Reply::Joined));
    assert_eq!(world.published.len(), 1);
    assert_eq!(world.updated("7", &Full), (0..1_000).collect::<Vec<_>>(), "in the order they came");
    assert_eq!((world.table.flights(), world.table.waiters(), world.table.next_timer()), (0, (0, 0), None));
}

/// HYD-9: the documented defaults.
#[test]
fn hyd_9_the_documented_figures() {
    let rules = FlightRules::default();
    let millis = [rules.wait_timeout, rules.negative_ttl, rules.in_flight_window, rules.retry_backoff]
        .map(|time| time.as_millis());
    assert_eq!((millis, rules.max_retries), ([500, 300_000, 5_000, 200], 1));
}

/// HYD-25: questions at 0 and 200 ms, then none until the window ends.
#[test]
fn hyd_25_the_second_question_leaves_after_the_backoff() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    world.advance(199);
    assert_eq!(world.published.len(), 1);
    world.advance(1);
    assert_eq!(world.published.len(), 2);
    assert_ne!(world.published[0].correlation_id, world.published[1].correlation_id);
    assert!(world.published.iter().all(|question| question.correlation_id.as_str().starts_with("c0.")));
    assert_eq!(world.advance(4_799), [], "callers give up by themselves");
    assert_eq!((world.published.len(), world.table.flights()), (2, 1));
    world.advance(1);
    assert_eq!((world.published.len(), world.table.flights()), (2, 0));
}

#[test]
fn without_retries_there_is_one_question() {
    let mut world = World::with(FlightRules { max_retries: 0, ..FlightRules::default() });
    world.ask("7", 0, &Full);
    world.advance(10_000);
    assert_eq!(world.published.len(), 1);
}

/// HYD-22: after the last question was given its time, newcomers fail at once and ask nothing;
/// after the window they ask again.
#[test]
fn hyd_22_a_time_out_is_remembered_for_the_rest_of_the_window() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    world.advance(699);
    assert_eq!(world.ask("7", 1, &Full).0, Reply::Joined);
    world.advance(1);
    assert_eq!(world.ask("7", 2, &Full).0, Reply::Failed(FlightFailure::TimedOut));
    assert_eq!(world.table.negatives(), 0, "a time-out is not \"not found\"");
    world.advance(4_299);
    assert_eq!(world.ask("7", 3, &Full).0, Reply::Failed(FlightFailure::TimedOut));
    assert_eq!(world.published.len(), 2);
    world.advance(1);
    assert_eq!(world.ask("7", 4, &Full).0, Reply::Opened);
    assert_eq!(world.published.len(), 3);
}

/// HYD-22: a late answer still lands, and ends the memory of the failure.
#[test]
fn hyd_22_a_late_answer_reaches_who_still_waits() {
    let mut world = World::new();
    let (_, first) = world.ask("7", 0, &Full);
    world.advance(500);
    world.table.cancel(&first.unwrap());
    assert_eq!(world.ask("7", 1, &Full).0, Reply::Joined);
    world.advance(400);
    assert_eq!(world.updated("7", &Full), [1]);
    assert_eq!(world.table.flights(), 0);
}

/// HYD-25: whoever leaves, the flight continues and asks no more than it would have.
#[test]
fn hyd_25_a_flight_outlives_its_callers() {
    let mut world = World::new();
    let (_, leader) = world.ask("7", 0, &Full);
    world.ask("7", 1, &Full);
    let gone = world.table.cancel(&leader.clone().unwrap()).unwrap();
    assert_eq!((gone.handle, world.table.cancel(&leader.unwrap())), (0, None));
    assert_eq!(world.updated("7", &Full), [1]);
    assert_eq!(world.published.len(), 1);
    let (_, alone) = world.ask("8", 2, &Full);
    world.table.cancel(&alone.unwrap());
    assert_eq!(world.ask("8", 3, &Full).0, Reply::Joined);
    assert_eq!(world.table.waiters(), (1, 0));
}

/// HYD-25: a newcomer that wants more upgrades the flight; those who want as much join it. The
/// second upgrade asks for everything, so there are two at most.
#[test]
fn hyd_25_a_higher_level_upgrades_once() {
    let mut world = World::new();
    world.ask("7", 0, &Existence);
    assert_eq!(world.ask("7", 1, &fields(&["name"])).0, Reply::Upgraded);
    assert_eq!(world.ask("7", 2, &fields(&["name"])).0, Reply::Joined);
    assert_eq!(world.ask("7", 3, &fields(&["city"])).0, Reply::Upgraded);
    assert_eq!(world.last().mode, Full);
    assert!(
        [&Full, &fields(&["zip"]), &Existence].iter().all(|mode| world.ask("7", 9, mode).0 == Reply::Joined)
    );
    assert_eq!(world.published.len(), 3);
    world.advance(200);
    assert_eq!((world.published.len(), world.last().mode), (4, Full), "the retry asks for what is wanted");
}

/// HYD-1, HYD-6: an answer wakes whom it satisfies; the others wait on.
#[test]
fn hyd_1_an_answer_wakes_whom_it_satisfies() {
    let mut world = World::new();
    world.ask("7", 0, &Existence);
    world.ask("7", 1, &Full);
    assert_eq!(world.updated("7", &Existence), [0]);
    assert_eq!(world.ask("7", 2, &Existence).0, Reply::LookAgain, "it is stored by now");
    assert_eq!(world.updated("7", &Full), [1]);
    assert_eq!((world.table.flights(), world.published.len()), (0, 2));
    world.ask("8", 3, &Full);
    world.ask("8", 4, &Existence);
    assert_eq!(world.updated("8", &Full), [3, 4]);
}

/// A caller that looked again in vain waits, instead of being sent to look for ever.
#[test]
fn no_one_is_told_to_look_again_twice() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    world.updated("7", &Existence);
    let waiter = world.waiter(1, &Existence, WaiterKind::Blocking);
    let request = AskRequest { waiter, has_looked_again: true };
    assert!(matches!(world.table.ask(&key("7"), request, world.now), AskOutcome::Joined(_)));
}

/// HYD-4: the first asker looks at the copy again; what it finds wakes all whom it satisfies, and
/// then nothing is published.
#[test]
fn hyd_4_a_second_look_answers_without_a_question() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    world.ask("7", 1, &Existence);
    let question = world.last();
    let (woken, publish) = world.table.found(&question, &Existence, world.now);
    assert_eq!((handles(&woken), publish), (vec![1], true));
    let (woken, publish) = world.table.found(&question, &Full, world.now);
    assert_eq!((handles(&woken), publish), (vec![0], false));
    assert_eq!((world.table.flights(), world.table.next_timer()), (0, None));
    assert_eq!(world.table.found(&question, &Full, world.now), (vec![], false), "that flight is over");
}

/// HYD-23: no source, or no bus: those who wait fail at once, and so do newcomers.
#[test]
fn hyd_23_an_absent_source_fails_at_once() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    let question = world.last();
    assert_eq!(handles(&world.table.published(&question, PublishOutcome::NoSubscriber)), [0]);
    assert_eq!(world.ask("7", 1, &Full).0, Reply::Failed(FlightFailure::SourceAbsent));
    world.advance(4_999);
    assert_eq!(world.published.len(), 1, "no retry for no one");
    world.advance(1);
    assert_eq!(world.ask("7", 2, &Full).0, Reply::Opened);
}

#[test]
fn a_question_that_did_not_leave_is_asked_again_before_it_fails() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    let first = world.last();
    assert_eq!(world.table.published(&first, PublishOutcome::Failed), []);
    world.advance(200);
    let second = world.last();
    assert_eq!(
        world.table.published(&first, PublishOutcome::Failed),
        [],
        "an old one's fate does not matter"
    );
    assert_eq!(handles(&world.table.published(&second, PublishOutcome::Failed)), [0]);
    assert_eq!(world.ask("7", 1, &Full).0, Reply::Failed(FlightFailure::BusFailed));
}

/// HYD-24: after a gap every open flight asks again and its window begins anew; what no one
/// waits for and no one answered is forgotten.
#[test]
fn hyd_24_after_a_gap_open_questions_are_asked_again() {
    let mut world = World::new();
    world.ask("silent", 0, &Full);
    world.advance(3_000);
    let (_, other) = world.ask("other", 1, &Full);
    world.table.cancel(&other.unwrap());
    let waiter = Waiter { until: Time::MAX, ..world.waiter(2, &Full, WaiterKind::Blocking) };
    world.ask_as(&key("open"), waiter);
    world.advance(1_000);
    world.ask("silent", 3, &Full);
    let before = world.published.len();
    world.table.gap(world.now);
    world.advance(0);
    let asked: Vec<_> =
        world.published[before..].iter().map(|question| question.key.id().to_owned()).collect();
    assert_eq!(asked, ["open", "silent"]);
    world.table.gap(world.now);
    world.advance(199);
    assert_eq!(world.published.len(), before + 2, "gaps in a row do not make a storm");
}

/// HYD-7: deferred work is asked for in one window after the other, until its own deadline.
#[test]
fn hyd_7_deferred_work_is_asked_for_until_its_deadline() {
    let mut world = World::new();
    assert_eq!(world.defer("7", 0), Reply::Opened);
    let question = world.last();
    assert_eq!(world.table.published(&question, PublishOutcome::NoSubscriber), [], "it waits");
    world.advance(10_000);
    assert_eq!(world.published.len(), 4, "one, then two in each window, of which the last has just begun");
    assert_eq!(world.ask("7", 1, &Full).0, Reply::Joined, "a new round is an open question");
    assert_eq!(world.advance(50_000), [0, 1], "and whoever gave up without saying so");
    assert_eq!((world.table.flights(), world.table.waiters()), (0, (0, 0)));
}

/// HYD-7: deferred work joins a flight that failed, and is resumed by a late answer.
#[test]
fn hyd_7_deferred_work_waits_for_a_late_answer() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    world.advance(1_000);
    assert_eq!(world.defer("7", 1), Reply::Joined);
    assert_eq!(world.defer("7", 2), Reply::Joined);
    assert_eq!(world.updated("7", &Full), [0, 1, 2]);
    assert_eq!(world.updated("7", &Full), [], "once");
}

/// A caller that waits longer than a window is asked for again.
#[test]
fn a_long_wait_outlives_the_window() {
    let mut world = World::new();
    let patient = Waiter {
        until: world.now.after(std::time::Duration::from_secs(7)),
        ..world.waiter(0, &Full, WaiterKind::Blocking)
    };
    world.ask_as(&key("7"), patient);
    world.advance(5_000);
    assert_eq!(world.published.len(), 3);
    assert_eq!(world.updated("7", &Full), [0]);
}

/// A late timer changes nothing: the first to ask after the window begins the next one.
#[test]
fn a_window_ends_though_its_timer_is_late() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    world.now = world.now.after(std::time::Duration::from_secs(6));
    assert_eq!(world.ask("7", 1, &Full).0, Reply::Opened);
}

/// HYD-25: an invalidated entity that someone waits for is asked again; what is remembered is
/// forgotten.
#[test]
fn an_invalidated_entity_is_asked_again() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    world.not_found("7");
    world.table.invalidate(&key("7"), world.now);
    assert_eq!(world.ask("7", 1, &Full).0, Reply::Opened);
    world.advance(300);
    world.table.invalidate(&key("7"), world.now);
    world.advance(100);
    assert_eq!(world.published.len(), 4);
    world.advance(1_000);
    let views = world.table.views(None, 10, world.now);
    assert_eq!(
        (views.len(), views[0].waiters.len(), views[0].failure),
        (1, 1, Some(FlightFailure::TimedOut))
    );
}

/// All who wait are returned when the table closes, and no one is let in.
#[test]
fn closing_returns_all_waiters() {
    let mut world = World::new();
    world.ask("7", 0, &Full);
    world.ask("8", 1, &Full);
    world.defer("8", 2);
    assert_eq!(handles(&world.table.close()), [0, 1, 2]);
    assert_eq!(world.ask("9", 3, &Full).0, Reply::Refused(FlightBound::Closed));
    assert_eq!((world.table.flights(), world.table.waiters(), world.table.next_timer()), (0, (0, 0), None));
}

/// HYD-3: a caller that wants a recent copy is not satisfied by an old one.
#[test]
fn hyd_3_an_old_copy_satisfies_no_one_who_wants_a_recent_one() {
    let mut world = World::new();
    let waiter = Waiter { since: Some(world.now), ..world.waiter(0, &Full, WaiterKind::Blocking) };
    world.ask_as(&key("7"), waiter);
    let (question, old) = (world.last(), world.now.before(std::time::Duration::from_millis(1)));
    assert_eq!(world.table.found(&question, &Full, old), (vec![], true));
    assert_eq!(world.table.updated(&key("7"), &Full, old, world.now), []);
    assert_eq!(world.updated("7", &Full), [0]);
}

/// HYD-24: deferred work that joined a failed flight and wants more is asked for after a gap.
#[test]
fn hyd_24_after_a_gap_all_that_is_waited_for_is_asked() {
    let mut world = World::new();
    world.ask("7", 0, &Existence);
    world.advance(1_000);
    assert_eq!(world.defer("7", 1), Reply::Joined);
    world.table.gap(world.now);
    world.tick();
    assert_eq!((world.published.len(), world.last().mode), (3, Full));
}
