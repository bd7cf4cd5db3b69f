//! An orderly shutdown.

use tidegate_idempotency::Policy;

use crate::world::{Handler, World, ms, secs};

/// IDM-17: draining waits until every handler has ended and its response is saved; none is saved
/// wrongly.
#[tokio::test(start_paused = true)]
async fn draining_waits_for_handlers_at_work() {
    let world = World::new(Handler::slow(secs(20)), Policy::default());
    for nth in 0..10 {
        let world = world.clone();
        let hung_up = async move { tokio::time::timeout(ms(10), world.post(&format!("k{nth}"), "a")).await };
        assert!(hung_up.await.is_err());
    }
    assert!(tokio::time::timeout(secs(15), world.gate.drain()).await.is_err(), "they are still at work");
    world.gate.drain().await;
    for nth in 0..10 {
        assert!(world.post(&format!("k{nth}"), "a").await.is_replay());
    }
    assert_eq!(world.handler.runs(), 10);
}
