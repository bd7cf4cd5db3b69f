//! The course of a hydration, as the protocol demands it.

use std::time::Duration;

use tidegate_hydration::{EntityStamp, GetOptions, Hydration, HydrationError};
use tokio::time::{Instant, advance};

use super::world::*;

/// HYD-16, HYD-5: unknown, then updated: the caller has the entity, and the next one its copy.
#[tokio::test(start_paused = true)]
async fn hyd_16_unknown_then_updated() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    assert_eq!((question.key.clone(), question.requester_module.as_str()), (key("c-7"), "orders"));
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(name(&caller.await.unwrap()), "Ada");
    assert_eq!(name(&world.get("c-7").await), "Ada");
    assert_eq!(world.published(), 1);
}

/// HYD-17, HYD-5: unknown, then not found: remembered, and not asked again.
#[tokio::test(start_paused = true)]
async fn hyd_17_unknown_then_not_found_then_remembered() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-8", GetOptions::full()).await;
    let question = world.question().await;
    world.deny(&question, EntityStamp::default()).await;
    assert_eq!(name(&caller.await.unwrap()), "not found");
    advance(Duration::from_secs(230)).await;
    let before = Instant::now();
    assert_eq!(name(&world.get("c-8").await), "not found");
    assert_eq!((world.published(), before.elapsed()), (1, Duration::ZERO));
}

/// HYD-18, HYD-22: unknown, no answer: a temporary error after 500 ms and two questions, and "not
/// found" is not what is remembered.
#[tokio::test(start_paused = true)]
async fn hyd_18_unknown_then_time_out_then_fail_fast() {
    let world = World::new().await;
    let before = Instant::now();
    let outcome = world.get("c-9").await;
    assert!(matches!(&outcome, Err(error @ HydrationError::Unavailable(_)) if error.is_temporary()));
    assert_eq!((name(&outcome), before.elapsed().as_millis()), (TIMED_OUT.to_owned(), 500));
    assert_eq!(world.published(), 2);
    advance(Duration::from_millis(1_500)).await;
    let later = Instant::now();
    assert_eq!((name(&world.get("c-9").await), later.elapsed()), (TIMED_OUT.to_owned(), Duration::ZERO));
    assert_eq!(world.published(), 2, "newcomers in the window ask nothing");
    advance(Duration::from_secs(3)).await;
    assert_eq!(name(&world.get("c-9").await), TIMED_OUT);
    assert_eq!(world.published(), 4, "a new window, a new flight");
}

/// HYD-19, HYD-6: a thousand callers at once, one question, a thousand answers, though only one
/// correlation id was ever published.
#[tokio::test(start_paused = true)]
async fn hyd_19_a_thousand_callers_are_one_question() {
    let mut world = World::new().await;
    let mut callers = Vec::new();
    for _ in 0..1_000 {
        let (hydrator, key) = (world.hydrator.clone(), key("c-7"));
        callers.push(tokio::spawn(async move { hydrator.get(&key, &GetOptions::full()).await }));
    }
    settle().await;
    let flights = world.hydrator.flights(None, 10);
    assert_eq!((flights.len(), flights[0].waiting), (1, 1_000));
    let question = world.question().await;
    world.answer(&question, "Ada", version(1)).await;
    for caller in callers {
        assert_eq!(name(&caller.await.unwrap()), "Ada");
    }
    assert_eq!((world.published(), world.hydrator.flights(None, 10)), (1, vec![]));
}

/// HYD-20: after the negative time it is asked again.
#[tokio::test(start_paused = true)]
async fn hyd_20_after_the_negative_ttl_it_is_asked_again() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-8", GetOptions::full()).await;
    let question = world.question().await;
    world.deny(&question, EntityStamp::default()).await;
    assert_eq!(name(&caller.await.unwrap()), "not found");
    advance(Duration::from_millis(300_001)).await;
    let caller = world.spawn_get("c-8", GetOptions::full()).await;
    let question = world.question().await;
    world.answer(&question, "Eve", version(2)).await;
    assert_eq!((name(&caller.await.unwrap()), world.published()), ("Eve".to_owned(), 2));
}

