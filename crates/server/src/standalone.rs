//! An engine without an HTTP server, for a command that executes operations and then ends. It owns
//! the one partition that it needs; if a server owns that partition, the command has to use the
//! server.

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Engine, ErrorKind};
use tidegate_core::Placement;
use tidegate_store::Store;
use tidegate_upstream::http::ResponseRelay;
use tokio::time::Instant;

use crate::config::Config;
use crate::error::{Error, ErrorCode, Result, sentence};
use crate::executors::SharedParts;
use crate::{backend, dialects, executors};

/// How long to wait for the partition: longer than the lease of a process that died.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);
/// How long to wait for calls of a process that died.
const LEASE: Duration = Duration::from_secs(6);

/// An engine and its store.
pub struct StandaloneEngine {
    /// The engine.
    pub engine: Engine,
    /// Its store.
    pub store: Arc<dyn Store>,
}

impl StandaloneEngine {
    /// Opens the configured store and an engine for the upstream of this name.
    ///
    /// # Errors
    /// When the store cannot be opened, or another process owns the partition.
    pub async fn open(config: &Config, upstream: &str) -> Result<Self> {
        let store = backend::open(&config.store_url).await?;
        let mut options = crate::node_runtime::engine_options(config).with_lease(LEASE);
        if store.is_shared() {
            store.migrate().await?;
            let partitions = store.ensure_partitions(config.cluster.partitions).await?;
            options.partition = Placement::Upstream(upstream).partition(partitions);
            options.node = format!("{}@{}", config.node, std::process::id());
        }
        let end = Instant::now() + OPEN_TIMEOUT;
        loop {
            let dialects = dialects::from_config(config);
            let shared = SharedParts { store: Some(&store), ..SharedParts::default() };
            let made = executors::from_config(config, dialects, ResponseRelay::default(), shared)?;
            let (store, options) = (Arc::clone(&store), options.clone());
            match Engine::builder(Arc::clone(&store))
                .options(options)
                .executors(made.executors)
                .remote_kinds(made.remote_kinds)
                .limits(made.limits)
                .open()
                .await
            {
                Ok(engine) => return Ok(Self { engine, store }),
                Err(error) if error.kind != ErrorKind::StoreRefused || !store.is_shared() => {
                    return Err(error.into());
                }
                Err(error) if Instant::now() >= end => return Err(already_owned(&error)),
                Err(_) => tokio::time::sleep(RETRY_INTERVAL).await,
            }
        }
    }
}

fn already_owned(error: &tidegate::Error) -> Error {
    let message =
        format!("{} If a server uses this store, run it there: --server URL.", sentence(&error.message));
    Error::new(ErrorCode::StoreRefused, message)
}
