//! What a child does: serve one thing, say on one line where, and end with the parent. What is measured is not known here.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use intake::{Shelf, items};
use serde::{Deserialize, Serialize};
use tidegate_idempotency::{Gate, IdempotencyLayer, Policy, Scoping};
use tidegate_server::ProxyServer;
use tidegate_server::config::{ProxyConfig, ProxyOverrides};
use tidegate_store::{Shared, Store};
use tokio::net::TcpListener;

use super::items::{Count, forgotten};
use crate::scratch;
use crate::serving::{Serving, parent_gone, tell};

/// Tells callers apart, as in the example.
const CALLER: &str = "x-api-key";
/// Time between two clean-ups, where keys live short.
const SWEEP: Duration = Duration::from_millis(250);
const SWEEP_STEP: usize = 1_000;

/// What to serve.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Serve {
    /// The service.
    Bare,
    /// The service with the layer on it.
    Layer(Keys),
    /// The proxy, in front of a service.
    Proxy { upstream: SocketAddr, keys: Keys },
    /// A service that keeps no items, with the layer on it, cleaning up all the time.
    Forgetful(Keys),
}

/// Where keys are kept and for how long.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Keys {
    pub(super) store: String,
    pub(super) keep_s: u64,
}

impl Keys {
    async fn open(&self) -> Result<Arc<dyn Store>, String> {
        let store = scratch::open(&self.store).await?;
        store.migrate().await.map_err(|error| error.to_string())?;
        Ok(store)
    }

    fn layer(&self, store: &Arc<dyn Store>) -> Result<IdempotencyLayer, String> {
        let gate = Gate::new(Arc::clone(store) as Arc<dyn Shared>);
        let policy = Policy { ttl: Duration::from_secs(self.keep_s), ..Policy::default() };
        let caller = CALLER.parse().map_err(|_| format!("{CALLER} is no name of a header"))?;
        IdempotencyLayer::new(gate, policy, Scoping::header(caller)).map_err(|error| error.to_string())
    }
}

/// Serves until the parent is gone; then the answer says so.
pub(super) async fn until_alone(asked: &str) -> Result<String, String> {
    let serve: Serve = serde_json::from_str(asked).map_err(|error| format!("--serve: {error}"))?;
    let gone = parent_gone();
    tokio::select! {
        ended = serve.run() => ended?,
        // Either word means the same.
        _ = gone => {}
    }
    Ok("nobody is left to serve for".into())
}

impl Serve {
    /// Starts a child that serves it.
    pub(super) async fn start(&self) -> Result<Serving, String> {
        let asked = serde_json::to_string(self).map_err(|error| error.to_string())?;
        Serving::ours(&["--serve", &asked]).await
    }

    async fn run(self) -> Result<(), String> {
        let shelf = Shelf::default();
        let counted = shelf.clone();
        let count = get(async move || counted.count().to_string());
        match self {
            Self::Bare => serve(items(shelf).route("/count", count)).await,
            Self::Layer(keys) => {
                let layer = keys.layer(&keys.open().await?)?;
                serve(Router::new().route("/count", count).merge(items(shelf).layer(layer))).await
            }
            Self::Forgetful(keys) => {
                let store = keys.open().await?;
                let (layer, counted) = (keys.layer(&store)?, Count::default());
                let service = forgotten(Arc::clone(&counted)).layer(layer);
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
    let listener = TcpListener::bind(nowhere_yet()).await.map_err(failed)?;
    tell(listener.local_addr().map_err(failed)?)?;
    axum::serve(listener, service).await.map_err(failed)
}

async fn proxy(upstream: SocketAddr, keys: Keys) -> Result<(), String> {
    let over = ProxyOverrides {
        upstream: Some(format!("http://{upstream}")),
        listen: Some(nowhere_yet()),
        admin_listen: Some(nowhere_yet()),
        store_url: Some(keys.store),
        ttl: Some(Duration::from_secs(keys.keep_s)),
        scope_header: Some(CALLER.to_owned()),
        unscoped: false,
    };
    // What the environment says is for the user's own proxy.
    let config = ProxyConfig::parse("bench", "", &|_| None, &over, &[]).map_err(|wrong| wrong.to_string())?;
    let proxy = ProxyServer::start(config).await.map_err(|error| error.to_string())?;
    tell(proxy.addr)?;
    std::future::pending().await
}

/// Removes what has expired as soon as it has.
async fn sweep(store: Arc<dyn Store>) -> Result<(), String> {
    loop {
        let swept = store.sweep_records(SWEEP_STEP).await.map_err(|error| error.to_string())?;
        if swept < SWEEP_STEP {
            tokio::time::sleep(SWEEP).await;
        }
    }
}

fn nowhere_yet() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}
