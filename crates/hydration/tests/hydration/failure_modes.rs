//! What happens without an answer: fail fast, go on with what there is, put it off.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_hydration::{EntityStamp, FlightRules, GetOptions, HydrationMode};
use tokio::time::{Instant, advance, sleep};

use super::world::*;

type Resumed = Arc<Mutex<Vec<(u32, String)>>>;

/// Puts work off, and notes what it is resumed with.
async fn defer(world: &World, id: &str, number: u32, resumed: &Resumed) -> String {
    let resumed = Arc::clone(resumed);
    let options = GetOptions { defer_for: Duration::from_secs(30), ..GetOptions::full() };
    let work = move |outcome: Outcome| async move {
        resumed.lock().unwrap().push((number, name(&outcome)));
    };
    name(&world.hydrator.get_or_defer(&key(id), &options, work).await)
}

fn taken(resumed: &Resumed) -> Vec<(u32, String)> {
    std::mem::take(&mut resumed.lock().unwrap())
}

/// HYD-7: degrade goes on with a stale copy and says so; without a copy it says that nothing is
/// known, and makes nothing up.
#[tokio::test(start_paused = true)]
async fn hyd_7_degrade_goes_on_with_what_there_is() {
    let world = World::new().await;
    world.announce("c-7", "Ada", version(1)).await;
    world.hydrator.invalidate(&key("c-7")).await.unwrap();
    let degraded = GetOptions::full().degrade();
    let before = Instant::now();
    assert_eq!(name(&world.hydrator.get(&key("c-7"), &degraded).await), "Ada (stale)");
    assert_eq!(before.elapsed().as_millis(), 500, "after its wait");
    let unknown = world.hydrator.get(&key("c-8"), &degraded).await;
    assert_eq!(name(&unknown), "unknown: the source did not answer in time");
    let partial = world.hydrator.get(&key("c-7"), &GetOptions::of(HydrationMode::Existence).degrade()).await;
    assert_eq!(name(&partial), "Ada (stale)");
}

/// HYD-7: deferred work is resumed once, in order, by the answer.
#[tokio::test(start_paused = true)]
async fn hyd_7_deferred_work_is_resumed_once_in_order() {
    let mut world = World::new().await;
    let resumed = Resumed::default();
    for number in 0..3 {
        assert_eq!(defer(&world, "c-7", number, &resumed).await, "deferred");
    }
    let question = world.question().await;
    world.answer(&question, "Ada", version(1)).await;
    world.answer(&question, "Ada", version(1)).await;
    let all = (0..3).map(|number| (number, "Ada".to_owned())).collect::<Vec<_>>();
    assert_eq!(taken(&resumed), all);
    assert_eq!(defer(&world, "c-7", 9, &resumed).await, "Ada", "there is nothing to put off");
    assert_eq!(taken(&resumed), []);
}

/// HYD-7: "not found" resumes deferred work too, and so does its deadline; until then it is asked
/// again in every window.
#[tokio::test(start_paused = true)]
async fn hyd_7_deferred_work_ends_with_not_found_or_its_deadline() {
    let mut world = World::new().await;
    let resumed = Resumed::default();
    assert_eq!(defer(&world, "c-7", 0, &resumed).await, "deferred");
    let question = world.question().await;
    world.deny(&question, EntityStamp::default()).await;
    assert_eq!(taken(&resumed), [(0, "not found".to_owned())]);
    let before = world.published();
    assert_eq!(defer(&world, "c-8", 1, &resumed).await, "deferred");
    sleep(Duration::from_millis(29_999)).await;
    assert_eq!(taken(&resumed), []);
    sleep(Duration::from_millis(2)).await;
    assert_eq!(taken(&resumed), [(1, TIMED_OUT.to_owned())]);
    let rounds = world.published() - before;
    assert!((12..=14).contains(&rounds), "two questions in each window: {rounds}");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(world.published() - before, rounds, "and none afterwards");
    assert_eq!(world.hydrator.flights(None, 1), []);
}

/// HYD-7, HYD-23: work for a source that is not there yet is resumed when it comes.
#[tokio::test(start_paused = true)]
async fn hyd_7_deferred_work_survives_an_absent_source() {
    let world = World::without_source(FlightRules::default(), Arc::new(super::world::copies())).await;
    let resumed = Resumed::default();
    assert_eq!(defer(&world, "c-7", 0, &resumed).await, "deferred");
    advance(Duration::from_secs(12)).await;
    world.announce("c-7", "Ada", version(1)).await;
    assert_eq!(taken(&resumed), [(0, "Ada".to_owned())]);
}

/// HYD-26: deferred work is bounded, for an entity and in all.
#[tokio::test(start_paused = true)]
async fn hyd_26_deferred_work_is_bounded() {
    let rules = FlightRules { deferred_max: 3, deferred_of_entity_max: 2, ..FlightRules::default() };
    let world = World::with(rules).await;
    let resumed = Resumed::default();
    for (id, outcome) in [
        ("a", "deferred"),
        ("a", "deferred"),
        (
            "a",
            "the entity is not available: too much is asked for at once: too much work is deferred for this entity",
        ),
        ("b", "deferred"),
        ("c", "the entity is not available: too much is asked for at once: too much work is deferred"),
    ] {
        assert_eq!(defer(&world, id, 0, &resumed).await, outcome);
    }
}

/// HYD-7: work that panics does not stop what waits behind it.
#[tokio::test(start_paused = true)]
async fn hyd_7_work_that_panics_stops_nothing() {
    let mut world = World::new().await;
    let resumed = Resumed::default();
    let options = GetOptions::full();
    let panics = |_: Outcome| async { panic!("the test wants it") };
    assert_eq!(name(&world.hydrator.get_or_defer(&key("c-7"), &options, panics).await), "deferred");
    assert_eq!(defer(&world, "c-7", 1, &resumed).await, "deferred");
    let question = world.question().await;
    world.answer(&question, "Ada", version(1)).await;
    assert_eq!(taken(&resumed), [(1, "Ada".to_owned())]);
}
