//! A running server: starts the store, the engines and the HTTP listener, and shuts them down in
//! order.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidegate::SharedArchive;
use tidegate_core::model::Counts;
use tidegate_idempotency::{KeyStore, sweep_periodically};
use tidegate_store::{Clock, WallClock};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api;
use crate::audit::AuditRecorder;
use crate::backend;
use crate::config::Config;
use crate::dialects;
use crate::edge::auth_failures::AuthFailures;
use crate::edge::idempotency;
use crate::edge::request_id::RequestIds;
use crate::edge::tokens::Tokens;
use crate::error::{Error, ErrorCode, Result};
use crate::file_watch;
use crate::generations::GenerationService;
use crate::hydration::EntityService;
use crate::key_store;
use crate::listen::{self, AcceptOptions, Certificate, Slots};
use crate::node_runtime::{NodeRuntime, node_name};
use crate::pacing::PacedProxy;
use crate::page::PageState;
use crate::state::ServerState;
use crate::telemetry::{self, ReportedLimits, TraceExporter};
use crate::work::RemoteKinds;

/// How long the shutdown may take after the drain time of calls in flight.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The part of that which is reserved for closing connections.
const CLOSE: Duration = Duration::from_secs(1);
/// How often the metrics are maintained when no one scrapes them.
const METRICS_EVERY: Duration = Duration::from_secs(5);

/// A running server.
pub struct Server {
    /// The address it listens on.
    pub addr: SocketAddr,
    /// The scheme of its URLs: `https` with a certificate, otherwise `http`.
    pub scheme: &'static str,
    /// A description of its store.
    pub store: String,
    /// A description of its archive, if it has one.
    pub archive: Option<String>,
    work: NodeRuntime,
    state: Arc<ServerState>,
    gate: KeyStore,
    /// The drain time of calls in flight at shutdown.
    drain: Duration,
    stopping: CancellationToken,
    /// Closes the listener, last: while calls in flight are drained, requests still get a response.
    closing: CancellationToken,
    tasks: TaskTracker,
    aborts: Vec<tokio::task::AbortHandle>,
}

impl Server {
    /// Opens the store, takes over its operations, alone or as a node of a cluster, and serves.
    ///
    /// # Errors
    /// When the address is in use or would be open to everyone, or the store or an upstream cannot
    /// be used.
    pub async fn start(config: Config) -> Result<Self> {
        if let Some(message) = config.exposure_problem() {
            return Err(Error::new(ErrorCode::BadConfig, message));
        }
        let clock: Arc<dyn Clock> = Arc::new(WallClock);
        let tokens = Arc::new(Tokens::open(&config)?);
        let certificate = config.tls.clone().map(Certificate::open).transpose()?.map(Arc::new);
        let metrics = telemetry::install()?;
        let listener = bind(config.listen).await?;
        let addr = listener.local_addr().map_err(|error| cannot_listen(config.listen, error))?;
        let (store, archive) =
            backend::open_archived(&config.store_url, config.archive_url.as_deref()).await?;
        let described = (store.describe(), archive.as_ref().map(|archive| archive.describe()));
        let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
        let tasks = TaskTracker::new();
        let gate = key_store::open(config.idempotency.sealing.as_ref(), Arc::clone(&store))?;
        let dialects = dialects::from_config(&config);
        let state = Arc::new(ServerState {
            idempotency: idempotency::layers(&config, &gate)?,
            key_store: gate.clone(),
            pacing: PacedProxy::new(config.pacing, &dialects),
            scheme: if config.tls.is_some() { "https" } else { "http" },
            completion_key: OnceLock::new(),
            confirmation_key: OnceLock::new(),
            page: PageState::default(),
            audit: AuditRecorder::new(&node_name(&config, addr, &*store)?, clock.now()),
            entities: EntityService::start(&config, Arc::clone(&store), Arc::clone(&clock)).await?,
            generations: GenerationService::from_config(&config, &clock)?,
            remote_kinds: RemoteKinds::from_config(&config),
            work: Arc::default(),
            discord_upstreams: config.discord.keys().cloned().collect(),
            description: api::openapi::describe(&config),
            store: Arc::clone(&store),
            archiving: archive.map(SharedArchive::new),
            request_ids: RequestIds::new(clock.now()),
            clock,
            tokens: Arc::clone(&tokens),
            auth_failures: AuthFailures::new(config.auth.failures_per_minute),
            metrics: metrics.clone(),
            reported_limits: ReportedLimits::default(),
            traces: TraceExporter::start(&config),
            stopping: stopping.clone(),
            read_timeout: config.read_timeout,
        });
        let work = NodeRuntime::start(&config, addr, Arc::clone(&state), dialects).await?;
        state.entities.answer_from_upstreams(&config.sources, &work.paced_caller()).await?;
        let door = AcceptOptions {
            router: work.router(),
            slots: Slots::new_with_reserve(config.connections_max),
            certificate: certificate.clone(),
            read_timeout: config.read_timeout,
            stopping: closing.clone(),
            tasks: tasks.clone(),
        };
        let taking = tasks.spawn(listen::run(listener, door)).abort_handle();
        work.wait_until_joined().await;
        let tidying = tokio::spawn(run_metrics_upkeep(metrics, stopping.clone())).abort_handle();
        let sweeping = tokio::spawn(sweep_periodically(store)).abort_handle();
        let mut aborts = vec![taking, tidying, sweeping];
        aborts.push(tokio::spawn(file_watch::follow(tokens, stopping.clone())).abort_handle());
        let certificate = certificate.map(|file| tokio::spawn(file_watch::follow(file, stopping.clone())));
        let models = state.generations.as_ref().and_then(|service| service.model_file.clone());
        let models = models.map(|file| tokio::spawn(file_watch::follow(file, stopping.clone())));
        aborts.extend(certificate.into_iter().chain(models).map(|task| task.abort_handle()));
        let (store, archive) = described;
        let drain = config.drain;
        let scheme = state.scheme;
        Ok(Self { addr, scheme, store, archive, work, state, gate, drain, stopping, closing, tasks, aborts })
    }

