//! Buses that lose messages, fail, or carry what is not for consumers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_hydration::{EntityEvent, EntityStamp, GetOptions};
use tokio::time::{Instant, advance};

use super::world::*;

/// HYD-24: after a gap every open question is asked once more, and only open ones.
#[tokio::test(start_paused = true)]
async fn hyd_24_open_questions_are_asked_again_after_a_gap() {
    let mut world = World::new().await;
    let callers = [
        world.spawn_get("c-1", GetOptions::full().wait(Duration::from_secs(3))).await,
        world.spawn_get("c-2", GetOptions::full().wait(Duration::from_secs(3))).await,
    ];
    for _ in 0..4 {
        world.question().await;
    }
    assert_eq!(name(&world.get("c-3").await), TIMED_OUT);
    advance(Duration::from_secs(1)).await;
    let before = world.published();
    world.bus.gap();
    settle().await;
    for _ in 0..2 {
        world.question().await;
    }
    let (first, second) = (world.question().await, world.question().await);
    assert_eq!((first.key, second.key.clone()), (key("c-1"), key("c-2")));
    assert_eq!(world.published() - before, 2);
    world.bus.gap();
    world.bus.gap();
    settle().await;
    assert_eq!(world.published() - before, 2, "gaps in a row are no storm");
    world.announce("c-1", "Ada", version(1)).await;
    world.answer(&second, "Bob", version(1)).await;
    let [ada, bob] = callers;
    assert_eq!((name(&ada.await.unwrap()), name(&bob.await.unwrap())), ("Ada".to_owned(), "Bob".to_owned()));
    let before = world.published();
    let _retried = world.spawn_get("c-3", GetOptions::full()).await;
    assert_eq!(world.published() - before, 1, "what failed before the gap is asked anew");
}

/// HYD-24: a question lost on the way is asked again by its flight, and answered.
#[tokio::test(start_paused = true)]
async fn hyd_24_a_lost_question_is_retried() {
    let mut world = World::new().await;
    world.bus.is_losing.store(true, Ordering::SeqCst);
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    world.bus.is_losing.store(false, Ordering::SeqCst);
    let question = world.question().await;
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!((name(&caller.await.unwrap()), world.published()), ("Ada".to_owned(), 2));
}

/// HYD-23: a bus that fails twice is a failure at once, not after the wait.
#[tokio::test(start_paused = true)]
async fn hyd_23_a_bus_that_fails_is_noticed() {
    let world = World::new().await;
    world.bus.is_failing.store(true, Ordering::SeqCst);
    let before = Instant::now();
    assert_eq!(name(&world.get("c-7").await), "the entity is not available: the bus failed");
    assert_eq!((before.elapsed().as_millis(), world.published()), (200, 2));
}

/// HYD-6: questions, its own or another's, are not for consumers, even where answers are published.
#[tokio::test(start_paused = true)]
async fn hyd_6_a_consumer_ignores_questions() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    let echo = EntityEvent::Unknown(question.clone()).encode();
    world.publish_bytes(&["tidegate", "entities", "answers", "acme", "customer"], echo).await;
    assert!(!caller.is_finished());
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!((name(&caller.await.unwrap()), world.published()), ("Ada".to_owned(), 1));
}

/// HYD-2: what cannot be read is dropped, and what follows is handled.
#[tokio::test(start_paused = true)]
async fn hyd_2_malformed_events_are_dropped() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    let subject = ["tidegate", "entities", "answers", "acme", "customer"];
    let good = String::from_utf8(
        EntityEvent::NotFound(absence_of(&question, EntityStamp::default())).encode().to_vec(),
    )
    .unwrap();
    let newer = good.replace("\"schema_version\":1", "\"schema_version\":2");
    for text in ["", "{}", "[1]", "\u{0}", newer.as_str(), &good.replace("not-found", "not-sure")] {
        world.publish_bytes(&subject, message(text)).await;
    }
    assert!(!caller.is_finished());
    world.publish_bytes(&subject, message(&good)).await;
    assert_eq!(name(&caller.await.unwrap()), "not found");
}
