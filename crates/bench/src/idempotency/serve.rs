//! The child process: serves one thing, prints its address on one line, and exits with the parent.
//! What is measured is not known here.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use intake::{ItemStore, router};
use serde::{Deserialize, Serialize};
use tidegate_idempotency::{IdempotencyLayer, KeyStore, Policy, ScopeExtractor};
use tidegate_server::ProxyServer;
use tidegate_server::config::{ProxyConfig, ProxyOverrides};
use tidegate_store::{SharedState, Store};
use tokio::net::TcpListener;

use super::items::{ItemCount, counting_service};
use crate::scratch;
use crate::server_process::{ServerProcess, announce_addr, parent_gone};

/// The header that identifies callers, as in the example.
const CALLER: &str = "x-api-key";
/// Interval between two clean-ups, where keys are short-lived.
const SWEEP: Duration = Duration::from_millis(250);
const SWEEP_STEP: usize = 1_000;

/// What to serve.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ServeMode {
    /// The service.
    Bare,
    /// The service with the layer on it.
    Layer(KeyOptions),
    /// The proxy, in front of a service.
    Proxy { upstream: SocketAddr, keys: KeyOptions },
    /// A service that stores no items, with the layer on it, cleaning up all the time.
    Forgetful(KeyOptions),
}

/// The store of the keys and how long they live.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct KeyOptions {
    pub(super) store: String,
    pub(super) keep_s: u64,
}

impl KeyOptions {
    async fn open(&self) -> Result<Arc<dyn Store>, String> {
        let store = scratch::open(&self.store).await?;
        store.migrate().await.map_err(|error| error.to_string())?;
        Ok(store)
    }

    fn layer(&self, store: &Arc<dyn Store>) -> Result<IdempotencyLayer, String> {
        let gate = KeyStore::new(Arc::clone(store) as Arc<dyn SharedState>);
        let policy = Policy::default().with_ttl(Duration::from_secs(self.keep_s));
        let caller = CALLER.parse().map_err(|_| format!("{CALLER} is not the name of a header"))?;
        IdempotencyLayer::new(gate, policy, ScopeExtractor::header(caller)).map_err(|error| error.to_string())
    }
}

/// Serves until the parent is gone; then the result says so.
pub(super) async fn serve_until_parent_exits(asked: &str) -> Result<String, String> {
    let serve: ServeMode = serde_json::from_str(asked).map_err(|error| format!("--serve: {error}"))?;
    let gone = parent_gone();
    tokio::select! {
        ended = serve.run() => ended?,
        // A message and a closed channel mean the same.
        _ = gone => {}
    }
    Ok("no one is left to serve".into())
}

impl ServeMode {
    /// Starts a child that serves it.
    pub(super) async fn start(&self) -> Result<ServerProcess, String> {
        let asked = serde_json::to_string(self).map_err(|error| error.to_string())?;
        ServerProcess::start_self(&["--serve", &asked]).await
    }

    async fn run(self) -> Result<(), String> {
        let shelf = ItemStore::default();
        let counted = shelf.clone();
        let count = get(async move || counted.count().to_string());
        match self {
            Self::Bare => serve(router(shelf).route("/count", count)).await,
            Self::Layer(keys) => {
                let layer = keys.layer(&keys.open().await?)?;
                serve(Router::new().route("/count", count).merge(router(shelf).layer(layer))).await
            }
            Self::Forgetful(keys) => {
                let store = keys.open().await?;
                let (layer, counted) = (keys.layer(&store)?, ItemCount::default());
                let service = counting_service(Arc::clone(&counted)).layer(layer);
                let count = get(async move || counted.load(std::sync::atomic::Ordering::Relaxed).to_string());
                tokio::select! {
                    ended = serve(Router::new().route("/count", count).merge(service)) => ended,
                    ended = sweep(store) => ended,
                }
            }
            Self::Proxy { upstream, keys } => proxy(upstream, keys).await,
        }
    }
}

async fn serve(service: Router) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("a service cannot be started: {error}");
    let listener = TcpListener::bind(any_local_port()).await.map_err(failed)?;
    announce_addr(listener.local_addr().map_err(failed)?)?;
    axum::serve(listener, service).await.map_err(failed)
}

async fn proxy(upstream: SocketAddr, keys: KeyOptions) -> Result<(), String> {
    let over = ProxyOverrides {
        upstream: Some(format!("http://{upstream}")),
        listen: Some(any_local_port()),
        admin_listen: Some(any_local_port()),
        store_url: Some(keys.store),
        ttl: Some(Duration::from_secs(keys.keep_s)),
        scope_header: Some(CALLER.to_owned()),
        unscoped: false,
    };
    // The environment configures the user's own proxy, not this one.
    let config = ProxyConfig::parse("bench", "", &|_| None, &over, &[]).map_err(|wrong| wrong.to_string())?;
    let proxy = ProxyServer::start(config).await.map_err(|error| error.to_string())?;
    announce_addr(proxy.addr)?;
    std::future::pending().await
}

/// Removes keys as soon as they have expired.
async fn sweep(store: Arc<dyn Store>) -> Result<(), String> {
    loop {
        let swept = store.sweep_records(SWEEP_STEP).await.map_err(|error| error.to_string())?;
        if swept < SWEEP_STEP {
            tokio::time::sleep(SWEEP).await;
        }
    }
}

fn any_local_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}
