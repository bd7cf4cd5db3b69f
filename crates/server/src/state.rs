//! The shared state of handlers: the state of the process, and the engine of one partition.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tidegate::{CompletionKey, Engine, SharedArchive};
use tidegate_dispatch::Generations;
use tidegate_idempotency::{IdempotencyLayer, KeyStore};
use tidegate_store::{Clock, Store};
use tokio_util::sync::CancellationToken;

use crate::api::summary::GroupRanking;
use crate::audit::AuditRecorder;
use crate::confirmation::ConfirmationKey;
use crate::deployment_runner::DeploymentRunner;
use crate::edge::auth_failures::AuthFailures;
use crate::edge::request_id::RequestIds;
use crate::edge::tokens::Tokens;
use crate::generations::GenerationService;
use crate::history::ActivityHistory;
use crate::hydration::EntityService;
use crate::limit_history::LimitHistory;
use crate::pacing::PacedProxy;
use crate::page::PageState;
use crate::path_map::PathMap;
use crate::telemetry::{ReportedLimits, TraceExporter};
use crate::work::{RemoteKinds, WorkHub};

/// The state that a process has once, however many partitions it serves.
pub(crate) struct ServerState {
    pub store: Arc<dyn Store>,
    /// The archive of ended operations.
    pub archiving: Option<SharedArchive>,
    pub clock: Arc<dyn Clock>,
    pub tokens: Arc<Tokens>,
    /// Wrong tokens, by address.
    pub auth_failures: AuthFailures,
    /// The idempotency keys of callers.
    pub key_store: KeyStore,
    /// The layers that make POSTs with an idempotency key run once, by path.
    pub idempotency: PathMap<IdempotencyLayer>,
    /// The state of the paced proxy.
    pub pacing: PacedProxy,
    /// The scheme of its URLs.
    pub scheme: &'static str,
    /// What completion tokens are checked with, once the store is open.
    pub completion_key: OnceLock<CompletionKey>,
    /// What the confirm steps of pages are checked with, once the store is open.
    pub confirmation_key: OnceLock<ConfirmationKey>,
    /// What all pages share.
    pub page: PageState,
    /// Records the commands of operators.
    pub audit: AuditRecorder,
    /// Entities of other modules.
    pub entities: EntityService,
    /// Generations, if a model is configured.
    pub generations: Option<GenerationService>,
    /// The kinds that are left to remote workers.
    pub remote_kinds: RemoteKinds,
    /// Callers that wait for work.
    pub work: Arc<WorkHub>,
    /// The upstreams with the Discord dialect.
    pub discord_upstreams: BTreeSet<String>,
    /// The OpenAPI description, as this server is configured.
    pub description: String,
    pub metrics: PrometheusHandle,
    /// The limits whose metrics this process has reported.
    pub reported_limits: ReportedLimits,
    /// Where the traces of operations are sent.
    pub traces: TraceExporter,
    pub request_ids: RequestIds,
    /// Cancelled when the server is shutting down: streams and long polls end.
    pub stopping: CancellationToken,
    /// How long a body may take to arrive.
    pub read_timeout: Duration,
}

/// The state that all handlers of a partition share.
pub(crate) struct PartitionState {
    pub engine: Engine,
    pub server: Arc<ServerState>,
    pub deployments: DeploymentRunner,
    /// The generations, if they are in this partition and a model is configured.
    pub generations: Option<Generations>,
    /// What happened in the last hour.
    pub history: ActivityHistory,
    /// What was left of the limits in the last hour.
    pub limit_history: LimitHistory,
    /// The groups in which most work waits longest, as last read.
    pub ranking: GroupRanking,
}

impl PartitionState {
    /// `has_generations` says whether the generations are in this partition.
    pub(crate) fn new(engine: Engine, server: Arc<ServerState>, has_generations: bool) -> Self {
        let deploying = DeploymentRunner::new(engine.clone(), Arc::clone(&server.store));
        let service = server.generations.as_ref().filter(|_| has_generations);
        let generations = service.map(|service| service.accompany(&engine, &server.store, &server.clock));
        Self {
            engine,
            server,
            deployments: deploying,
            generations,
            history: ActivityHistory::default(),
            limit_history: LimitHistory::default(),
            ranking: GroupRanking::default(),
        }
    }
}

/// The state of a partition's router.
pub(crate) type SharedPartition = Arc<PartitionState>;
