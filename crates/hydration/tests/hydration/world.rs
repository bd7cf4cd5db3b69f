//! A consumer whose questions the test reads and answers by hand, on a bus that can be broken.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tidegate_bus::{
    Bus, BusError, BusErrorKind, BusEvent, BusFuture, BusSubscription, Delivery, FilterToken, InProcessBus,
    Subject, SubjectFilter, SubscriptionSender,
};
use tidegate_hydration::{
    AbsenceReason, EntityAbsence, EntityEvent, EntityKey, EntityQuestion, EntityStamp, EntityUpdate,
    FlightRules, GetOptions, Hydration, HydrationError, HydrationMode, Hydrator, LocalCopies, MemoryCopies,
};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A bus within the process that fails, loses and delays what the test says.
#[derive(Clone, Default)]
pub(crate) struct TestBus {
    inner: InProcessBus,
    pub(crate) published: Arc<AtomicUsize>,
    pub(crate) is_failing: Arc<AtomicBool>,
    /// Whether messages are accepted and lost.
    pub(crate) is_losing: Arc<AtomicBool>,
    gaps: Arc<Mutex<Vec<Arc<SubscriptionSender>>>>,
}

impl Bus for TestBus {
    fn publish<'a>(&'a self, subject: &'a Subject, payload: Bytes) -> BusFuture<'a, Delivery> {
        Box::pin(async move {
            if subject.as_str().contains(".questions.") {
                self.published.fetch_add(1, Ordering::SeqCst);
            }
            if self.is_failing.load(Ordering::SeqCst) {
                return Err(BusError::new(BusErrorKind::Unavailable, "the test cut it off"));
            }
            if self.is_losing.load(Ordering::SeqCst) {
                return Ok(Delivery::Received);
            }
            self.inner.publish(subject, payload).await
        })
    }

    fn subscribe<'a>(&'a self, filter: &'a SubjectFilter) -> BusFuture<'a, BusSubscription> {
        Box::pin(async move {
            let mut real = self.inner.subscribe(filter).await?;
            let (sender, subscription) = BusSubscription::with_sender();
            let sender = Arc::new(sender);
            self.gaps.lock().unwrap().push(Arc::clone(&sender));
            tokio::spawn(async move {
                while let Some(BusEvent::Message(message)) = real.next().await {
                    sender.send(message);
                }
            });
            Ok(subscription)
        })
    }

    fn close(&self) {
        self.inner.close();
        self.gaps.lock().unwrap().clear();
    }
}

impl TestBus {
    /// Tells every subscriber that messages were lost.
    pub(crate) fn gap(&self) {
        self.gaps.lock().unwrap().iter().for_each(|sender| sender.gap());
    }
}

pub(crate) struct World {
    pub(crate) bus: TestBus,
    pub(crate) copies: MemoryCopies,
    pub(crate) hydrator: Hydrator,
    questions: Option<BusSubscription>,
}

pub(crate) type Outcome = Result<Hydration, HydrationError>;

pub(crate) fn key(id: &str) -> EntityKey {
    EntityKey::new("acme", "customer", id).unwrap()
}

pub(crate) fn copies() -> MemoryCopies {
    MemoryCopies::default()
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        other => panic!("{other} is no object"),
    }
}

pub(crate) fn version(version: u64) -> EntityStamp {
    EntityStamp { version: Some(version), as_of: None }
}

pub(crate) fn fields(names: &[&str]) -> HydrationMode {
    HydrationMode::partial(names.iter().copied()).unwrap()
}

/// The `name` of what was found; otherwise the outcome, to be read by a person.
pub(crate) fn name(outcome: &Outcome) -> String {
    match outcome {
        Ok(Hydration::Found(entity)) => match entity.field("name").and_then(Value::as_str) {
            Some(name) if entity.is_stale => format!("{name} (stale)"),
            Some(name) => name.to_owned(),
            None => "nameless".to_owned(),
        },
        Ok(Hydration::NotFound(_)) => "not found".to_owned(),
        Ok(Hydration::Deferred) => "deferred".to_owned(),
        Ok(Hydration::Unknown(reason)) => format!("unknown: {reason}"),
        Err(error) => error.to_string(),
    }
}

