//! A running server: store, engine and HTTP put together, and the way they are taken apart again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Code, Engine, Error, Executors, Options, Result};
use tidegate_store::{Clock, WallClock};
use tidegate_upstream::{HttpUpstreams, Upstream};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api;
use crate::app::App;
use crate::config::Config;
use crate::edge::request_id::RequestIds;
use crate::listen::{self, Door};
use crate::telemetry;

/// How long connections may take to end after the engine has drained.
const GOODBYE: Duration = Duration::from_secs(5);
/// How often the metrics are tidied when nobody reads them.
const METRICS_EVERY: Duration = Duration::from_secs(5);

/// A server that takes requests.
pub struct Server {
    /// Where.
    pub addr: SocketAddr,
    /// What works behind it.
    pub engine: Engine,
    /// What its store says of itself.
    pub store: String,
    stopping: CancellationToken,
    /// The door is closed last: while the engine drains, whoever asks is answered.
    closing: CancellationToken,
    tasks: TaskTracker,
    aborts: Vec<tokio::task::AbortHandle>,
}

impl Server {
    /// Opens the store, takes its log over, and serves.
    ///
    /// # Errors
    /// When the address is taken, would be open to all, or the store or an upstream cannot be used.
    pub async fn start(config: Config) -> Result<Self> {
        if let Some(message) = config.exposed() {
            return Err(Error::new(Code::BadConfig, message));
        }
        let clock: Arc<dyn Clock> = Arc::new(WallClock);
        let metrics = telemetry::install()?;
        let listener = bind(config.listen).await?;
        let addr = listener.local_addr().map_err(|error| cannot_listen(config.listen, &error))?;
        let upstreams = HttpUpstreams::new(config.upstreams.clone())
            .map_err(|refusal| Error::new(Code::BadConfig, refusal.to_string()))?;
        let limits = upstreams.limits();
        let store = open_store(config.store_url.clone(), Arc::clone(&clock)).await?;
        let mut executors = Executors::new();
        executors.insert(Arc::from("http"), Arc::new(upstreams) as Arc<dyn Upstream>);
        let engine = Engine::open(Arc::clone(&store), options(&config), executors, limits).await?;
        let (stopping, closing) = (CancellationToken::new(), CancellationToken::new());
        let tasks = TaskTracker::new();
        let described = store.describe();
        let app = Arc::new(App {
            engine: engine.clone(),
            store,
            request_ids: RequestIds::new(clock.now()),
            clock,
            tokens: config.tokens,
            metrics: metrics.clone(),
            stopping: stopping.clone(),
            read_timeout: config.read_timeout,
        });
        let door = Door {
            router: api::router(app),
            connections: Arc::new(Semaphore::new(config.connections_max)),
            read_timeout: config.read_timeout,
            stopping: closing.clone(),
            tasks: tasks.clone(),
        };
        let taking = tasks.spawn(listen::run(listener, door)).abort_handle();
        let tidying = tokio::spawn(tidy(metrics, stopping.clone())).abort_handle();
        Ok(Self { addr, engine, store: described, stopping, closing, tasks, aborts: vec![taking, tidying] })
    }

    /// Resolves when the engine stopped by itself because its store failed; the reason is in it.
    pub async fn failed(&self) -> Error {
        self.engine.stopped().await
    }

    /// Stops taking requests, lets calls under way finish or gives them back, and ends.
    pub async fn shutdown(self) {
        self.stopping.cancel();
        self.engine.drain().await;
        self.closing.cancel();
        self.tasks.close();
        // Whoever does not read its answer cannot hold the server up.
        let _ = tokio::time::timeout(GOODBYE, self.tasks.wait()).await;
        for task in &self.aborts {
            task.abort();
        }
    }
}

async fn tidy(metrics: metrics_exporter_prometheus::PrometheusHandle, stopping: CancellationToken) {
    while tokio::time::timeout(METRICS_EVERY, stopping.cancelled()).await.is_err() {
        metrics.run_upkeep();
    }
}

fn options(config: &Config) -> Options {
    Options {
        node: config.node.clone(),
        workers: config.workers,
        dedupe_window: config.dedupe_window,
        retention: config.retention,
        drain: config.drain,
        ..Options::default()
    }
}

async fn bind(listen: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(listen).await.map_err(|error| cannot_listen(listen, &error))
}

fn cannot_listen(listen: SocketAddr, error: &std::io::Error) -> Error {
    Error::new(Code::BadConfig, format!("Cannot listen on {listen}: {error}."))
}

/// Opening may read and repair files, which is no work for an async task.
async fn open_store(url: String, clock: Arc<dyn Clock>) -> Result<Arc<dyn tidegate_store::Store>> {
    let opened = tokio::task::spawn_blocking(move || tidegate_store_embedded::open(&url, clock)).await;
    match opened {
        Ok(store) => Ok(store?),
        Err(_) => Err(Error::new(Code::Internal, "Opening the store ended before its time.")),
    }
}
