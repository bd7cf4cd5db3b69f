//! Two nodes that have one source: an entity is read once, whatever becomes of the reader.

use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_bus::InProcessBus;
use tidegate_core::Time;
use tidegate_hydration::{
    AbsenceReason, EntityKey, GetOptions, Hydration, HydrationError, MemoryCopies, MissReason, SourceServer,
};
use tidegate_store::Clock;
use tidegate_store_embedded::MemoryStore;

use super::super::reporting_source::ReportingSource;
use super::*;

const WINDOW: Duration = Duration::from_secs(5);

/// A clock that moves with tokio's.
struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Time {
        Time::from_millis(1_780_000_000_000).after(self.0.elapsed())
    }
}

/// An API that takes its time.
#[derive(Default)]
struct SlowApi(AtomicUsize);

impl EntitySource for SlowApi {
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
        Box::pin(async {
            self.0.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_millis(1_500)).await;
            match question.key.id() {
                "broken" => Err("it is broken".into()),
                "gone" => {
                    let reason = AbsenceReason::DeletedOrNeverExisted;
                    Ok(SourceAnswer::NotFound { reason, version: None })
                }
                _ => Ok(SourceAnswer::Found { data: serde_json::Map::default(), version: None }),
            }
        })
    }
}

/// A bus, a store and an API that nodes share.
struct SharedWorld {
    bus: Arc<InProcessBus>,
    store: Arc<MemoryStore>,
    api: Arc<SlowApi>,
}

impl SharedWorld {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new(Arc::new(TestClock(Instant::now()))));
        Self { bus: Arc::new(InProcessBus::new()), store, api: Arc::default() }
    }

    async fn node(&self) -> (Hydrator, SourceServer) {
        let (bus, store) = (Arc::clone(&self.bus), Arc::clone(&self.store));
        let builder = Hydrator::builder("tidegate", bus.clone(), Arc::new(MemoryCopies::default()));
        let hydrator = builder.shared(store.clone()).start().await.unwrap();
        let source = ClaimedSource::new(self.api.clone(), store, hydrator.clone(), WINDOW);
        let source = Arc::new(ReportingSource::new(Arc::new(source), hydrator.clone()));
        let server = SourceServer::start("tidegate", "product", bus, source).await.unwrap();
        (hydrator, server)
    }

    fn reads(&self) -> usize {
        self.api.0.load(Ordering::SeqCst)
    }
}

async fn get(node: &(Hydrator, SourceServer), id: &str) -> &'static str {
    let key = EntityKey::new("default", "product", id).unwrap();
    let options = GetOptions { wait: Some(Duration::from_secs(4)), ..GetOptions::full() };
    match node.0.get(&key, &options).await {
        Ok(Hydration::Found(_)) => "found",
        Ok(Hydration::NotFound(_)) => "gone",
        Err(HydrationError::Unavailable(MissReason::SourceFailed)) => "failed",
        _ => "nothing",
    }
}

/// HYD-14, HYD-10: a read that takes longer than until the question is repeated is one read, also
/// when it finds nothing or fails, and all nodes learn how it ended.
#[tokio::test(start_paused = true)]
async fn hyd_14_a_slow_read_of_a_node_is_not_repeated_by_another() {
    for (id, expected) in [("slow", "found"), ("gone", "gone"), ("broken", "failed")] {
        let world = SharedWorld::new();
        let (first, second) = (world.node().await, world.node().await);
        let outcomes = tokio::join!(get(&first, id), get(&second, id));
        assert_eq!((outcomes, world.reads()), ((expected, expected), 1), "{id}");
    }
}

/// HYD-14, HYD-10: a node that dies while it reads keeps the others from reading for a moment, and
/// no longer: whoever still wants the entity has it read.
#[tokio::test(start_paused = true)]
async fn hyd_14_a_read_of_a_node_that_died_is_taken_over() {
    let world = SharedWorld::new();
    let (first, _second) = (world.node().await, world.node().await);
    let question = EntityQuestion {
        key: EntityKey::new("default", "product", "slow").unwrap(),
        correlation_id: tidegate_hydration::CorrelationId::new("dead").unwrap(),
        requester_module: "tidegate".to_owned(),
        mode: tidegate_hydration::HydrationMode::Full,
    };
    let held = HEARTBEAT_MIN * HEARTBEATS_LOST;
    world.store.open_window(&read_key(&question), READING, held).await.unwrap();
    let begun = Instant::now();
    assert_eq!((get(&first, "slow").await, world.reads()), ("found", 1));
    assert!(begun.elapsed() > held, "it was read while another node did");
}
