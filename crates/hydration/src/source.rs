//! The owner's side: it answers questions about its entities, and announces changes that no one
//! asked about. Equal questions are one look into its database; the same question again is answered
//! the same way.

mod collapse;

use std::fmt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Map, Value};
use tidegate_bus::{Bus, BusError, BusEvent, BusSubscription, Delivery};
use tidegate_core::Time;
use tidegate_core::hydration::{AbsenceReason, EntityKey, EntityStamp, HydrationMode};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::clock::FlightClock;
use crate::copies::select;
use crate::counters::HydrationCount;
use crate::event::{EntityAbsence, EntityEvent, EntityQuestion, EntityUpdate};
use crate::outcome::HydrationError;
use crate::{log, subjects};
pub use collapse::ANSWER_REUSE;
use collapse::{Admission, OpenQuestions};

/// Questions that are looked up at once.
const LOADS_MAX: usize = 64;
/// How long a question waits to be looked up. After that its asker has given up, or asks again.
const QUEUE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Why a source could not look. Nothing is answered then: an error is not absence.
pub type SourceError = Box<dyn std::error::Error + Send + Sync>;

/// The return type of [`EntitySource::load`], so that it can be a trait object.
pub type SourceFuture<'a> = Pin<Box<dyn Future<Output = Result<SourceAnswer, SourceError>> + Send + 'a>>;

/// The database of an owner.
pub trait EntitySource: Send + Sync + 'static {
    /// Finds the entity. May return more fields than were asked for; those are not sent.
    fn load<'a>(&'a self, question: &'a EntityQuestion) -> SourceFuture<'a>;

    /// Called for each question that could not be looked up, those that were asked meanwhile
    /// included.
    fn report_failure(&self, _question: &EntityQuestion) {}

    /// The module whose answers these are, if it is another one than the server's.
    fn module(&self) -> Option<String> {
        None
    }
}

/// What an owner found.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceAnswer {
    /// The entity.
    Found {
        /// Its fields.
        data: Map<String, Value>,
        /// Its version, if it has one: grows with every change.
        version: Option<u64>,
    },
    /// There is none.
    NotFound {
        /// Why.
        reason: AbsenceReason,
        /// The version of its deletion, if it has one.
        version: Option<u64>,
    },
    /// The answer is published by someone else, later.
    Later,
}

/// Answers the questions about one type. Clones are the same source; it stops when the last one is
/// dropped.
#[derive(Clone)]
pub struct SourceServer {
    inner: Arc<Inner>,
    _stop: Arc<DropGuard>,
}

struct Inner {
    module: String,
    entity_type: String,
    bus: Arc<dyn Bus>,
    source: Arc<dyn EntitySource>,
    open: OpenQuestions,
    loads: Semaphore,
    clock: FlightClock,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl SourceServer {
    /// Answers questions about `entity_type` for the module `module`. Returns once the bus has
    /// confirmed the subscription.
    ///
    /// # Errors
    /// `Bus` when it could not be subscribed to.
    pub async fn start(
        module: &str,
        entity_type: &str,
        bus: Arc<dyn Bus>,
        source: Arc<dyn EntitySource>,
    ) -> Result<Self, HydrationError> {
        let subscription = bus.subscribe(&subjects::questions(entity_type)?).await?;
        let stop = CancellationToken::new();
        let inner = Arc::new(Inner {
            module: module.to_owned(),
            entity_type: entity_type.to_owned(),
            bus,
            source,
            open: OpenQuestions::default(),
            loads: Semaphore::new(LOADS_MAX),
            clock: FlightClock::start(),
            tasks: TaskTracker::new(),
            stop: stop.clone(),
        });
        inner.tasks.spawn(receive_questions(Arc::clone(&inner), subscription));
        Ok(Self { inner, _stop: Arc::new(stop.drop_guard()) })
    }

    /// Announces the whole state of an entity after a change.
    ///
    /// # Errors
    /// The bus's error; consumers find out when they ask.
    pub async fn announce(
        &self,
        key: &EntityKey,
        data: Map<String, Value>,
        version: Option<u64>,
    ) -> Result<Delivery, BusError> {
        let stamp = EntityStamp { version, as_of: Some(self.inner.clock.now()) };
        let (source_module, mode) = (self.inner.module.clone(), Some(HydrationMode::Full));
        let update =
            EntityUpdate { key: key.clone(), correlation_id: None, source_module, data, stamp, mode };
        self.inner.publish(&EntityEvent::Updated(update)).await
    }

    /// Announces that an entity was deleted.
    ///
    /// # Errors
    /// As [`SourceServer::announce`].
    pub async fn announce_deleted(
        &self,
        key: &EntityKey,
        version: Option<u64>,
    ) -> Result<Delivery, BusError> {
        let stamp = EntityStamp { version, as_of: Some(self.inner.clock.now()) };
        let (source_module, reason) = (self.inner.module.clone(), AbsenceReason::DeletedOrNeverExisted);
        let absence = EntityAbsence { key: key.clone(), correlation_id: None, source_module, reason, stamp };
        self.inner.publish(&EntityEvent::NotFound(absence)).await
    }

    /// Stops, and returns when the answers under way have been sent.
    pub async fn close(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }
}

async fn receive_questions(inner: Arc<Inner>, mut subscription: BusSubscription) {
    loop {
        let event = tokio::select! {
            event = subscription.next() => event,
            () = inner.stop.cancelled() => break,
        };
        match event {
            Some(BusEvent::Message(message)) => match EntityEvent::decode(&message.payload) {
                Ok(EntityEvent::Unknown(question))
                    if subjects::subject_of(&EntityEvent::Unknown(question.clone())).ok().as_ref()
                        == Some(&message.subject) =>
                {
                    inner.receive(question);
                }
                _ => HydrationCount::MalformedEvent.count(),
            },
            // Who asked asks again.
            Some(BusEvent::Gap) => HydrationCount::Gap.count(),
            None => break,
        }
    }
}

impl Inner {
    fn receive(self: &Arc<Self>, question: EntityQuestion) {
        let inner = Arc::clone(self);
        match self.open.admit(question.clone()) {
            Admission::Load => drop(self.tasks.spawn(async move { inner.load(question).await })),
            Admission::Joined => HydrationCount::SourceCollapsed.count(),
            Admission::Answer(answer, as_of) => {
                HydrationCount::SourceCollapsed.count();
                self.tasks.spawn(async move { inner.answer(&question, &answer, as_of).await });
            }
            Admission::Full => HydrationCount::SourceDropped.count(),
        }
    }

