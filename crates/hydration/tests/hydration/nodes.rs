//! Two nodes that want one entity.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate_core::Time;
use tidegate_hydration::{
    EntityChange, EntityKey, EntityStamp, FlightRules, GetOptions, HydrationMode, Hydrator, LocalCopies,
    MemoryCopies,
};
use tidegate_store::{Clock, SharedState};
use tidegate_store_embedded::MemoryStore;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::world::*;

/// A clock that moves with tokio's.
struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time::from_millis(1_780_000_000_000).after(self.0.elapsed())
    }
}

async fn node(world: &World, store: Option<&Arc<MemoryStore>>) -> Hydrator {
    let bus = Arc::new(world.bus.clone());
    let builder = Hydrator::builder("orders", bus, Arc::new(MemoryCopies::default()));
    let shared = store.map(|store| Arc::clone(store) as Arc<dyn SharedState>);
    match shared {
        Some(shared) => builder.shared(shared).start().await.unwrap(),
        None => builder.start().await.unwrap(),
    }
}

fn store() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(Arc::new(TestClock(Instant::now()))))
}

async fn spawn_get(node: &Hydrator, options: GetOptions) -> JoinHandle<Outcome> {
    let node = node.clone();
    let task = tokio::spawn(async move { node.get(&key("hot"), &options).await });
    settle().await;
    task
}

/// HYD-10, HYD-19: two nodes, one hot id: one question with a shared store, two without.
#[tokio::test(start_paused = true)]
async fn hyd_10_two_nodes_ask_once() {
    for (shared, questions) in [(Some(store()), 1), (None, 2)] {
        let mut world = World::with(FlightRules::default()).await;
        let nodes = [node(&world, shared.as_ref()).await, node(&world, shared.as_ref()).await];
        let mut callers = Vec::new();
        for number in 0..100 {
            callers.push(spawn_get(&nodes[number % 2], GetOptions::full()).await);
        }
        assert_eq!(world.published(), questions);
        let question = world.question().await;
        world.answer(&question, "Ada", version(1)).await;
        for caller in callers {
            assert_eq!(name(&caller.await.unwrap()), "Ada");
        }
        assert_eq!(world.published(), questions);
    }
}

/// HYD-10: a node that wants more than the other asked for asks, and so does one that comes after
/// the answer.
#[tokio::test(start_paused = true)]
async fn hyd_10_a_node_that_misses_the_answer_asks_by_itself() {
    let mut world = World::with(FlightRules::default()).await;
    let shared = store();
    let first = node(&world, Some(&shared)).await;
    let exists = spawn_get(&first, GetOptions::of(HydrationMode::Existence)).await;
    let question = world.question().await;
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(name(&exists.await.unwrap()), "Ada");
    let late = node(&world, Some(&shared)).await;
    let caller = spawn_get(&late, GetOptions::of(HydrationMode::Existence)).await;
    assert_eq!(world.published(), 1, "the other's question is open as far as it knows");
    let retried = world.question().await;
    world.answer(&retried, "Ada", version(1)).await;
    assert_eq!((name(&caller.await.unwrap()), world.published()), ("Ada".to_owned(), 2));
    let full = spawn_get(&late, GetOptions::full()).await;
    assert_eq!(world.published(), 3, "more than was asked for");
    let question = world.question().await;
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(name(&full.await.unwrap()), "Ada");
}

/// HYD-10: a silent source is asked by one node at a time, and a bus that loses everything by
/// neither more than it would alone.
#[tokio::test(start_paused = true)]
async fn hyd_10_two_nodes_ask_a_silent_source_as_often_as_one() {
    let world = World::with(FlightRules::default()).await;
    world.bus.is_losing.store(true, Ordering::SeqCst);
    let shared = store();
    let nodes = [node(&world, Some(&shared)).await, node(&world, Some(&shared)).await];
    let callers =
        [spawn_get(&nodes[0], GetOptions::full()).await, spawn_get(&nodes[1], GetOptions::full()).await];
    for caller in callers {
        assert_eq!(name(&caller.await.unwrap()), TIMED_OUT);
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.published(), 2);
}

