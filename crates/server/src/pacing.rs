//! The paced proxy: a client's own request becomes an operation, waits for its turn, and gets the
//! upstream's response. This state is the same on every node; the call itself is made by the node
//! that owns its partition.

pub(crate) mod body;
pub(crate) mod caller;
pub(crate) mod links;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod stored;
pub(crate) mod target;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderName};
use tidegate_upstream::http::target::BaseUrl;
use tidegate_upstream::http::{Dialect, ResponseRelay, UpstreamConfig};
use tidegate_upstream::{Body, HttpRequest, Method};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::config::PacingConfig;
use crate::dialects::Dialects;
use target::ProxyTarget;

/// How long a shutdown waits until requests that wait for their turn have canceled their
/// operations.
const CALLED_OFF: Duration = Duration::from_secs(2);

/// The state of the paced proxy in this process.
#[derive(Debug)]
pub(crate) struct PacedProxy {
    pub config: PacingConfig,
    /// Relays complete responses to waiting clients.
    pub handover: ResponseRelay,
    upstreams: BTreeMap<String, ProxiedUpstream>,
    /// Held by every request that has not handled the shutdown yet.
    stop_lock: Arc<RwLock<()>>,
}

/// The properties of an upstream that the proxy needs.
#[derive(Clone)]
pub(crate) struct ProxiedUpstream {
    /// The header of its own credential, and the prefix before the credential.
    pub credential: Option<(HeaderName, String)>,
    /// How long one attempt may take.
    pub timeout: Duration,
    /// Decides which of its requests may be sent twice.
    pub dialect: Arc<dyn Dialect>,
    /// Its base URL.
    pub base: Option<BaseUrl>,
}

impl fmt::Debug for ProxiedUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxiedUpstream").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl PacedProxy {
    pub(crate) fn new(config: PacingConfig, dialects: &Dialects) -> Self {
        let served = |(one, dialect): &(UpstreamConfig, Arc<dyn Dialect>)| {
            (one.name.clone(), ProxiedUpstream::from_config(one, Arc::clone(dialect)))
        };
        let upstreams = dialects.iter().map(served).collect();
        Self { config, handover: ResponseRelay::default(), upstreams, stop_lock: Arc::default() }
    }

    pub(crate) fn upstream(&self, upstream: &str) -> Option<&ProxiedUpstream> {
        self.upstreams.get(upstream)
    }

    /// The names of the upstreams, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.upstreams.keys().map(String::as_str)
    }

    /// Whether a client's call changes nothing, according to its upstream's dialect.
    pub(crate) fn only_reads(
        &self,
        method: &str,
        target: &str,
        content_type: Option<&str>,
        body: &Bytes,
    ) -> bool {
        let read = ProxyTarget::read(target).and_then(|target| {
            let served = self.upstream(&target.upstream)?;
            let mut request = HttpRequest::new(Method::parse(method)?, target.path.as_ref());
            request.headers =
                content_type.map(|value| ("content-type".to_owned(), value.to_owned())).into_iter().collect();
            request.body = Body::Bytes(body.clone());
            Some(served.dialect.is_read_only(&request))
        });
        read.unwrap_or(false)
    }

    /// The longest time that a response from another node takes.
    pub(crate) fn answer_timeout(&self) -> Duration {
        let slowest = self.upstreams.values().map(|served| served.timeout).max().unwrap_or_default();
        self.config.wait + slowest
    }

    /// Returns a guard that delays the shutdown until it is dropped.
    pub(crate) async fn hold_stop(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.stop_lock).read_owned().await
    }

    /// Waits until every request has handled the shutdown.
    pub(crate) async fn wait_for_stop_handled(&self) {
        // A request that takes longer than this learns it from the engine.
        let _ = tokio::time::timeout(CALLED_OFF, self.stop_lock.write()).await;
    }

    /// The token in the header of the upstream's own credential, for clients that can send no other
    /// header.
    pub(crate) fn credential(&self, path: &str, headers: &HeaderMap) -> Option<String> {
        let target = ProxyTarget::read(path)?;
        let (name, prefix) = self.upstream(&target.upstream)?.credential.as_ref()?;
        let text = headers.get(name)?.to_str().ok()?;
        Some(text.strip_prefix(prefix.as_str()).unwrap_or(text).trim().to_owned())
    }
}

impl ProxiedUpstream {
    fn from_config(config: &UpstreamConfig, dialect: Arc<dyn Dialect>) -> Self {
        let header = &config.token_header;
        let name = config.token.as_ref().and_then(|_| HeaderName::from_bytes(header.name.as_bytes()).ok());
        let credential = name.map(|name| (name, header.prefix.clone()));
        let base = BaseUrl::parse(&config.base_url).ok();
        Self { credential, timeout: config.timeout, dialect, base }
    }
}