pub(crate) const TIMED_OUT: &str = "the entity is not available: the source did not answer in time";
pub(crate) const ABSENT: &str = "the entity is not available: no source answers for this type";

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(FlightRules::default()).await
    }

    pub(crate) async fn with(rules: FlightRules) -> Self {
        let copies = MemoryCopies::default();
        let mut world = Self::without_source(rules, Arc::new(copies.clone())).await;
        let filter = ["tidegate", "entities", "questions"].map(FilterToken::Exact).into_iter();
        let filter = SubjectFilter::new(filter.chain([FilterToken::Rest])).unwrap();
        world.questions = Some(world.bus.subscribe(&filter).await.unwrap());
        world.copies = copies;
        world
    }

    pub(crate) async fn without_source(rules: FlightRules, copies: Arc<dyn LocalCopies>) -> Self {
        let bus = TestBus::default();
        let builder = Hydrator::builder("orders", Arc::new(bus.clone()), copies).owns("order");
        let hydrator = builder.rules(rules).start().await.unwrap();
        Self { bus, copies: MemoryCopies::default(), hydrator, questions: None }
    }

    pub(crate) fn published(&self) -> usize {
        self.bus.published.load(Ordering::SeqCst)
    }

    pub(crate) async fn get(&self, id: &str) -> Outcome {
        self.hydrator.get(&key(id), &GetOptions::full()).await
    }

    /// Begins a read in a task of its own, and lets it register.
    pub(crate) async fn spawn_get(&self, id: &str, options: GetOptions) -> JoinHandle<Outcome> {
        let (hydrator, key) = (self.hydrator.clone(), key(id));
        let task = tokio::spawn(async move { hydrator.get(&key, &options).await });
        settle().await;
        task
    }

    /// The next question that left.
    pub(crate) async fn question(&mut self) -> EntityQuestion {
        self.question_within(Duration::from_secs(60)).await.expect("a question")
    }

    pub(crate) async fn question_within(&mut self, wait: Duration) -> Option<EntityQuestion> {
        let questions = self.questions.as_mut().unwrap();
        match timeout(wait, questions.next()).await.ok()?? {
            BusEvent::Message(message) => match EntityEvent::decode(&message.payload).unwrap() {
                EntityEvent::Unknown(question) => Some(question),
                other => panic!("{other:?}"),
            },
            BusEvent::Gap => Box::pin(self.question_within(wait)).await,
        }
    }

    pub(crate) async fn publish(&self, event: &EntityEvent) {
        let tokens = ["tidegate", "entities", "answers", event.key().tenant(), event.key().entity_type()];
        self.publish_bytes(&tokens, event.encode()).await;
    }

    pub(crate) async fn publish_bytes(&self, tokens: &[&str], payload: Bytes) {
        self.bus.inner.publish(&Subject::new(tokens).unwrap(), payload).await.unwrap();
        settle().await;
    }

    /// Answers a question with a customer of this name.
    pub(crate) async fn answer(&self, question: &EntityQuestion, name: &str, stamp: EntityStamp) {
        let mode = Some(question.mode.clone());
        let update = update_of(&question.key, name, stamp);
        let correlation_id = Some(question.correlation_id.clone());
        self.publish(&EntityEvent::Updated(EntityUpdate { correlation_id, mode, ..update })).await;
    }

    /// A change that no one asked about.
    pub(crate) async fn announce(&self, id: &str, name: &str, stamp: EntityStamp) {
        self.publish(&EntityEvent::Updated(update_of(&key(id), name, stamp))).await;
    }

    pub(crate) async fn deny(&self, question: &EntityQuestion, stamp: EntityStamp) {
        self.publish(&EntityEvent::NotFound(absence_of(question, stamp))).await;
    }
}

pub(crate) fn update_of(key: &EntityKey, name: &str, stamp: EntityStamp) -> EntityUpdate {
    EntityUpdate {
        key: key.clone(),
        correlation_id: None,
        source_module: "customers".to_owned(),
        data: object(json!({ "name": name, "city": "London" })),
        stamp,
        mode: None,
    }
}

pub(crate) fn absence_of(question: &EntityQuestion, stamp: EntityStamp) -> EntityAbsence {
    EntityAbsence {
        key: question.key.clone(),
        correlation_id: Some(question.correlation_id.clone()),
        source_module: "customers".to_owned(),
        reason: AbsenceReason::DeletedOrNeverExisted,
        stamp,
    }
}

/// Lets every task run until it waits.
pub(crate) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

/// A message as a test wants to send it.
pub(crate) fn message(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}
