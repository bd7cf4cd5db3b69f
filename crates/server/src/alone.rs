//! An engine without a door: for a command that has something carried and then ends. It owns the one partition that it
//! needs; where a server owns it, the server has to be asked instead.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Code, Engine, Error, Options, Result};
use tidegate_store::{SteadyClock, Store};
use tidegate_upstream::http::Handover;
use tokio::time::Instant;

use crate::config::Config;
use crate::front::upstream_place;
use crate::{backend, carriers, dialects};

/// How long a partition is waited for: longer than a process that has died still owns it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(250);
/// How long a call of a process that has died is waited for.
const LEASE: Duration = Duration::from_secs(6);

/// An engine and its store.
pub struct Alone {
    /// The engine.
    pub engine: Engine,
    /// Its store.
    pub store: Arc<dyn Store>,
}

impl Alone {
    /// Opens the configured store and carries for the upstream of this name.
    ///
    /// # Errors
    /// When the store cannot be opened, or somebody else owns what is needed of it.
    pub async fn open(config: &Config, upstream: &str) -> Result<Self> {
        let store = backend::open(&config.store_url, Arc::new(SteadyClock::new())).await?;
        let mut options = Options { lease: LEASE, ..crate::work::options(config) };
        if store.is_shared() {
            store.migrate().await?;
            let partitions = store.partitions(config.cluster.partitions).await?;
            options.partition = upstream_place(upstream, partitions);
            options.node = format!("{}@{}", config.node, std::process::id());
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let made = carriers::of(config, dialects::of(config), Handover::default())?;
            let (store, options) = (Arc::clone(&store), options.clone());
            match Engine::open(Arc::clone(&store), options, made.executors, made.limits).await {
                Ok(engine) => return Ok(Self { engine, store }),
                Err(error) if error.code != Code::StoreRefused || !store.is_shared() => return Err(error),
                Err(error) if Instant::now() >= end => return Err(owned(&error)),
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

fn owned(error: &Error) -> Error {
    let message =
        format!("{} Where a server uses this store, let it do it: --server URL.", sentence(&error.message));
    Error::new(Code::StoreRefused, message)
}

fn sentence(text: &str) -> String {
    let text = text.trim_end_matches('.');
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), chars.as_str()))
}