/// HYD-10, HYD-17: a node that starts later finds in the store what was not found, and no longer
/// once the entity came into being.
#[tokio::test(start_paused = true)]
async fn hyd_10_a_late_node_learns_what_was_not_found() {
    let mut world = World::with(FlightRules::default()).await;
    let shared = store();
    let first = node(&world, Some(&shared)).await;
    let caller = spawn_get(&first, GetOptions::full()).await;
    let question = world.question().await;
    world.deny(&question, version(1)).await;
    assert_eq!(name(&caller.await.unwrap()), "not found");
    sleep(Duration::from_secs(1)).await;
    let late = node(&world, Some(&shared)).await;
    for _ in 0..2 {
        assert_eq!(name(&late.get(&key("hot"), &GetOptions::full()).await), "not found");
    }
    assert_eq!(world.published(), 1, "no second question");
    let other = node(&world, Some(&shared)).await;
    let elsewhere = EntityKey::new("globex", "customer", "hot").unwrap();
    assert_eq!(name(&other.get(&elsewhere, &GetOptions::full()).await), TIMED_OUT, "another tenant's");
    world.announce("hot", "Ada", version(2)).await;
    let published = world.published();
    let latest = node(&world, Some(&shared)).await;
    let caller = spawn_get(&latest, GetOptions::full()).await;
    assert_eq!(world.published(), published + 1, "it came into being, so this one asks");
    let mut question = world.question().await;
    while question.key != key("hot") {
        question = world.question().await;
    }
    world.answer(&question, "Ada", version(2)).await;
    assert_eq!(name(&caller.await.unwrap()), "Ada");
}

/// HYD-10, HYD-20, HYD-24: absence in the store expires, and is not believed by a node that may
/// have missed news of the opposite.
#[tokio::test(start_paused = true)]
async fn hyd_10_hyd_24_shared_absence_expires_and_is_distrusted_after_a_gap() {
    let mut world = World::with(FlightRules::default()).await;
    let shared = store();
    let first = node(&world, Some(&shared)).await;
    let caller = spawn_get(&first, GetOptions::full()).await;
    let question = world.question().await;
    world.deny(&question, version(1)).await;
    assert_eq!(name(&caller.await.unwrap()), "not found");
    let late = node(&world, Some(&shared)).await;
    world.bus.gap();
    sleep(Duration::from_secs(1)).await;
    let caller = spawn_get(&late, GetOptions::full()).await;
    assert_eq!(world.published(), 2, "the other's word is not enough");
    let question = world.question().await;
    world.deny(&question, version(1)).await;
    assert_eq!(name(&caller.await.unwrap()), "not found");
    sleep(Duration::from_secs(61)).await;
    let latest = node(&world, Some(&shared)).await;
    let caller = spawn_get(&latest, GetOptions::full()).await;
    assert_eq!(world.published(), 3, "after a minute it is asked again");
    drop(caller);
}

/// HYD-10: a node that has seen the entity asks its owner, whatever the store says.
#[tokio::test(start_paused = true)]
async fn hyd_10_shared_absence_buries_no_copy() {
    let mut world = World::with(FlightRules::default()).await;
    let shared = store();
    let first = node(&world, Some(&shared)).await;
    let caller = spawn_get(&first, GetOptions::full()).await;
    let question = world.question().await;
    // Without a stamp it counts for who asked, and for no one else.
    world.deny(&question, EntityStamp::default()).await;
    assert_eq!(name(&caller.await.unwrap()), "not found");
    let late = node(&world, Some(&shared)).await;
    world.bus.is_losing.store(true, Ordering::SeqCst);
    let copies = Arc::new(MemoryCopies::default());
    let change = EntityChange::Updated {
        data: object(serde_json::json!({ "name": "Ada" })),
        mode: HydrationMode::Existence,
        stamp: version(1),
        source_module: "customers".to_owned(),
        at: Time::ZERO,
    };
    copies.update(&key("hot"), &change).await.unwrap();
    let bus = Arc::new(world.bus.clone());
    let owner = Hydrator::builder("orders", bus, copies).shared(Arc::clone(&shared) as Arc<dyn SharedState>);
    let owner = owner.start().await.unwrap();
    assert_eq!(name(&owner.get(&key("hot"), &GetOptions::full()).await), TIMED_OUT);
    assert_eq!(name(&late.get(&key("hot"), &GetOptions::full()).await), "not found");
}
