//! Tenants, and ids that try to be something else.

use std::time::Duration;

use tidegate_hydration::{EntityEvent, EntityKey, EntityStamp, EntityUpdate, GetOptions};

use super::world::*;

/// HYD-27: two tenants, one id: neither wakes nor buries the other's.
#[tokio::test(start_paused = true)]
async fn hyd_27_tenants_do_not_touch_each_other() {
    let mut world = World::new().await;
    let theirs = EntityKey::new("globex", "customer", "c-7").unwrap();
    let ours = world.spawn_get("c-7", GetOptions::full()).await;
    let our_question = world.question().await;
    let (hydrator, their_key) = (world.hydrator.clone(), theirs.clone());
    let other = tokio::spawn(async move { hydrator.get(&their_key, &GetOptions::full()).await });
    let their_question = world.question().await;
    assert_eq!((our_question.key.tenant(), their_question.key.tenant()), ("acme", "globex"));
    world.deny(&our_question, EntityStamp::default()).await;
    assert_eq!(name(&ours.await.unwrap()), "not found");
    assert!(!other.is_finished());
    world.answer(&their_question, "Ada", version(1)).await;
    assert_eq!(name(&other.await.unwrap()), "Ada");
    assert_eq!(name(&world.get("c-7").await), "not found");
}

/// HYD-27: an event speaks for the tenant and type of its subject only.
#[tokio::test(start_paused = true)]
async fn hyd_27_an_event_cannot_speak_for_another_tenant() {
    let mut world = World::new().await;
    let caller = world.spawn_get("c-7", GetOptions::full()).await;
    let question = world.question().await;
    let forged = EntityEvent::NotFound(absence_of(&question, EntityStamp::default())).encode();
    for subject in [["answers", "globex", "customer"], ["answers", "acme", "order"]] {
        let subject = ["tidegate", "entities", subject[0], subject[1], subject[2]];
        world.publish_bytes(&subject, forged.clone()).await;
    }
    assert!(!caller.is_finished());
    let update = EntityUpdate { key: question.key.clone(), ..update_of(&key("c-7"), "Ada", version(1)) };
    world.publish(&EntityEvent::Updated(update)).await;
    assert_eq!(name(&caller.await.unwrap()), "Ada");
}

/// HYD-27: whatever an id, a type or a tenant contains, the question reaches its source and the
/// answer its caller, and no one else.
#[tokio::test(start_paused = true)]
async fn hyd_27_odd_names_break_nothing() {
    for text in ["a.b", "*", ">", "a b", "x\r\nPUB evil", "%2E", "é.$SYS", "_INBOX"] {
        let mut world = World::new().await;
        let odd = EntityKey::new(text, text, text).unwrap();
        let (hydrator, odd_key) = (world.hydrator.clone(), odd.clone());
        let caller = tokio::spawn(async move { hydrator.get(&odd_key, &GetOptions::full()).await });
        let plain = world.spawn_get("plain", GetOptions::full()).await;
        let mut asked = [world.question().await, world.question().await];
        asked.sort_by_key(|question| question.key != odd);
        assert_eq!(asked[0].key, odd, "{text}");
        world.answer(&asked[0], "Ada", version(1)).await;
        assert_eq!(name(&caller.await.unwrap()), "Ada", "{text}");
        assert!(!plain.is_finished(), "{text}");
        assert!(world.question_within(Duration::from_millis(1)).await.is_none());
    }
}