    /// Resolves with the reason when the store failed and nothing can be served any more.
    pub async fn failed(&self) -> Error {
        self.work.failed().await
    }

    /// Counts the operations of this server by state.
    ///
    /// # Errors
    /// When an engine is shutting down.
    pub async fn counts(&self) -> Result<Counts> {
        self.work.counts().await
    }

    /// Lets calls in flight finish or returns them to the queue, and accepts nothing more. Requests
    /// still get a response.
    pub async fn drain(&self) {
        self.work.drain().await;
    }

    /// Stops accepting requests, lets calls in flight finish or returns them to the queue, and
    /// ends: within the drain time plus five seconds, whatever the store does.
    pub async fn shutdown(self) {
        let end_by = Instant::now() + self.drain + SHUTDOWN_TIMEOUT;
        self.stopping.cancel();
        self.state.pacing.wait_for_stop_handled().await;
        if tokio::time::timeout_at(end_by - CLOSE, self.work.drain()).await.is_err() {
            tracing::error!(
                "the store did not accept the last writes in time: calls in flight have an unknown \
                 outcome, and this node's partitions are released when their leases expire"
            );
        }
        self.state.entities.close().await;
        self.state.traces.flush().await;
        self.closing.cancel();
        self.tasks.close();
        // Neither a client that does not read its response nor a store that accepts no write may
        // delay the shutdown.
        let answered = async { tokio::join!(self.tasks.wait(), self.gate.drain()) };
        let _ = tokio::time::timeout_at(end_by.min(Instant::now() + SHUTDOWN_TIMEOUT), answered).await;
        for task in &self.aborts {
            task.abort();
        }
        // What they hold, such as the store, can be opened again when this returns.
        let ended = async {
            while self.aborts.iter().any(|task| !task.is_finished()) {
                tokio::task::yield_now().await;
            }
        };
        let _ = tokio::time::timeout_at(end_by, ended).await;
    }
}

pub(crate) async fn run_metrics_upkeep(
    metrics: metrics_exporter_prometheus::PrometheusHandle,
    stopping: CancellationToken,
) {
    while tokio::time::timeout(METRICS_EVERY, stopping.cancelled()).await.is_err() {
        metrics.run_upkeep();
    }
}

pub(crate) async fn bind(listen: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(listen).await.map_err(|error| cannot_listen(listen, error))
}

fn cannot_listen(listen: SocketAddr, error: std::io::Error) -> Error {
    let message = format!("Cannot listen on {listen}: {error}.");
    Error::new(ErrorCode::BadConfig, message).with_source(error)
}
