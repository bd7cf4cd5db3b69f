//! How long a response is kept, and when it is removed.

use std::sync::Arc;

use tidegate_idempotency::{Policy, sweep_periodically};
use tidegate_store::SharedState;

use crate::log_lines::LogLines;
use crate::recorder::counting;
use crate::world::{Handler, World, ms, secs};

/// IDM-5: at 60 minutes the stored response is still replayed, at 61 the request is new; retries do
/// not extend it.
#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_for_an_hour_from_its_creation() {
    let world = World::new(Handler::creating(), Policy::default());
    world.post("k", "a").await;
    tokio::time::sleep(secs(1_800)).await;
    assert!(world.post("k", "a").await.is_replay());
    tokio::time::sleep(secs(1_800)).await;
    assert!(world.post("k", "a").await.is_replay(), "the moment the hour is over");
    tokio::time::sleep(ms(1)).await;
    assert_eq!(world.post("k", "b").await.text(), "made 2", "expired: a new key, for another body too");
}

/// IDM-5: the time is configured for each layer.
#[tokio::test(start_paused = true)]
async fn the_time_is_set_for_each_layer() {
    let store = crate::world::store();
    let handler = Handler::creating();
    let short = World::on(Arc::clone(&store), handler.clone(), Policy::default().with_ttl(secs(10)));
    short.post("k", "a").await;
    tokio::time::sleep(secs(10) + ms(1)).await;
    assert_eq!(short.post("k", "a").await.text(), "made 2");
}

/// IDM-6, IDM-9: every ten minutes the answers that expired are removed, and how many is logged and
/// counted; those that have not expired and those in flight stay.
#[tokio::test(start_paused = true)]
async fn expired_answers_are_cleaned_up_every_ten_minutes() {
    let (counted, lines) = (counting(), LogLines::default());
    let _logged = lines.collect();
    let store = crate::world::store();
    let policy = Policy::default().with_ttl(secs(60));
    let world = World::on(Arc::clone(&store), Handler::creating(), policy.clone());
    for key in ["a", "b", "c"] {
        world.post(key, "x").await;
    }
    let lasting = World::on(Arc::clone(&store), Handler::creating(), Policy::default());
    lasting.post("lasting", "x").await;
    let busy = World::on(Arc::clone(&store), Handler::slow(secs(800)), policy);
    let working = tokio::spawn(async move { busy.post("busy", "x").await });
    let sweeping = tokio::spawn(sweep_periodically(Arc::clone(&store) as Arc<dyn SharedState>));
    tokio::time::sleep(secs(599)).await;
    assert_eq!(counted.of("idempotency_cleanup_count"), 0, "not yet");
    tokio::time::sleep(secs(2)).await;
    assert_eq!(counted.of("idempotency_cleanup_count"), 3);
    assert_eq!(store.sweep_records(100).await.unwrap(), 0, "nothing was left to sweep");
    assert!(lasting.post("lasting", "x").await.is_replay());
    assert_eq!(world.post("busy", "x").await.code(), "IDEMPOTENCY_KEY_PROCESSING");
    world.post("d", "x").await;
    tokio::time::sleep(secs(600)).await;
    assert_eq!(counted.of("idempotency_cleanup_count"), 5, "and again, what was in flight too");
    assert_eq!(working.await.unwrap().text(), "made 1");
    sweeping.abort();
    let swept = lines.text();
    let swept: Vec<_> = swept.lines().filter(|line| line.contains("removed expired")).collect();
    assert!(swept.len() == 2 && swept[0].contains("swept=3") && swept[1].contains("swept=2"), "{swept:?}");
}
