//! Metrics, and what is never logged.

use tidegate_idempotency::Policy;

use crate::log_lines::LogLines;
use crate::recorder::counting;
use crate::world::{Handler, World, ms};

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
