//! A running idempotency proxy in front of one service, with an admin API for operators on its own
//! port.

mod admin;
mod routes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tidegate_idempotency::{KeyStore, sweep_periodically};
use tidegate_store::SharedState;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend;
use crate::config::ProxyConfig;
use crate::edge::guard::GuardedRouter;
use crate::error::{Error, ErrorCode, Result};
use crate::key_store;
use crate::listen::{self, AcceptOptions, Slots};
use crate::server::run_metrics_upkeep;
use crate::telemetry;
use admin::AdminState;
use routes::ProxyService;

/// The maximum number of concurrent connections to the admin port.
const ADMINS_MAX: usize = 64;
/// How long those connections may take to close.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// A running proxy.
pub struct ProxyServer {
    /// The address it listens on.
    pub addr: SocketAddr,
    /// The address of the admin port, with health and metrics.
    pub admin_addr: SocketAddr,
    /// A description of its store.
    pub store: String,
    gate: KeyStore,
    drain: Duration,
    stopping: CancellationToken,
    closing: CancellationToken,
    clients: TaskTracker,
    admins: TaskTracker,
    aborts: Vec<AbortHandle>,
}

impl ProxyServer {
    /// Opens the store and serves.
    ///
    /// # Errors
    /// When an address is in use, or the store, the upstream or the sealing keys cannot be used.
    pub async fn start(config: ProxyConfig) -> Result<Self> {
        let metrics = telemetry::install()?;
        let (listener, addr) = bind(config.listen, "--listen, or listen in the file").await?;
        let (admin_listener, admin_addr) =
            bind(config.admin_listen, "--admin, or admin_listen in the file").await?;
        let store = backend::open(&config.store_url).await?;
        store.migrate().await?;
        let gate = key_store::open(config.sealing.as_ref(), Arc::clone(&store))?;
        let gate = gate.with_bodies_max(config.bodies_max);
        let routes =
            ProxyService::new(&config, &gate).map_err(|wrong| Error::new(ErrorCode::BadConfig, wrong))?;
        let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
        let (clients, admins) = (TaskTracker::new(), TaskTracker::new());
        let described = store.describe();
        let open = |router: GuardedRouter,
                    slots: Arc<Slots>,
                    stopping: &CancellationToken,
                    tasks: &TaskTracker| AcceptOptions {
            router,
            slots,
            certificate: None,
            read_timeout: config.read_timeout,
            stopping: stopping.clone(),
            tasks: tasks.clone(),
        };
        let service = GuardedRouter::without_checks(Router::new().fallback_service(routes));
        let public = open(service, Slots::new(config.connections_max), &stopping, &clients);
        let keys = admin_addr.ip().is_loopback().then(|| gate.keys());
        let admin =
            AdminState { store: Arc::clone(&store), metrics: metrics.clone(), stopping: stopping.clone() };
        let private = open(
            admin::router(&admin, keys.as_ref()),
            Slots::new_with_reserve(ADMINS_MAX),
            &closing,
            &admins,
        );
        let aborts = vec![
            tokio::spawn(listen::run(listener, public)).abort_handle(),
            tokio::spawn(listen::run(admin_listener, private)).abort_handle(),
            tokio::spawn(sweep_periodically(store as Arc<dyn SharedState>)).abort_handle(),
            tokio::spawn(run_metrics_upkeep(metrics, closing.clone())).abort_handle(),
        ];
        let drain = config.drain;
        Ok(Self {
            addr,
            admin_addr,
            store: described,
            gate,
            drain,
            stopping,
            closing,
            clients,
            admins,
            aborts,
        })
    }

    /// Accepts no more requests, lets those in flight finish and stores their responses, and ends.
    pub async fn shutdown(self) {
        self.stopping.cancel();
        self.clients.close();
        let finished = async {
            self.clients.wait().await;
            self.gate.drain().await;
        };
        if tokio::time::timeout(self.drain, finished).await.is_err() {
            let after = self.drain;
            tracing::warn!(
                ?after,
                "requests were still in flight; their keys are released when their leases expire"
            );
        }
        self.closing.cancel();
        self.admins.close();
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.admins.wait()).await;
        for task in &self.aborts {
            task.abort();
        }
    }
}

/// Binds an address; `chosen_by` names the setting that selects another one.
async fn bind(listen: SocketAddr, chosen_by: &str) -> Result<(TcpListener, SocketAddr)> {
    let cannot = |error: std::io::Error| {
        let message = format!("Cannot listen on {listen}: {error}. Choose another address with {chosen_by}.");
        Error::new(ErrorCode::BadConfig, message)
    };
    let listener = TcpListener::bind(listen).await.map_err(cannot)?;
    let addr = listener.local_addr().map_err(cannot)?;
    Ok((listener, addr))
}
