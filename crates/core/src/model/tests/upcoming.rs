//! The prediction of which operations run soon.

use super::*;

fn upcoming(world: &ModelHarness, most: usize) -> Vec<u64> {
    world.model.upcoming(most, true).iter().map(|seq| seq.0).collect()
}

/// With every call completed in the order it was sent, operations are taken in the predicted order.
#[test]
fn what_comes_next_is_foreseen() {
    let mut world = ModelHarness::new();
    for group in ["a", "a", "a", "b", "b", "c", "a"] {
        world.accept(draft(group));
    }
    let foreseen = upcoming(&world, 100);
    assert_eq!(upcoming(&world, 4), foreseen[..4]);
    assert!(upcoming(&world, 0).is_empty());
    let mut taken = Vec::new();
    while let Some(claim) = world.take(1).pop() {
        taken.push(claim.seq.0);
        world.done(&claim);
        assert_eq!(upcoming(&world, 100), foreseen[taken.len()..]);
    }
    assert_eq!(taken, foreseen);
}

/// Operations in flight are not included; those behind them are, after the ready ones.
#[test]
fn what_comes_behind_calls_under_way_is_next_after_the_ready() {
    let mut world = ModelHarness::new();
    for group in ["a", "a", "b", "b", "c"] {
        world.accept(draft(group));
    }
    assert_eq!(world.take_seqs(2), [1, 3]);
    assert_eq!(upcoming(&world, 100), [5, 2, 4]);
    let waiting = |seq| world.model.is_waiting(Seq(seq));
    assert!([2, 4, 5].into_iter().all(waiting) && ![1, 3, 6].into_iter().any(waiting));
    assert_eq!((world.model.active_count(), world.model.last_seq()), (5, Seq(5)));
}

/// Groups that wait for a slot are next when one is released; what must not start yet is not
/// included.
#[test]
fn those_who_wait_for_a_place_are_foreseen() {
    let mut world = ModelHarness::new();
    world.limit("api", LimitShape::Cap { at_once: 1 });
    let charged = |group: &str| Draft { charges: vec![Charge::tokens("api", 1)], ..draft(group) };
    for group in ["a", "b", "a", "c"] {
        world.accept(charged(group));
    }
    let later = world.now.after(Duration::from_secs(60));
    world.accept(Draft { not_before: Some(later), ..charged("c") });
    world.accept(Draft { not_before: Some(later), ..draft("d") });
    assert_eq!(world.take_seqs(10), [1]);
    assert_eq!(upcoming(&world, 100), [2, 4, 3]);
}
