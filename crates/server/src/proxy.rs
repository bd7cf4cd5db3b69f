//! A running proxy: idempotent POSTs in front of one service, and beside it, on a port of its own, what operators look at.

mod admin;
mod routes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tidegate::{Code, Error, Result};
use tidegate_idempotency::{Gate, sweep_now_and_then};
use tidegate_store::{Shared, SteadyClock};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend;
use crate::config::ProxyConfig;
use crate::edge::front_door::Guarded;
use crate::gate;
use crate::listen::{self, Door, Slots};
use crate::server::tidy;
use crate::telemetry;
use admin::Admin;
use routes::Routes;

/// Connections to the admin port at once.
const ADMINS_MAX: usize = 64;
/// How long those may take to end.
const GOODBYE: Duration = Duration::from_secs(1);

/// A proxy that takes requests.
pub struct ProxyServer {
    /// Where.
    pub addr: SocketAddr,
    /// Where health and metrics are.
    pub admin_addr: SocketAddr,
    /// What its store says of itself.
    pub store: String,
    gate: Gate,
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
    /// When an address is taken, or the store, the upstream or the seal cannot be used.
    pub async fn start(config: ProxyConfig) -> Result<Self> {
        let metrics = telemetry::install()?;
        let (listener, addr) = door(config.listen, "--listen, or listen in the file").await?;
        let (admin_listener, admin_addr) =
            door(config.admin_listen, "--admin, or admin_listen in the file").await?;
        let store = backend::open(&config.store_url, Arc::new(SteadyClock::new())).await?;
        store.migrate().await?;
        let gate = gate::open(config.sealing.as_ref(), Arc::clone(&store))?;
        let gate = gate.with_bodies_max(config.bodies_max);
        let routes = Routes::new(&config, &gate).map_err(|wrong| Error::new(Code::BadConfig, wrong))?;
        let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
        let (clients, admins) = (TaskTracker::new(), TaskTracker::new());
        let described = store.describe();
        let open =
            |router: Guarded, slots: Arc<Slots>, stopping: &CancellationToken, tasks: &TaskTracker| Door {
                router,
                slots,
                read_timeout: config.read_timeout,
                stopping: stopping.clone(),
                tasks: tasks.clone(),
            };
        let service = Guarded::service_behind(Router::new().fallback_service(routes));
        let front = open(service, Slots::new(config.connections_max), &stopping, &clients);
        let keys = admin_addr.ip().is_loopback().then(|| gate.keys());
        let admin = Admin { store: Arc::clone(&store), metrics: metrics.clone(), stopping: stopping.clone() };
        let back =
            open(admin::router(&admin, keys.as_ref()), Slots::reserving(ADMINS_MAX), &closing, &admins);
        let aborts = vec![
            tokio::spawn(listen::run(listener, front)).abort_handle(),
            tokio::spawn(listen::run(admin_listener, back)).abort_handle(),
            tokio::spawn(sweep_now_and_then(store as Arc<dyn Shared>)).abort_handle(),
            tokio::spawn(tidy(metrics, closing.clone())).abort_handle(),
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

    /// Takes no more requests, lets those in work finish and be kept, and ends.
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
                "requests were still in work; their keys are free when their leases run out"
            );
        }
        self.closing.cancel();
        self.admins.close();
        let _ = tokio::time::timeout(GOODBYE, self.admins.wait()).await;
        for task in &self.aborts {
            task.abort();
        }
    }
}

/// Listens; `chosen_by` says how another address is chosen.
async fn door(listen: SocketAddr, chosen_by: &str) -> Result<(TcpListener, SocketAddr)> {
    let cannot = |error: std::io::Error| {
        let message = format!("Cannot listen on {listen}: {error}. Choose another address with {chosen_by}.");
        Error::new(Code::BadConfig, message)
    };
    let listener = TcpListener::bind(listen).await.map_err(cannot)?;
    let addr = listener.local_addr().map_err(cannot)?;
    Ok((listener, addr))
}
