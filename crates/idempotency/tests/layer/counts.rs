//! Metrics, and what is never logged.

use std::sync::Arc;

use tidegate_contract::{FaultPlan, InjectedFault, StoreMethod};
use tidegate_idempotency::{KeyStore, Policy, SealingKeys};

use crate::log_lines::LogLines;
use crate::recorder::counting;
use crate::world::{Handler, World, ms, secs};

/// IDM-9: hits, misses, conflicts and collisions.
#[tokio::test(start_paused = true)]
async fn what_happens_to_keys_is_counted() {
    let counted = counting();
    let world = World::new(Handler::slow(ms(10)), Policy::default());
    world.post("k", "a").await;
    world.post("k", "a").await;
    world.post("k", "a").await;
    world.post("k", "b").await;
    let (one, other) = tokio::join!(world.post("busy", "a"), world.post("busy", "a"));
    assert_eq!(one.status.min(other.status), 201);
    world.store.set_down(true);
    world.post("k", "a").await;
    let counts = ["hit", "miss", "conflict", "processing_collision"]
        .map(|name| counted.of(&format!("idempotency_{name}")));
    assert_eq!(counts, [2, 2, 1, 1]);
    assert!(counted.of("idempotency_store_error") >= 2);
}

/// IDM-10, IDM-22: no log line contains a body or a whole key; a manual change names who made it.
#[tokio::test(start_paused = true)]
async fn logs_hold_no_body_and_no_key() {
    let lines = LogLines::default();
    let _logged = lines.collect();
    let panicking = Handler::new(|_| async { panic!("the handler's own panic") });
    let world = World::new(panicking, Policy::default());
    world.post("secret-key-4711", "secret-body").await;
    world.store.set_down(true);
    world.post("secret-key-4711", "secret-body").await;
    world.store.set_down(false);
    let name = tidegate_idempotency::RecordName::parse("acme POST /api/v1/items secret-key-4711").unwrap();
    world.gate.keys().release(&name, "night-shift").await.unwrap();
    let text = lines.text();
    assert!(text.contains("panicked") && text.contains("could not claim a key"), "{text}");
    assert!(text.contains("night-shift") && text.contains("audit"), "{text}");
    assert!(!text.contains("4711") && !text.contains("secret-body"), "{text}");
}

fn always_failing(method: StoreMethod) -> FaultPlan {
    (1..=2_000).fold(FaultPlan::none(), |plan, nth| plan.at(method, nth, InjectedFault::Fail))
}

/// IDM-10: nor do the lines about a key that changed hands, a response that was not saved, and one
/// that cannot be served.
#[tokio::test(start_paused = true)]
async fn idm_10_lines_about_lost_keys_hold_no_key() {
    const KEY: &str = "secret-key-4711";
    let lines = LogLines::default();
    let _logged = lines.collect();
    let store = crate::world::store();
    let slow = World::on(Arc::clone(&store), Handler::slow(secs(100)), Policy::default());
    let next = World::on(Arc::clone(&store), Handler::creating(), Policy::default());
    store.set_plan(always_failing(StoreMethod::RenewRecord));
    tokio::join!(slow.post(KEY, "secret-body"), async {
        tokio::time::sleep(secs(31)).await;
        next.post(KEY, "secret-body").await;
        store.set_plan(FaultPlan::none());
    });
    let unsaved = World::new(Handler::creating(), Policy::default());
    unsaved.store.set_plan(always_failing(StoreMethod::CompleteRecord));
    unsaved.post(KEY, "secret-body").await;
    tokio::time::sleep(secs(400)).await;
    for seal in [1, 2] {
        let keys = SealingKeys::new(&[[seal; 32]]).unwrap();
        let gate = KeyStore::sealed(Arc::clone(&unsaved.store) as _, keys);
        let sealed = World::behind(gate, Arc::clone(&unsaved.store), Handler::creating(), Policy::default());
        unsaved.store.set_plan(FaultPlan::none());
        sealed.post("secret-key-4711-sealed", "secret-body").await;
    }
    let text = lines.text();
    for line in ["has taken over the key", "unavailable for too long", "cannot be served"] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert!(!text.contains("4711") && !text.contains("secret-body"), "{text}");
}
