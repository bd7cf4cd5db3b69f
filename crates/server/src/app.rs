//! What every handler holds: the engine of one partition, and the house it stands in.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tidegate::{Archiving, Engine};
use tidegate_idempotency::{Gate, IdempotencyLayer};
use tidegate_store::{Clock, Store};
use tokio_util::sync::CancellationToken;

use crate::by_path::ByPath;
use crate::config::Token;
use crate::deploying::Deploying;
use crate::edge::request_id::RequestIds;
use crate::pacing::Pacing;

/// What a process has once, however many partitions it serves.
pub(crate) struct House {
    pub store: Arc<dyn Store>,
    /// Where what ended is kept for good.
    pub archiving: Option<Archiving>,
    pub clock: Arc<dyn Clock>,
    pub tokens: Vec<Token>,
    /// The idempotency keys of callers.
    pub gate: Gate,
    /// What lets a POST with a key happen once.
    pub once: ByPath<IdempotencyLayer>,
    /// What calls through the proxy need.
    pub pacing: Pacing,
    /// Upstreams that reach Discord.
    pub bots: BTreeSet<String>,
    /// The description of the API, as this server is configured.
    pub description: String,
    pub metrics: PrometheusHandle,
    pub request_ids: RequestIds,
    /// The server is about to stop: streams and waits end.
    pub stopping: CancellationToken,
    /// How long a body may take to arrive.
    pub read_timeout: Duration,
}

/// Shared by all handlers of a partition.
pub(crate) struct App {
    pub engine: Engine,
    pub house: Arc<House>,
    pub deploying: Deploying,
}

impl App {
    pub(crate) fn new(engine: Engine, house: Arc<House>) -> Self {
        let deploying = Deploying::new(engine.clone(), Arc::clone(&house.store));
        Self { engine, house, deploying }
    }
}

/// The state of a partition's router.
pub(crate) type Shared = Arc<App>;