/// HYD-3, HYD-4: with a usable copy, or for an entity of the module's own, nothing is published.
#[tokio::test(start_paused = true)]
async fn hyd_3_nothing_is_published_without_need() {
    let world = World::new().await;
    world.announce("c-7", "Ada", version(1)).await;
    assert_eq!(name(&world.get("c-7").await), "Ada");
    let own = tidegate_hydration::EntityKey::new("acme", "order", "o-1").unwrap();
    let refused = world.hydrator.get(&own, &GetOptions::full()).await;
    assert!(matches!(refused, Err(HydrationError::Owned(kind)) if kind == "order"));
    assert_eq!(world.published(), 0);
}

/// HYD-3: a copy that is too old for its reader is asked for again.
#[tokio::test(start_paused = true)]
async fn hyd_3_an_old_copy_is_not_usable() {
    let mut world = World::new().await;
    world.announce("c-7", "Ada", version(1)).await;
    advance(Duration::from_secs(60)).await;
    let recent = GetOptions { max_age: Some(Duration::from_secs(30)), ..GetOptions::full() };
    assert_eq!(name(&world.get("c-7").await), "Ada");
    let caller = world.spawn_get("c-7", recent.clone()).await;
    let question = world.question().await;
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(name(&caller.await.unwrap()), "Ada", "confirmed by its owner");
    assert_eq!(name(&world.hydrator.get(&key("c-7"), &recent).await), "Ada");
    assert_eq!(world.published(), 1);
}

/// HYD-11: an update that no one asked for clears "not found".
#[tokio::test(start_paused = true)]
async fn hyd_11_an_unasked_update_clears_the_negative_cache() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-8", GetOptions::full()).await;
    let question = world.question().await;
    world.deny(&question, EntityStamp::default()).await;
    assert_eq!(name(&caller.await.unwrap()), "not found");
    world.announce("c-8", "Eve", EntityStamp::default()).await;
    assert_eq!((name(&world.get("c-8").await), world.published()), ("Eve".to_owned(), 1));
}

/// HYD-6: a change that no one asked about wakes those who wait.
#[tokio::test(start_paused = true)]
async fn hyd_6_a_plain_change_wakes_who_waits() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    world.question().await;
    world.announce("c-7", "Ada", version(1)).await;
    assert_eq!(name(&caller.await.unwrap()), "Ada");
    assert!(matches!(world.get("c-7").await, Ok(Hydration::Found(_))));
}

/// HYD-1, HYD-25: an answer wakes whom it satisfies; a newcomer that wants more upgrades the flight
/// once.
#[tokio::test(start_paused = true)]
async fn hyd_1_an_answer_of_a_lower_level_satisfies_no_higher_one() {
    use tidegate_hydration::HydrationMode::Existence;
    let mut world = World::new().await;
    let exists = world.spawn_get("c-7", GetOptions::of(Existence)).await;
    let first = world.question().await;
    let full = world.spawn_get("c-7", GetOptions::full()).await;
    let second = world.question().await;
    assert_eq!((first.mode.name(), second.mode.name()), ("existence", "full"));
    let partial = world.spawn_get("c-7", GetOptions::of(fields(&["name"]))).await;
    world.answer(&first, "Ada", version(1)).await;
    assert!(matches!(exists.await.unwrap(), Ok(Hydration::Found(_))));
    assert!(!full.is_finished() && !partial.is_finished());
    world.answer(&second, "Ada", version(1)).await;
    assert_eq!((name(&full.await.unwrap()), name(&partial.await.unwrap())), ("Ada".into(), "Ada".into()));
    assert_eq!(world.published(), 2);
    let again = world.hydrator.get(&key("c-7"), &GetOptions::of(fields(&["city"]))).await.unwrap();
    let Hydration::Found(entity) = again else { panic!("{again:?}") };
    assert_eq!(entity.data(), object(serde_json::json!({ "city": "London" })), "the fields that were wanted");
}