    /// Looks once, and answers all who asked the same meanwhile.
    async fn load(&self, question: EntityQuestion) {
        let Ok(Ok(_permit)) = timeout(QUEUE_WAIT_MAX, self.loads.acquire()).await else {
            HydrationCount::SourceDropped.count();
            self.open.finish(&question, None, self.clock.now());
            return;
        };
        HydrationCount::SourceLoaded.count();
        // Whatever changes from here on may not be in the answer.
        let as_of = self.clock.now();
        let load = async { self.source.load(&question).await };
        let answer = match AssertUnwindSafe(load).catch_unwind().await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => self.log_failure(&question, &error.to_string()),
            Err(_) => self.log_failure(&question, "it panicked"),
        };
        for asked in self.open.finish(&question, answer.clone(), as_of) {
            match &answer {
                Some(answer) => self.answer(&asked, answer, as_of).await,
                None => self.source.report_failure(&asked),
            }
        }
    }

    fn log_failure(&self, question: &EntityQuestion, why: &str) -> Option<SourceAnswer> {
        HydrationCount::SourceFailed.count();
        let (entity_id, source_module) = (question.key.id(), self.module.as_str());
        let entity_type = self.entity_type.as_str();
        tracing::error!(
            target: "tidegate::hydration",
            entity_type,
            entity_id,
            source_module,
            correlation_id = %question.correlation_id,
            "the source failed and does not answer: {why}"
        );
        None
    }

    async fn answer(&self, question: &EntityQuestion, answer: &SourceAnswer, as_of: Time) {
        let Some(event) = self.event(question, answer, as_of) else { return };
        log::source(question, &self.module, &event);
        if let Err(error) = self.publish(&event).await {
            HydrationCount::BusFailed.count();
            tracing::warn!(target: "tidegate::hydration", "could not publish an answer: {error}");
        }
    }

    fn event(&self, question: &EntityQuestion, answer: &SourceAnswer, as_of: Time) -> Option<EntityEvent> {
        let (key, correlation_id) = (question.key.clone(), Some(question.correlation_id.clone()));
        let source_module = self.source.module().unwrap_or_else(|| self.module.clone());
        Some(match answer {
            SourceAnswer::Found { data, version } => EntityEvent::Updated(EntityUpdate {
                key,
                correlation_id,
                source_module,
                data: select(data, &question.mode),
                stamp: EntityStamp { version: *version, as_of: Some(as_of) },
                mode: Some(question.mode.clone()),
            }),
            SourceAnswer::NotFound { reason, version } => EntityEvent::NotFound(EntityAbsence {
                key,
                correlation_id,
                source_module,
                reason: *reason,
                stamp: EntityStamp { version: *version, as_of: Some(as_of) },
            }),
            SourceAnswer::Later => return None,
        })
    }

    async fn publish(&self, event: &EntityEvent) -> Result<Delivery, BusError> {
        event.publish(&*self.bus).await
    }
}

impl fmt::Debug for SourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceServer({:?}, {:?})", self.inner.module, self.inner.entity_type)
    }
}
