//! Sources: what they answer, how often they look, and what happens without one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tidegate_bus::{Bus, BusEvent, BusSubscription, FilterToken, InProcessBus, Subject, SubjectFilter};
use tidegate_hydration::{
    AbsenceReason, CorrelationId, EntityEvent, EntityQuestion, EntitySource, FlightRules, GetOptions,
    HydrationMode, Hydrator, MemoryCopies, SourceAnswer, SourceFuture, SourceServer,
};
use tokio::time::{Instant, advance, sleep};

use super::world::*;

/// A database that takes a while.
#[derive(Default)]
struct Customers {
    loads: AtomicUsize,
}

impl EntitySource for Customers {
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            sleep(Duration::from_millis(5)).await;
            match question.key.id() {
                "broken" => Err("the database is away".into()),
                "panic" => panic!("the test wants it"),
                "gone" => Ok(SourceAnswer::NotFound {
                    reason: AbsenceReason::DeletedOrNeverExisted,
                    version: Some(3),
                }),
                "later" => Ok(SourceAnswer::Later),
                id => {
                    let data = object(json!({ "name": id, "city": "London", "debt": 7 }));
                    Ok(SourceAnswer::Found { data, version: Some(1) })
                }
            }
        })
    }
}

struct SourceWorld {
    bus: InProcessBus,
    customers: Arc<Customers>,
    source: SourceServer,
    answers: BusSubscription,
}

fn question(id: &str, mode: HydrationMode, correlation_id: &str) -> EntityQuestion {
    let correlation_id = CorrelationId::new(correlation_id).unwrap();
    EntityQuestion { key: key(id), correlation_id, requester_module: "orders".to_owned(), mode }
}

impl SourceWorld {
    async fn new() -> Self {
        let bus = InProcessBus::new();
        let customers = Arc::new(Customers::default());
        let shared: Arc<dyn Bus> = Arc::new(bus.clone());
        let source = SourceServer::start("customers", "customer", shared, customers.clone()).await.unwrap();
        let filter = ["tidegate", "entities", "answers"].map(FilterToken::Exact).into_iter();
        let filter = SubjectFilter::new(filter.chain([FilterToken::Rest])).unwrap();
        let answers = bus.subscribe(&filter).await.unwrap();
        Self { bus, customers, source, answers }
    }

    async fn ask(&self, question: EntityQuestion) {
        let subject = Subject::new(["tidegate", "entities", "questions", "acme", "customer"]).unwrap();
        self.bus.publish(&subject, EntityEvent::Unknown(question).encode()).await.unwrap();
        settle().await;
    }

    /// All answers that arrive within a second.
    async fn answers(&mut self) -> Vec<EntityEvent> {
        sleep(Duration::from_secs(1)).await;
        let mut events = Vec::new();
        while let Some(BusEvent::Message(message)) = self.answers.try_next() {
            events.push(EntityEvent::decode(&message.payload).unwrap());
        }
        events
    }
}

fn data_of(event: &EntityEvent) -> serde_json::Value {
    match event {
        EntityEvent::Updated(update) => json!(update.data),
        other => panic!("{other:?}"),
    }
}

/// HYD-8, HYD-1, HYD-2: the answer has the fields that the mode asks for, and repeats the
/// correlation id.
#[tokio::test(start_paused = true)]
async fn hyd_8_a_source_answers_by_mode() {
    let mut world = SourceWorld::new().await;
    world.ask(question("Ada", HydrationMode::Existence, "1")).await;
    world.ask(question("Ada", fields(&["city", "moon"]), "2")).await;
    world.ask(question("Ada", HydrationMode::Full, "3")).await;
    let answers = world.answers().await;
    let data: Vec<_> = answers.iter().map(data_of).collect();
    let full = json!({ "name": "Ada", "city": "London", "debt": 7 });
    assert_eq!(data, [json!({}), json!({ "city": "London" }), full]);
    let ids: Vec<_> = answers.iter().map(|answer| answer.correlation_id().unwrap().as_str()).collect();
    assert_eq!(ids, ["1", "2", "3"]);
    let EntityEvent::Updated(update) = &answers[0] else { panic!("{answers:?}") };
    assert_eq!((update.stamp.version, update.source_module.as_str()), (Some(1), "customers"));
    assert!(update.stamp.as_of.is_some());
}

/// HYD-8: what is not there is "not found"; an error is not absence, and neither is a panic.
#[tokio::test(start_paused = true)]
async fn hyd_8_an_error_is_not_absence() {
    let mut world = SourceWorld::new().await;
    for id in ["broken", "panic", "later", "gone"] {
        world.ask(question(id, HydrationMode::Full, id)).await;
    }
    let answers = world.answers().await;
    assert!(
        matches!(&answers[..], [EntityEvent::NotFound(absence)] if absence.key == key("gone")
        && absence.stamp.version == Some(3)),
        "{answers:?}"
    );
}

