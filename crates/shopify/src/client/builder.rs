//! The settings of a client, each with a default that suits most programs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_limits::NamedLease;
use tidegate_store::{Clock, SharedState, WallClock};
use tidegate_upstream::Secret;
use tidegate_upstream::http::config::{
    CONNECT_TIMEOUT_DEFAULT, TIMEOUT_DEFAULT, TokenHeader, UpstreamConfig,
};
use tidegate_upstream::http::download::Downloads;
use tidegate_upstream::http::send::Sender;

use super::attempt::ShopSender;
use super::error::{Error, Result, ShopifyErrorKind};
use super::pacer::Pacer;
use super::{Inner, Shopify};
use crate::budget::BULK_AT_ONCE_DEFAULT;
use crate::bulk::{LINE_MAX_DEFAULT, PollIntervals, Waiters};
use crate::cost::CostCache;
use crate::dialect::SERVER_ERRORS;
use crate::endpoint::Endpoint;
use crate::once_logger::OnceLogger;
use crate::shop::ShopId;
use crate::version::ApiVersion;

/// The header with the access token.
pub const TOKEN_HEADER: &str = "x-shopify-access-token";
/// The default version of the API.
pub const VERSION_DEFAULT: ApiVersion = ApiVersion::Quarter { year: 2026, month: 4 };
/// Largest response that is read, in bytes. Results of bulk operations are streamed and have no
/// such bound.
const ANSWER_MAX: usize = 32 * 1024 * 1024;

/// Builds a [`Shopify`].
#[derive(Clone)]
#[must_use = "nothing is built before `build`"]
pub struct Builder {
    shop: String,
    token: Secret,
    store: Option<Arc<dyn SharedState>>,
    base_url: Option<String>,
    version: ApiVersion,
    timeout: Duration,
    patience: Duration,
    attempts: u32,
    bulk_at_once: u32,
    lease_ttl: Duration,
    line_max: usize,
    poll_intervals: PollIntervals,
}

impl Builder {
    pub(crate) fn new(shop: &str, token: Secret, store: Option<Arc<dyn SharedState>>) -> Self {
        Self {
            shop: shop.to_owned(),
            token,
            store,
            base_url: None,
            version: VERSION_DEFAULT,
            timeout: TIMEOUT_DEFAULT,
            patience: Duration::from_secs(60),
            attempts: 4,
            bulk_at_once: BULK_AT_ONCE_DEFAULT,
            lease_ttl: Duration::from_secs(30),
            line_max: LINE_MAX_DEFAULT,
            poll_intervals: PollIntervals::default(),
        }
    }

    /// Sets the base URL of the shop, if it is not `https://<shop>.myshopify.com`. The client adds
    /// the path, from `/admin` on.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Sets the version of the API; `2026-04` by default.
    pub const fn version(mut self, version: ApiVersion) -> Self {
        self.version = version;
        self
    }

    /// Sets how long to wait for one response; 30 s by default.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how long a call may wait in all, for limits and between attempts; 60 s by default.
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets how often a failing call is made in all; 4 by default. Waits that Shopify asks for do
    /// not count.
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Sets how many bulk operations of the shop run at once; 1 by default. From version 2026-01 on
    /// Shopify allows 5.
    pub const fn bulk_at_once(mut self, places: u32) -> Self {
        self.bulk_at_once = places;
        self
    }

    /// Sets how long the lease of a bulk operation outlives a process that died; 30 s by default.
    pub const fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl = ttl;
        self
    }

    /// Sets the longest line of a result, in bytes; 16 MiB by default.
    pub const fn line_max(mut self, bytes: usize) -> Self {
        self.line_max = bytes;
        self
    }

    /// Sets how long to wait between two polls of a bulk operation: `first`, then half as long
    /// again each time, up to `most`. 1 s and 30 s by default.
    pub const fn bulk_poll_intervals(mut self, first: Duration, most: Duration) -> Self {
        self.poll_intervals = PollIntervals { first, most };
        self
    }

    /// Builds the client. Opens no connection.
    ///
    /// # Errors
    /// `Invalid`, with the setting that cannot be used.
    pub fn build(self) -> Result<Shopify> {
        let store = self
            .store
            .clone()
            .ok_or_else(|| Error::new(ShopifyErrorKind::Invalid("There is no store.".into())))?;
        let shop: ShopId =
            self.shop.parse().map_err(|error| Error::with_source(invalid_error(&error), error))?;
        let pace = Pacer::buckets(&store, &shop)?;
        let lease = NamedLease::with_places(store, shop.bulk_lease(), self.lease_ttl, self.bulk_at_once)?;
        let base_url = self.base_url.clone().unwrap_or_else(|| format!("https://{shop}.myshopify.com"));
        let config = UpstreamConfig::new(shop.as_str(), base_url)
            .with_token(self.token.clone())
            .with_token_header(TokenHeader::parse(TOKEN_HEADER))
            .with_timeout(self.timeout);
        config.validate()?;
        let config = config.with_response_max_bytes(ANSWER_MAX);
        self.build_with(shop.as_str(), &config, pace, Some(lease))
    }

    /// Builds the client of an upstream of the queue, which has its own limits and its own cap on
    /// bulk operations.
    pub(crate) fn for_queue(config: &UpstreamConfig) -> Result<Shopify> {
        let queue = Self::new(&config.name, Secret::new(""), None);
        let version = Endpoint::root(&config.base_url).1.unwrap_or(queue.version);
        queue.version(version).build_with(&config.name, config, Pacer::queue(), None)
    }

    fn build_with(
        self,
        shop: &str,
        config: &UpstreamConfig,
        pace: Pacer,
        lease: Option<NamedLease>,
    ) -> Result<Shopify> {
        let (root, _) = Endpoint::root(&config.base_url);
        let mut config = config.clone();
        config.base_url = root.to_owned();
        config.server_errors.get_or_insert(SERVER_ERRORS);
        let config = &config;
        let is_plain = config.base_url.starts_with("http://");
        let downloads = Downloads::new(is_plain, CONNECT_TIMEOUT_DEFAULT, config.timeout)
            .map_err(|error| Error::with_source(ShopifyErrorKind::Invalid(error.to_string()), error))?;
        let clock: Arc<dyn Clock> = Arc::new(WallClock);
        let inner = Inner {
            shop: shop.into(),
            sender: ShopSender { sender: Sender::new(config)?, clock },
            cost_cache: CostCache::default(),
            attempts: self.attempts.max(1),
            lease,
            downloads,
            line_max: self.line_max.max(1),
            poll_intervals: self.poll_intervals,
            waiters: Waiters::default(),
            once_logger: OnceLogger::default(),
        };
        Ok(Shopify::new(inner, pace, self.patience, self.version))
    }
}

fn invalid_error(error: &impl std::error::Error) -> ShopifyErrorKind {
    ShopifyErrorKind::Invalid(error.to_string())
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("shop", &self.shop)
            .field("base_url", &self.base_url)
            .field("version", &self.version)
            .field("patience", &self.patience)
            .field("bulk_at_once", &self.bulk_at_once)
            .finish_non_exhaustive()
    }
}
