//! What every handler holds: the engine of one partition, and the house it stands in.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tidegate::{Engine, SharedArchive};
use tidegate_idempotency::{IdempotencyLayer, KeyStore};
use tidegate_store::{Clock, Store};
use tokio_util::sync::CancellationToken;

use crate::config::ApiToken;
use crate::deployment_runner::DeploymentRunner;
use crate::edge::request_id::RequestIds;
use crate::pacing::PacedProxy;
use crate::path_map::PathMap;

/// What a process has once, however many partitions it serves.
pub(crate) struct ServerState {
    pub store: Arc<dyn Store>,
    /// Where what ended is kept for good.
    pub archiving: Option<SharedArchive>,
    pub clock: Arc<dyn Clock>,
    pub tokens: Vec<ApiToken>,
    /// The idempotency keys of callers.
    pub key_store: KeyStore,
    /// What lets a POST with a key happen once.
    pub idempotency: PathMap<IdempotencyLayer>,
    /// What calls through the proxy need.
    pub pacing: PacedProxy,
    /// Upstreams that reach Discord.
    pub discord_upstreams: BTreeSet<String>,
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
pub(crate) struct PartitionState {
    pub engine: Engine,
    pub server: Arc<ServerState>,
    pub deployments: DeploymentRunner,
}

impl PartitionState {
    pub(crate) fn new(engine: Engine, house: Arc<ServerState>) -> Self {
        let deploying = DeploymentRunner::new(engine.clone(), Arc::clone(&house.store));
        Self { engine, server: house, deployments: deploying }
    }
}

/// The state of a partition's router.
pub(crate) type SharedPartition = Arc<PartitionState>;