/// HYD-8: the same question five times is one look, and answered the same way, each with its own
/// correlation id.
#[tokio::test(start_paused = true)]
async fn hyd_8_equal_questions_are_one_look() {
    let mut world = SourceWorld::new().await;
    for id in ["1", "2", "2", "3"] {
        world.ask(question("Ada", HydrationMode::Full, id)).await;
    }
    sleep(Duration::from_millis(20)).await;
    world.ask(question("Ada", HydrationMode::Full, "4")).await;
    let answers = world.answers().await;
    let ids: Vec<_> = answers.iter().map(|answer| answer.correlation_id().unwrap().as_str()).collect();
    assert_eq!(ids, ["1", "2", "3", "4"]);
    assert!(answers.iter().all(|answer| data_of(answer) == data_of(&answers[0])));
    assert_eq!(world.customers.loads.load(Ordering::SeqCst), 1);
    world.ask(question("Ada", HydrationMode::Full, "5")).await;
    assert_eq!((world.answers().await.len(), world.customers.loads.load(Ordering::SeqCst)), (1, 2));
    for id in ["6", "7"] {
        world.ask(question("gone", HydrationMode::Full, id)).await;
        assert_eq!(world.answers().await.len(), 1);
    }
    assert_eq!(world.customers.loads.load(Ordering::SeqCst), 4, "what is absent is looked for each time");
}

/// HYD-8: a source announces changes and deletions, and stops.
#[tokio::test(start_paused = true)]
async fn hyd_8_a_source_announces_and_stops() {
    let mut world = SourceWorld::new().await;
    world.source.announce(&key("Ada"), object(json!({ "name": "Ada" })), Some(2)).await.unwrap();
    world.source.announce_deleted(&key("Ada"), Some(3)).await.unwrap();
    let answers = world.answers().await;
    assert_eq!(
        answers.iter().map(EntityEvent::name).collect::<Vec<_>>(),
        ["entity/updated", "entity/not-found"]
    );
    assert!(answers.iter().all(|answer| answer.correlation_id().is_none()));
    world.source.close().await;
    world.ask(question("Ada", HydrationMode::Full, "1")).await;
    assert_eq!(world.answers().await, []);
}

/// HYD-12, HYD-13, HYD-16: a consumer and a source, and nothing in between.
#[tokio::test(start_paused = true)]
async fn hyd_12_a_consumer_is_hydrated_by_a_source() {
    let world = SourceWorld::new().await;
    let bus: Arc<dyn Bus> = Arc::new(world.bus.clone());
    let hydrator = Hydrator::builder("orders", bus, Arc::new(MemoryCopies::default())).start().await.unwrap();
    let get = |id: &'static str| {
        let hydrator = hydrator.clone();
        async move { name(&hydrator.get(&key(id), &GetOptions::full()).await) }
    };
    assert_eq!((get("Ada").await, get("gone").await), ("Ada".to_owned(), "not found".to_owned()));
    assert_eq!(get("broken").await, TIMED_OUT);
    world.source.announce_deleted(&key("Ada"), Some(9)).await.unwrap();
    settle().await;
    assert_eq!(get("Ada").await, "not found");
}

/// HYD-23: without a source the failure mode comes at once, and again at once within the window.
#[tokio::test(start_paused = true)]
async fn hyd_23_an_absent_source_is_noticed_at_once() {
    let world = World::without_source(FlightRules::default(), Arc::new(copies())).await;
    let before = Instant::now();
    assert_eq!(name(&world.get("c-7").await), ABSENT);
    assert_eq!(name(&world.get("c-7").await), ABSENT);
    assert_eq!((before.elapsed(), world.published()), (Duration::ZERO, 1));
    let degraded = world.hydrator.get(&key("c-7"), &GetOptions::full().degrade()).await;
    assert_eq!(name(&degraded), "unknown: no source answers for this type");
    advance(Duration::from_secs(6)).await;
    assert_eq!((name(&world.get("c-7").await), world.published()), (ABSENT.to_owned(), 2));
}

/// HYD-26: a question that could not be looked up while its asker may still wait is dropped, and
/// the entity can be asked for again.
#[tokio::test(start_paused = true)]
async fn hyd_26_a_question_does_not_outlive_its_asker() {
    struct Stuck(AtomicUsize);

    impl EntitySource for Stuck {
        fn load<'a>(&'a self, _: &'a EntityQuestion) -> SourceFuture<'a> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Box::pin(async {
                sleep(Duration::from_secs(60)).await;
                Err("it took too long".into())
            })
        }
    }

    let bus = InProcessBus::new();
    let stuck = Arc::new(Stuck(AtomicUsize::new(0)));
    let source: Arc<dyn EntitySource> = stuck.clone();
    let _server = SourceServer::start("customers", "customer", Arc::new(bus.clone()), source).await.unwrap();
    let subject = Subject::new(["tidegate", "entities", "questions", "acme", "customer"]).unwrap();
    let ask = async |id: &str| {
        let question = question(id, HydrationMode::Full, id);
        bus.publish(&subject, EntityEvent::Unknown(question).encode()).await.unwrap();
        settle().await;
    };
    for number in 0..70 {
        ask(&number.to_string()).await;
    }
    assert_eq!(stuck.0.load(Ordering::SeqCst), 64, "the others wait");
    sleep(Duration::from_secs(120)).await;
    assert_eq!(stuck.0.load(Ordering::SeqCst), 64, "and are given up");
    ask("69").await;
    assert_eq!(stuck.0.load(Ordering::SeqCst), 65);
}
