//! The contenders: our consumer with its source on a bus, moka's `get_with`, and a map with a mutex
//! for each entity. Each reads an entity for a caller that waits for so long.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use moka::future::Cache;
use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_bus::{Bus, BusFuture, BusSubscription, Delivery, InProcessBus, Subject, SubjectFilter};
use tidegate_hydration::{
    EntityKey, EntitySource, FlightRules, GetOptions, Hydration, Hydrator, MemoryCopies, SourceServer,
};
use tokio::time::timeout;

use super::source::CountingSource;
use super::{NEGATIVES_MAX, WAIT};

const TENANT: &str = "acme";
const TYPE: &str = "customer";

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Contender {
    #[serde(rename = "tidegate-hydration")]
    Tidegate,
    #[serde(rename = "moka get_with")]
    Moka,
    #[serde(rename = "map of mutexes")]
    MutexMap,
}

impl Contender {
    pub(super) const ALL: [Self; 3] = [Self::Tidegate, Self::Moka, Self::MutexMap];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tidegate => "tidegate-hydration",
            Self::Moka => "moka get_with",
            Self::MutexMap => "map of mutexes",
        }
    }
}

/// What a caller got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    Found,
    NotFound,
    /// No answer in time, or a refusal.
    Missed,
}

type Entity = Option<Arc<Map<String, Value>>>;
type Slot = Arc<tokio::sync::Mutex<Option<Entity>>>;

/// A contender, ready to read.
#[derive(Clone)]
pub(super) enum EntityReader {
    Tidegate { hydrator: Hydrator, bus: Arc<CountingBus>, _source: SourceServer },
    Moka { cache: Cache<String, Entity>, source: Arc<CountingSource> },
    MutexMap { slots: Arc<Mutex<HashMap<String, Slot>>>, source: Arc<CountingSource> },
}

impl EntityReader {
    pub(super) async fn start(contender: Contender, source: &Arc<CountingSource>) -> Result<Self, String> {
        let source = Arc::clone(source);
        Ok(match contender {
            Contender::Tidegate => {
                let bus = Arc::new(CountingBus::default());
                let rules = FlightRules {
                    wait_timeout: WAIT,
                    negatives_max: NEGATIVES_MAX,
                    // The rate is for tenants; here it would be what is measured.
                    questions_per_s: u32::MAX,
                    ..FlightRules::default()
                };
                let copies = Arc::new(MemoryCopies::new(NEGATIVES_MAX));
                let builder =
                    Hydrator::builder("bench", Arc::clone(&bus) as Arc<dyn Bus>, copies).rules(rules);
                let hydrator = builder.start().await.map_err(|error| error.to_string())?;
                let source: Arc<dyn EntitySource> = source;
                let server =
                    SourceServer::start("owner", TYPE, Arc::clone(&bus) as Arc<dyn Bus>, source).await;
                Self::Tidegate { hydrator, bus, _source: server.map_err(|error| error.to_string())? }
            }
            Contender::Moka => {
                Self::Moka { cache: Cache::new(u64::try_from(NEGATIVES_MAX).unwrap_or(u64::MAX)), source }
            }
            Contender::MutexMap => Self::MutexMap { slots: Arc::default(), source },
        })
    }

    /// How many questions were asked so far.
    pub(super) fn questions(&self) -> usize {
        match self {
            Self::Tidegate { bus, .. } => bus.questions.load(Ordering::Relaxed),
            Self::Moka { source, .. } | Self::MutexMap { source, .. } => source.asked(),
        }
    }

    pub(super) async fn read(&self, id: String) -> Result<ReadOutcome, String> {
        Ok(match self {
            Self::Tidegate { hydrator, .. } => {
                let key = entity_key(&id)?;
                match hydrator.get(&key, &GetOptions::full()).await {
                    Ok(Hydration::Found(_)) => ReadOutcome::Found,
                    Ok(Hydration::NotFound(_)) => ReadOutcome::NotFound,
                    Ok(Hydration::Deferred | Hydration::Unknown(_)) | Err(_) => ReadOutcome::Missed,
                }
            }
            Self::Moka { cache, source } => {
                let load = async { source.look(&id).await.map(Arc::new) };
                outcome(timeout(WAIT, cache.get_with(id.clone(), load)).await.ok().as_ref())
            }
            Self::MutexMap { slots, source } => {
                let slot = Arc::clone(
                    slots.lock().unwrap_or_else(PoisonError::into_inner).entry(id.clone()).or_default(),
                );
                let load = async {
                    let mut slot = slot.lock().await;
                    if let Some(entity) = &*slot {
                        return entity.clone();
                    }
                    let entity = source.look(&id).await.map(Arc::new);
                    *slot = Some(entity.clone());
                    entity
                };
                outcome(timeout(WAIT, load).await.ok().as_ref())
            }
        })
    }
}

/// A bus within the process that counts questions.
#[derive(Default)]
pub(super) struct CountingBus {
    inner: InProcessBus,
    questions: AtomicUsize,
}

impl Bus for CountingBus {
    fn publish<'a>(&'a self, subject: &'a Subject, payload: Bytes) -> BusFuture<'a, Delivery> {
        if subject.as_str().contains(".questions.") {
            self.questions.fetch_add(1, Ordering::Relaxed);
        }
        self.inner.publish(subject, payload)
    }

    fn subscribe<'a>(&'a self, filter: &'a SubjectFilter) -> BusFuture<'a, BusSubscription> {
        self.inner.subscribe(filter)
    }

    fn close(&self) {
        self.inner.close();
    }
}

pub(super) fn entity_key(id: &str) -> Result<EntityKey, String> {
    EntityKey::new(TENANT, TYPE, id).map_err(|error| error.to_string())
}

fn outcome(entity: Option<&Entity>) -> ReadOutcome {
    match entity {
        Some(Some(_)) => ReadOutcome::Found,
        Some(None) => ReadOutcome::NotFound,
        None => ReadOutcome::Missed,
    }
}
