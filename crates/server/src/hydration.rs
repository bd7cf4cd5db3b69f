//! Hydration for modules in other languages: one consumer for all callers, sources that are
//! registered by URL, and upstreams that are sources. It decides nothing; see `tidegate_hydration`.

mod claimed_source;
mod entity_read;
mod reporting_source;
mod upstream_source;
mod url_source;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_bus::{Bus, Delivery};
use tidegate_hydration::{EntityEvent, EntitySource, Hydrator, MemoryCopies, SourceServer};
use tidegate_store::{Clock, SharedState, Store};

use crate::bus::{self, BusScheme};
use crate::config::{Config, SourceConfig};
use crate::error::{Error, ErrorCode, Result};
use crate::pacing::caller::PacedCaller;
use claimed_source::ClaimedSource;
use reporting_source::ReportingSource;
use upstream_source::UpstreamSource;
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
    /// The store, if other nodes use it and the bus.
    shared: Option<Arc<dyn Store>>,
    /// How long a question is worth answering.
    window: Duration,
}

/// Where the answers about a type come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SourceOrigin {
    /// A URL that was registered.
    Url(String),
    /// An upstream, by configuration: its name, and the path that is read.
    Upstream { name: String, path: String },
}

impl SourceOrigin {
    /// The origin as readers see it: without the path and query of a URL, by which a source may
    /// know its caller.
    pub(crate) fn redacted(&self) -> Self {
        let Self::Url(url) = self else { return self.clone() };
        let host_at = url.find("://").map_or(0, |at| at + "://".len());
        let host_end = url[host_at..].find(['/', '?', '#']).map_or(url.len(), |at| host_at + at);
        let (host, rest) = url.split_at(host_end);
        Self::Url(if matches!(rest, "" | "/") { url.clone() } else { format!("{host}/…") })
    }
}

struct RegisteredSource {
    origin: SourceOrigin,
    /// Answers as long as it is kept.
    _server: SourceServer,
}

impl EntityService {
    /// Starts the consumer.
    ///
    /// # Errors
    /// When the bus cannot be subscribed to.
    pub(crate) async fn start(config: &Config, store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Result<Self> {
        let bus = bus::open(&config.bus_url).await?;
        // Nodes that do not hear each other's answers have nothing to share.
        let is_bus_shared = BusScheme::of(&config.bus_url).is_some_and(BusScheme::is_shared);
        let shared = Some(store).filter(|store| is_bus_shared && store.is_shared());
        let config = &config.hydration;
        let copies = Arc::new(MemoryCopies::new(config.copies_max));
        let mut builder = Hydrator::builder(MODULE, Arc::clone(&bus), copies).rules(config.rules.clone());
        if let Some(store) = &shared {
            builder = builder.shared(Arc::clone(store) as Arc<dyn SharedState>);
        }
        let hydrator = builder.start().await.map_err(|error| {
            Error::new(ErrorCode::BadConfig, format!("Hydration cannot start: {error}.")).with_source(error)
        })?;
        let window = config.rules.in_flight_window;
        Ok(Self { hydrator, bus, clock, sources: Mutex::default(), shared, window })
    }

    fn sources(&self) -> MutexGuard<'_, BTreeMap<String, RegisteredSource>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers for the types whose sources are upstreams.
    ///
    /// # Errors
    /// When the bus cannot be subscribed to.
    pub(crate) async fn answer_from_upstreams(
        &self,
        sources: &[SourceConfig],
        caller: &PacedCaller,
    ) -> Result<()> {
        for config in sources {
            let origin = SourceOrigin::Upstream { name: config.upstream.clone(), path: config.path.clone() };
            let read = UpstreamSource::new(config.clone(), caller.clone(), self.window);
            let source: Arc<dyn EntitySource> = match &self.shared {
                // Every node has it.
                Some(store) => {
                    let (store, hydrator) =
                        (Arc::clone(store) as Arc<dyn SharedState>, self.hydrator.clone());
                    Arc::new(ClaimedSource::new(Arc::new(read), store, hydrator, self.window))
                }
                None => Arc::new(read),
            };
            self.add_source(&config.entity_type, origin, source).await?;
        }
        Ok(())
    }

    /// Registers the URL that answers for a type, or replaces it.
    pub(crate) async fn register(&self, entity_type: &str, url: &str) -> Result<()> {
        self.check_replaceable(entity_type)?;
        let source = UrlSource::new(url, Arc::clone(&self.clock))?;
        if self.sources().len() >= SOURCES_MAX && !self.sources().contains_key(entity_type) {
            let message = format!("At most {SOURCES_MAX} types may have a source.");
            return Err(Error::new(ErrorCode::Invalid, message));
        }
        self.add_source(entity_type, SourceOrigin::Url(url.to_owned()), Arc::new(source)).await
    }

    async fn add_source(
        &self,
        entity_type: &str,
        origin: SourceOrigin,
        source: Arc<dyn EntitySource>,
    ) -> Result<()> {
        let source = Arc::new(ReportingSource::new(source, self.hydrator.clone()));
        let server = SourceServer::start(MODULE, entity_type, Arc::clone(&self.bus), source).await;
        let server = server.map_err(|error| {
            let message = format!("The source cannot be registered: {error}.");
            Error::new(ErrorCode::Invalid, message).field("type").with_source(error)
        })?;
        let registered = RegisteredSource { origin, _server: server };
        self.sources().insert(entity_type.to_owned(), registered);
        self.hydrator.source_started(entity_type);
        Ok(())
    }

    /// Refuses to replace or remove a source that the configuration has.
    fn check_replaceable(&self, entity_type: &str) -> Result<()> {
        let sources = self.sources();
        let Some(SourceOrigin::Upstream { name, .. }) = sources.get(entity_type).map(|source| &source.origin)
        else {
            return Ok(());
        };
        let message = format!("The source of {entity_type:?} is the upstream {name:?}, by configuration.");
        Err(Error::new(ErrorCode::Invalid, message).field("type"))
    }

    /// Removes the source of a type; `false` when there is none.
    pub(crate) fn unregister(&self, entity_type: &str) -> Result<bool> {
        self.check_replaceable(entity_type)?;
        Ok(self.sources().remove(entity_type).is_some())
    }

    /// The sources: type and origin. An origin may contain a secret.
    pub(crate) fn registered(&self) -> Vec<(String, SourceOrigin)> {
        self.sources().iter().map(|(kind, source)| (kind.clone(), source.origin.clone())).collect()
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
        // Sources may hold what holds this.
        self.sources().clear();
        self.hydrator.close().await;
    }
}
