//! The executors of each kind of operation, and the limits that exist before anything is executed.

use std::sync::Arc;

use tidegate::Executors;
use tidegate_discord::deploy::StepExecutor;
use tidegate_discord::deploy::executor::KINDS;
use tidegate_dispatch::KIND as GENERATION;
use tidegate_shopify::executor::{self, BulkUpstreams};
use tidegate_store::{Clock, SharedState, Store, WallClock};
use tidegate_upstream::http::{LimitDefinition, ResponseRelay, UpstreamConfig};
use tidegate_upstream::{FieldRefusal, HttpUpstreams, RemoteKind, Upstream};
use tokio_util::sync::CancellationToken;

use crate::config::{Config, kind};
use crate::dialects::Dialects;
use crate::error::{Error, ErrorCode, Result};
use crate::file_watch;
use crate::generations::GenerationService;
use crate::generations::model_file::ModelFile;

/// The kind of operation that sends one request.
pub(crate) const HTTP: &str = "http";

/// The executors and limits that an engine is opened with.
pub(crate) struct EngineInputs {
    pub executors: Executors,
    pub limits: Vec<LimitDefinition>,
    /// The kinds that are left to remote workers.
    pub remote_kinds: Vec<Arc<str>>,
}

/// What executors share with the rest of the process.
#[derive(Clone, Copy, Default)]
pub(crate) struct SharedParts<'a> {
    /// With a store, bulk operations hold the leases of their shops in it.
    pub store: Option<&'a Arc<dyn Store>>,
    /// Generations, if a model is configured.
    pub generations: Option<&'a GenerationService>,
}

/// Creates the executors.
pub(crate) fn from_config(
    config: &Config,
    dialects: Dialects,
    handover: ResponseRelay,
    shared: SharedParts<'_>,
) -> Result<EngineInputs> {
    let upstreams = HttpUpstreams::with_dialects(dialects)
        .map_err(bad_upstream)?
        .with_response_relay(handover)
        .with_callback_base(config.public_url.clone());
    let mut limits = upstreams.limits();
    let http: Arc<dyn Upstream> = Arc::new(upstreams);
    let mut executors = Executors::new();
    executors.insert(Arc::from(HTTP), Arc::clone(&http));
    let is_shop = |upstream: &&UpstreamConfig| config.shopify.contains_key(&upstream.name);
    let mut shops = BulkUpstreams::new(config.upstreams.iter().filter(is_shop)).map_err(bad_upstream)?;
    if let Some(store) = shared.store {
        let store: Arc<dyn SharedState> = Arc::clone(store) as _;
        let places = |name: &str| config.shopify.get(name).map_or(1, |shop| shop.bulk_at_once);
        shops = shops.with_leases(&store, places).map_err(bad_upstream)?;
    }
    if !shops.is_empty() {
        executors.insert(Arc::from(executor::KIND), Arc::new(shops) as Arc<dyn Upstream>);
    }
    if !config.discord.is_empty() {
        executors.extend(StepExecutor::executors(http));
    }
    if let Some(generations) = shared.generations {
        generations.extend(&mut executors, &mut limits);
    }
    for kind in &config.remote_kinds {
        if kind::is_built_in(&kind.name) {
            if !executors.contains_key(kind.name.as_str()) {
                let message =
                    format!("No upstream needs kind {:?}, which is left to remote workers.", kind.name);
                return Err(Error::new(ErrorCode::BadConfig, message));
            }
            continue;
        }
        let remote = RemoteKind::new(kind);
        limits.extend(remote.limits());
        executors.insert(Arc::from(kind.name.as_str()), Arc::new(remote));
    }
    let remote_kinds = config.remote_kinds.iter().map(|kind| Arc::from(kind.name.as_str())).collect();
    Ok(EngineInputs { executors, limits, remote_kinds })
}

/// Follows the models of a worker's configuration file.
pub struct ModelWatch(Option<Arc<ModelFile>>);

impl ModelWatch {
    /// Reads the models again whenever the file changes, until it is stopped.
    pub async fn run(self, stopping: CancellationToken) {
        if let Some(file) = self.0 {
            file_watch::follow(file, stopping).await;
        }
    }
}

/// The executors of the built-in kinds, for a worker in another process, and what follows their
/// models.
///
/// # Errors
/// When an upstream cannot be used.
pub fn built_in_executors(config: &Config) -> Result<(Executors, ModelWatch)> {
    let dialects = crate::dialects::from_config(config);
    let clock: Arc<dyn Clock> = Arc::new(WallClock);
    let generations = GenerationService::from_config(config, &clock)?;
    let shared = SharedParts { store: None, generations: generations.as_ref() };
    let mut executors = from_config(config, dialects, ResponseRelay::default(), shared)?.executors;
    executors.retain(|kind, _| kind::is_built_in(kind));
    Ok((executors, ModelWatch(generations.and_then(|service| service.model_file))))
}

/// Checks that a worker of these kinds has the keys that their providers ask for.
///
/// # Errors
/// Names the first provider without one.
pub fn check_worker_keys(config: &Config, kinds: &[String]) -> Result<()> {
    if kinds.iter().any(|kind| kind == GENERATION) {
        let checked = config.generations.dispatch.check_keys();
        checked.map_err(|error| Error::new(ErrorCode::BadConfig, error.to_string()))?;
    }
    Ok(())
}

/// The names of the supported kinds of operations.
pub(crate) fn kinds(config: &Config) -> Vec<&str> {
    let bulk = (!config.shopify.is_empty()).then_some(executor::KIND);
    let steps = KINDS.into_iter().filter(|_| !config.discord.is_empty());
    let custom = config.remote_kinds.iter().map(|kind| kind.name.as_str());
    let custom = custom.filter(|kind| !kind::is_built_in(kind));
    std::iter::once(HTTP).chain(bulk).chain(steps).chain(custom).collect()
}

fn bad_upstream(refusal: FieldRefusal) -> Error {
    Error::new(ErrorCode::BadConfig, refusal.to_string()).with_source(refusal)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::Overrides;
    use crate::dialects;

    #[test]
    fn the_kinds_are_those_that_are_carried() {
        let http = "[[upstream]]\nname = \"a\"\nbase_url = \"http://127.0.0.1:1\"\n";
        let shop = http.replace("\"a\"", "\"b\"") + "dialect = \"shopify\"\ntoken_env = \"T\"\n";
        let bot = http.replace("\"a\"", "\"c\"") + "dialect = \"discord\"\ntoken_env = \"T\"\n";
        for upstreams in [http.to_owned(), format!("{http}{shop}"), format!("{http}{shop}{bot}")] {
            let env = |name: &str| (name == "T").then(|| "secret".to_owned());
            let config = Config::parse("t", &upstreams, &env, &Overrides::default(), &[]).unwrap();
            let dialects = dialects::from_config(&config);
            let made = from_config(&config, dialects, ResponseRelay::default(), SharedParts::default());
            let carried = made.unwrap().executors;
            let carried: BTreeSet<_> = carried.keys().map(AsRef::as_ref).collect();
            assert_eq!(kinds(&config).into_iter().collect::<BTreeSet<&str>>(), carried);
        }
    }
}
