//! Bounds on everything.

use super::super::*;
use super::world::*;
use HydrationMode::Full;

/// HYD-26: flights, waiters, deferred work and questions have bounds of their own.
#[test]
fn hyd_26_everything_is_bounded() {
    let small = FlightRules {
        flights_max: 3,
        waiters_max: 4,
        flight_waiters_max: 2,
        deferred_max: 3,
        deferred_of_entity_max: 2,
        questions_per_s: 4,
        ..FlightRules::default()
    };
    let mut world = World::with(small);
    let mut tickets: Vec<_> = (0..2).map(|who| world.ask("a", who, &Full).1.unwrap()).collect();
    assert_eq!(world.ask("a", 2, &Full).0, Reply::Refused(FlightBound::WaitersOfEntity));
    assert!(world.table.cancel(&tickets.remove(0)).is_some());
    assert_eq!(world.ask("a", 2, &Full).0, Reply::Joined, "a slot that was freed can be taken");
    world.ask("b", 3, &Full);
    world.ask("c", 4, &Full);
    assert_eq!(world.ask("d", 5, &Full).0, Reply::Refused(FlightBound::Waiters));
    assert_eq!(world.defer("d", 6), Reply::Refused(FlightBound::Flights));
    assert_eq!([world.defer("a", 7), world.defer("a", 8)], [Reply::Joined; 2]);
    assert_eq!(world.defer("a", 9), Reply::Refused(FlightBound::DeferredOfEntity));
    assert_eq!(world.defer("b", 10), Reply::Joined);
    assert_eq!(world.defer("c", 11), Reply::Refused(FlightBound::Deferred));
    for id in ["a", "b", "c"] {
        world.updated(id, &Full);
    }
    assert_eq!(world.ask("e", 12, &Full).0, Reply::Opened);
    assert_eq!(world.ask("f", 13, &Full).0, Reply::Refused(FlightBound::QuestionRate));
}

/// HYD-26: a scan of unknown ids leaves no more behind than the bounds, whether the source answers
/// or is silent.
#[test]
fn hyd_26_a_scan_leaves_memory_flat() {
    let rules = FlightRules {
        negatives_max: 100,
        flights_max: 200,
        questions_per_s: 1_000,
        ..FlightRules::default()
    };
    let mut world = World::with(rules);
    for n in 0..20_000_u32 {
        let id = n.to_string();
        if let (Reply::Opened, Some(ticket)) = world.ask(&id, n, &Full) {
            world.table.cancel(&ticket);
            if n % 2 == 0 {
                world.not_found(&id);
            }
        }
        assert!(world.table.negatives() <= 100 && world.table.flights() <= 200);
        if n % 10 == 0 {
            world.advance(1);
        }
    }
    let seconds = 2;
    assert!(world.published.len() <= 2 * (1_000 * (seconds + 1)), "{}", world.published.len());
    world.advance(6_000);
    assert_eq!((world.table.flights(), world.table.waiters()), (0, (0, 0)));
}
