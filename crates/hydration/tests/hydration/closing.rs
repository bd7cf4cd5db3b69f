//! The end: no one is left waiting.

use std::sync::{Arc, Mutex};

use tidegate_bus::{Bus, BusErrorKind, BusFuture, BusSubscription, Delivery, Subject, SubjectFilter};
use tidegate_hydration::{GetOptions, HydrationError, Hydrator, MemoryCopies};

use super::world::*;

/// HYD-6: closing resolves all who wait, resumes deferred work with it, and returns when that has
/// ended; later reads fail, except from the local copy.
#[tokio::test(start_paused = true)]
async fn hyd_6_closing_leaves_no_one_waiting() {
    let world = World::new().await;
    world.announce("c-1", "Ada", version(1)).await;
    let resumed = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&resumed);
    let work = move |outcome: Outcome| async move {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        note.lock().unwrap().push(name(&outcome));
    };
    let deferred = world.hydrator.get_or_defer(&key("c-7"), &GetOptions::full(), work).await;
    assert_eq!(name(&deferred), "deferred");
    let caller = world.spawn_get("c-8", GetOptions::full()).await;
    world.hydrator.close().await;
    assert!(matches!(caller.await.unwrap(), Err(HydrationError::Closed)));
    assert_eq!(*resumed.lock().unwrap(), ["the hydrator is closed"]);
    assert!(matches!(world.get("c-9").await, Err(HydrationError::Closed)));
    assert_eq!(name(&world.get("c-1").await), "Ada");
    world.hydrator.close().await;
}

/// HYD-6: a bus that closes ends the consumer in the same way.
#[tokio::test(start_paused = true)]
async fn hyd_6_a_closed_bus_leaves_no_one_waiting() {
    let world = World::new().await;
    let caller = world.spawn_get("c-8", GetOptions::full()).await;
    world.bus.close();
    assert!(matches!(caller.await.unwrap(), Err(HydrationError::Closed)));
}

/// A bus whose subscription is never confirmed.
struct UnconfirmedBus;

impl Bus for UnconfirmedBus {
    fn publish<'a>(&'a self, _: &'a Subject, _: bytes::Bytes) -> BusFuture<'a, Delivery> {
        Box::pin(async { panic!("a question left before the subscription was confirmed") })
    }

    fn subscribe<'a>(&'a self, _: &'a SubjectFilter) -> BusFuture<'a, BusSubscription> {
        Box::pin(async { Err(tidegate_bus::BusError::new(BusErrorKind::Unavailable, "not yet")) })
    }

    fn close(&self) {}
}

/// HYD-24: without a confirmed subscription there is no consumer, so no question is lost.
#[tokio::test(start_paused = true)]
async fn hyd_24_no_question_leaves_before_the_subscription_is_confirmed() {
    let copies = Arc::new(MemoryCopies::default());
    let started = Hydrator::builder("orders", Arc::new(UnconfirmedBus), copies).start().await;
    assert!(matches!(started, Err(error @ HydrationError::Bus(_)) if error.is_temporary()));
}
