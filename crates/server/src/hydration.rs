//! Hydration for modules in other languages: one consumer for all callers, and sources that are
//! registered by URL. It decides nothing; see `tidegate_hydration`.

mod url_source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_bus::{Bus, Delivery, InProcessBus};
use tidegate_hydration::{EntityEvent, EntitySource, Hydrator, MemoryCopies, SourceServer};
use tidegate_store::Clock;

use crate::config::HydrationConfig;
use crate::error::{Error, ErrorCode, Result};
use url_source::UrlSource;

/// The module name of this server in questions and answers.
const MODULE: &str = "tidegate";
/// Most types with a registered source.
const SOURCES_MAX: usize = 1_000;

/// The consumer, the bus, and the registered sources.
pub(crate) struct EntityService {
    pub hydrator: Hydrator,
    bus: Arc<dyn Bus>,
    clock: Arc<dyn Clock>,
    sources: Mutex<BTreeMap<String, RegisteredSource>>,
}

struct RegisteredSource {
    url: String,
    /// Answers as long as it is kept.
    _server: SourceServer,
}

impl EntityService {
    /// Starts the consumer.
    ///
    /// # Errors
    /// When the bus cannot be subscribed to.
    pub(crate) async fn start(config: &HydrationConfig, clock: Arc<dyn Clock>) -> Result<Self> {
        let bus: Arc<dyn Bus> = Arc::new(InProcessBus::new());
        let copies = Arc::new(MemoryCopies::new(config.copies_max));
        let builder = Hydrator::builder(MODULE, Arc::clone(&bus), copies).rules(config.rules.clone());
        let hydrator = builder.start().await.map_err(|error| {
            Error::new(ErrorCode::BadConfig, format!("Hydration cannot start: {error}.")).with_source(error)
        })?;
        Ok(Self { hydrator, bus, clock, sources: Mutex::default() })
    }

    fn sources(&self) -> MutexGuard<'_, BTreeMap<String, RegisteredSource>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the URL that answers for a type, or replaces it.
    pub(crate) async fn register(&self, entity_type: &str, url: &str) -> Result<()> {
        let source: Arc<dyn EntitySource> =
            Arc::new(UrlSource::new(url, Arc::clone(&self.clock), self.hydrator.clone())?);
        if self.sources().len() >= SOURCES_MAX && !self.sources().contains_key(entity_type) {
            let message = format!("At most {SOURCES_MAX} types may have a source.");
            return Err(Error::new(ErrorCode::Invalid, message));
        }
        let server = SourceServer::start(MODULE, entity_type, Arc::clone(&self.bus), source).await;
        let server = server.map_err(|error| {
            let message = format!("The source cannot be registered: {error}.");
            Error::new(ErrorCode::Invalid, message).field("type").with_source(error)
        })?;
        let registered = RegisteredSource { url: url.to_owned(), _server: server };
        self.sources().insert(entity_type.to_owned(), registered);
        self.hydrator.source_started(entity_type);
        Ok(())
    }

    /// Removes the source of a type; `false` when there is none.
    pub(crate) fn unregister(&self, entity_type: &str) -> bool {
        self.sources().remove(entity_type).is_some()
    }

    /// The registered sources: type and URL.
    pub(crate) fn registered(&self) -> Vec<(String, String)> {
        self.sources().iter().map(|(kind, source)| (kind.clone(), source.url.clone())).collect()
    }

    /// Publishes an answer, or a change that no one asked about.
    pub(crate) async fn publish(&self, event: &EntityEvent) -> Result<Delivery> {
        event.publish(&*self.bus).await.map_err(|error| {
            let message = format!("The event could not be published: {error}.");
            Error::new(ErrorCode::StoreUnavailable, message).with_source(error)
        })
    }

    /// Stops; whoever waits fails.
    pub(crate) async fn close(&self) {
        self.hydrator.close().await;
    }
}
