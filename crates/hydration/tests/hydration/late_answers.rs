//! Answers that come late, twice, or to someone else.

use std::time::Duration;

use tidegate_hydration::{
    CorrelationId, EntityAbsence, EntityEvent, EntityStamp, EntityUpdate, GetOptions, HydrationMode,
};
use tokio::time::{advance, sleep};

use super::world::*;

/// HYD-21: a "not found" for someone else's older question does not count; one for its own does.
#[tokio::test(start_paused = true)]
async fn hyd_21_a_foreign_not_found_is_ignored() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    let foreign = Some(CorrelationId::new("someone-else").unwrap());
    let old = EntityStamp { version: None, as_of: Some(tidegate_core::Time::from_millis(1)) };
    let absence = EntityAbsence { correlation_id: foreign, ..absence_of(&question, old) };
    world.publish(&EntityEvent::NotFound(absence)).await;
    assert!(!caller.is_finished());
    world.deny(&question, EntityStamp::default()).await;
    assert_eq!(name(&caller.await.unwrap()), "not found");
}

/// HYD-21: asked, created elsewhere, then the late "not found": the entity stays.
#[tokio::test(start_paused = true)]
async fn hyd_21_a_late_not_found_buries_nothing() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    world.announce("c-7", "Ada", EntityStamp::default()).await;
    assert_eq!(name(&caller.await.unwrap()), "Ada");
    world.deny(&question, EntityStamp::default()).await;
    assert_eq!((name(&world.get("c-7").await), world.published()), ("Ada".to_owned(), 1));
}

/// HYD-21: older updates change nothing, and a tombstone is not revived by one.
#[tokio::test(start_paused = true)]
async fn hyd_21_versions_decide() {
    let mut world = World::new().await;
    world.announce("c-7", "five", version(5)).await;
    world.announce("c-7", "three", version(3)).await;
    assert_eq!(name(&world.get("c-7").await), "five");
    let gone = EntityAbsence {
        key: key("c-7"),
        correlation_id: None,
        source_module: "customers".to_owned(),
        reason: tidegate_hydration::AbsenceReason::DeletedOrNeverExisted,
        stamp: version(6),
    };
    world.publish(&EntityEvent::NotFound(gone)).await;
    world.announce("c-7", "five again", version(5)).await;
    assert_eq!(name(&world.get("c-7").await), "not found");
    advance(Duration::from_secs(301)).await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    world.answer(&question, "six at last", version(6)).await;
    assert!(!caller.is_finished(), "a tombstone is not revived");
    world.answer(&question, "seven", version(7)).await;
    assert_eq!(name(&caller.await.unwrap()), "seven");
}

/// HYD-22: an answer that comes after its asker gave up reaches whoever joined since.
#[tokio::test(start_paused = true)]
async fn hyd_22_a_late_answer_lands() {
    let mut world = World::new().await;
    let first = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    sleep(Duration::from_millis(450)).await;
    let second = world.spawn_get("c-7", GetOptions::full()).await;
    sleep(Duration::from_millis(450)).await;
    assert_eq!(name(&first.await.unwrap()), TIMED_OUT);
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(name(&second.await.unwrap()), "Ada");
    assert_eq!((name(&world.get("c-7").await), world.published()), ("Ada".to_owned(), 2));
}

/// HYD-6: the second of two equal answers changes nothing.
#[tokio::test(start_paused = true)]
async fn hyd_6_a_second_answer_is_ignored() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    world.answer(&question, "Ada", version(1)).await;
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(name(&caller.await.unwrap()), "Ada");
    assert_eq!((name(&world.get("c-7").await), world.published()), ("Ada".to_owned(), 1));
}

/// HYD-10: the answer to another process's smaller question does not pass for everything.
#[tokio::test(start_paused = true)]
async fn hyd_10_what_an_answer_brings_is_what_was_asked() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    let correlation_id = Some(CorrelationId::new("someone-else").unwrap());
    let foreign = EntityUpdate { correlation_id, ..update_of(&key("c-7"), "Ada", version(1)) };
    let stated = EntityUpdate { mode: Some(HydrationMode::Existence), ..foreign.clone() };
    world.publish(&EntityEvent::Updated(stated)).await;
    world.publish(&EntityEvent::Updated(foreign)).await;
    assert!(!caller.is_finished());
    let some = world.hydrator.get(&key("c-7"), &GetOptions::of(fields(&["name"]))).await;
    assert_eq!(name(&some), "Ada", "its fields are known");
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(name(&caller.await.unwrap()), "Ada");
}
