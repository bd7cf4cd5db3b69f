//! Bounds, as a caller meets them.

use std::time::Duration;

use serde_json::json;
use tidegate_bus::{Bus, BusErrorKind};
use tidegate_hydration::{
    EntityChange, EntityStamp, FlightRules, GetOptions, HydrationMode, LocalCopies, MemoryCopies,
    SourceServer,
};
use tokio::time::advance;

use super::world::*;

/// HYD-26: a scan of unknown ids asks no more than the tenant may, and the refusal says so.
#[tokio::test(start_paused = true)]
async fn hyd_26_questions_of_a_tenant_are_bounded() {
    let mut world = World::with(FlightRules { questions_per_s: 10, ..FlightRules::default() }).await;
    let mut refused = 0;
    for id in 0..100 {
        let caller = world.spawn_get(&id.to_string(), GetOptions::full()).await;
        if caller.is_finished() {
            assert!(name(&caller.await.unwrap()).ends_with("the tenant asks too many questions"));
            refused += 1;
        }
    }
    assert_eq!((refused, world.published()), (90, 10));
    let question = world.question().await;
    world.deny(&question, EntityStamp::default()).await;
    advance(Duration::from_secs(1)).await;
    let _more = world.spawn_get("more", GetOptions::full()).await;
    assert!(world.hydrator.flights(None, 100).iter().any(|flight| flight.key == key("more")));
}

/// HYD-26: a scan answered with "not found" leaves no more behind than the bounds.
#[tokio::test(start_paused = true)]
async fn hyd_26_a_scan_leaves_memory_flat() {
    let mut world = World::with(FlightRules { negatives_max: 50, ..FlightRules::default() }).await;
    for id in 0..500 {
        let caller = world.spawn_get(&id.to_string(), GetOptions::full()).await;
        let question = world.question().await;
        world.deny(&question, EntityStamp::default()).await;
        assert_eq!(name(&caller.await.unwrap()), "not found");
    }
    assert_eq!(
        (world.copies.len(), world.hydrator.flights(None, 1).len()),
        (0, 0),
        "no tombstones, no flights"
    );
    let before = world.published();
    for id in 0..500 {
        drop(world.spawn_get(&id.to_string(), GetOptions::full()).await);
    }
    assert_eq!(world.published() - before, 450, "fifty are remembered");
}

/// HYD-26: copies in memory are bounded, and what is read stays longer.
#[tokio::test]
async fn hyd_26_copies_in_memory_are_bounded() {
    let copies = MemoryCopies::new(10);
    let change = |name: &str| EntityChange::Updated {
        data: object(json!({ "name": name })),
        mode: HydrationMode::Full,
        stamp: version(1),
        source_module: "customers".to_owned(),
        at: tidegate_core::Time::ZERO,
    };
    for id in 0..1_000 {
        copies.update(&key(&id.to_string()), &change("Ada")).await.unwrap();
        assert!(copies.load(&key("0")).await.unwrap().is_some(), "read every time");
        assert!(copies.len() <= 10);
    }
    assert!(copies.load(&key("500")).await.unwrap().is_none());
}

/// HYD-27: an entity that is too large for the bus is the source's error.
#[tokio::test(start_paused = true)]
async fn hyd_27_an_oversized_payload_is_a_typed_error() {
    use std::sync::Arc;
    struct Nothing;
    impl tidegate_hydration::EntitySource for Nothing {
        fn load<'a>(
            &'a self,
            _: &'a tidegate_hydration::EntityQuestion,
        ) -> tidegate_hydration::SourceFuture<'a> {
            Box::pin(async { Err("nothing".into()) })
        }
    }
    let bus: Arc<dyn Bus> = Arc::new(tidegate_bus::InProcessBus::new());
    let source = SourceServer::start("customers", "customer", bus, Arc::new(Nothing)).await.unwrap();
    let large = object(json!({ "name": "x".repeat(2 << 20) }));
    let refused = source.announce(&key("c-7"), large, None).await.unwrap_err();
    assert_eq!(refused.kind(), BusErrorKind::TooLarge);
}
