//! The age of the queue.

use super::*;

/// What runs does not wait, what is delayed does not wait yet, and what is behind others does.
#[test]
fn the_oldest_that_waits_is_found() {
    let mut world = ModelHarness::new();
    let start = world.now;
    let at = |ms: u64| Some(start.after(Duration::from_millis(ms)));
    assert_eq!(world.model.oldest_waiting(world.now), None);
    let delayed = Draft { not_before: at(4_000), ..draft("delayed") };
    world.accept(delayed);
    world.wait_ms(1_000);
    world.accept(draft("a"));
    world.wait_ms(1_000);
    world.accept(draft("a"));
    assert_eq!(world.model.oldest_waiting(world.now), at(1_000), "the delay is not over");
    let claim = world.take(1).pop().unwrap();
    assert_eq!(world.model.oldest_waiting(world.now), at(2_000), "the first of its group runs");
    world.wait_ms(3_000);
    assert_eq!(world.model.oldest_waiting(world.now), at(2_000), "the delay ended later");
    world.settle(&claim, retry());
    assert_eq!(world.model.oldest_waiting(world.now), at(1_000), "it waits again, since it was accepted");
    world.wait_ms(60_000);
    while let Some(claim) = world.take(1).pop() {
        world.done(&claim);
    }
    assert_eq!(world.model.oldest_waiting(world.now), None);
}

/// An operation of unknown outcome waits for an operator, and those behind it wait.
#[test]
fn behind_an_unknown_outcome_the_queue_ages() {
    let mut world = ModelHarness::new();
    world.accept(draft("a"));
    let claim = world.take(1).pop().unwrap();
    world.settle(&claim, Verdict::Unknown(transient()));
    assert_eq!(world.model.oldest_waiting(world.now), None);
    world.wait_ms(500);
    let second = world.now;
    world.accept(draft("a"));
    world.wait_ms(500);
    assert_eq!(world.model.oldest_waiting(world.now), Some(second));
}
