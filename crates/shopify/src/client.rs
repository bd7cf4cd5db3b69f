//! A client for the Admin API of one shop, for programs that make their own calls. Every call
//! passes the shop's limits, which any number of processes share through a store. The client
//! follows what Shopify reports about them, waits as long as its caller allows, and never repeats a
//! request that might then take effect twice.

pub(crate) mod attempt;
pub mod builder;
pub mod error;
pub(crate) mod pacer;
mod prepared_call;
pub mod response;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_core::backoff::{Backoff, throttled, throttled_without_hint};
use tidegate_limits::NamedLease;
use tidegate_store::SharedState;
use tidegate_upstream::http::download::Downloads;
use tidegate_upstream::{Method, Secret};
use tokio::time::{Instant, sleep};

pub use builder::Builder;
pub use error::{Error, Result, ShopifyErrorKind};
pub use response::{GraphqlResponse, RestResponse};

use crate::bulk::{Bulk, PollIntervals, Waiters};
use crate::cost::CostCache;
use crate::once_logger::OnceLogger;
use crate::version::ApiVersion;
use attempt::{ApiKind, AttemptOutcome, AttemptResult, ShopSender, json};
use pacer::{ObservedCosts, Pacer};
use prepared_call::PreparedCall;

/// The longest patience.
const PATIENCE_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// A client for one shop. Clones share the same client.
#[derive(Clone)]
pub struct Shopify {
    pub(crate) inner: Arc<Inner>,
    pub(crate) pacer: Arc<Pacer>,
    /// How long a call may wait in all, for limits and between attempts.
    patience: Duration,
    /// The queue's operation that it works for; empty outside the queue.
    operation: Arc<str>,
    version: ApiVersion,
}

pub(crate) struct Inner {
    /// Its name in messages: the shop's id, or the name of the queue's upstream.
    pub(crate) shop: Arc<str>,
    pub(crate) sender: ShopSender,
    /// Costs of queries, by shape.
    pub(crate) cost_cache: CostCache,
    /// How often a call is made in all, not counting the waits that Shopify asks for.
    pub(crate) attempts: u32,
    /// The lease that a bulk operation holds; the queue has a cap of its own.
    pub(crate) lease: Option<NamedLease>,
    pub(crate) downloads: Downloads,
    pub(crate) line_max: usize,
    pub(crate) poll_intervals: PollIntervals,
    pub(crate) waiters: Waiters,
    /// What was logged already: once per shop is enough.
    pub(crate) once_logger: OnceLogger,
}

impl Shopify {
    /// Builds a client for `shop` (`acme`, `acme.myshopify.com`, a URL) with an access token. All
    /// who open the same `store` share the shop's limits.
    pub fn builder(shop: &str, token: impl Into<String>, store: Arc<dyn SharedState>) -> Builder {
        Builder::new(shop, Secret::new(token), Some(store))
    }

    pub(crate) fn new(inner: Inner, pace: Pacer, patience: Duration, version: ApiVersion) -> Self {
        Self { inner: Arc::new(inner), pacer: Arc::new(pace), patience, operation: "".into(), version }
    }

    /// Returns the same client for one attempt of the queue, which does its own pacing.
    pub(crate) fn for_operation(&self, operation: &str, version: Option<ApiVersion>) -> Self {
        let version = version.unwrap_or(self.version);
        Self { pacer: Arc::new(Pacer::queue()), operation: operation.into(), version, ..self.clone() }
    }

    /// Returns what the responses of that attempt reported.
    pub(crate) fn observed_costs(&self) -> ObservedCosts {
        self.pacer.observed_costs()
    }

    /// Returns the same client with another patience: how long a call may wait in all, for limits
    /// and between attempts.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// Returns the id of its shop.
    #[must_use]
    pub fn shop(&self) -> &str {
        &self.inner.shop
    }

    /// Returns the version of the API that it asks for.
    #[must_use]
    pub const fn version(&self) -> ApiVersion {
        self.version
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    /// Runs a query or a mutation. Waits out `THROTTLED`. Retries a query, and a mutation with
    /// `@idempotent`, when its response is lost or Shopify fails; any other mutation only when it
    /// did not run. Errors next to data are in the response.
    ///
    /// # Errors
    /// [`ShopifyErrorKind`] distinguishes them. A mutation whose response was lost is `Unknown`.
    pub async fn graphql(&self, query: &str, variables: impl Into<Value>) -> Result<GraphqlResponse> {
        let ask = PreparedCall::graphql(self.version, query, &variables.into(), &self.inner.cost_cache)?;
        let (tried, _, body) = self.call_with_retries(ask).await?;
        let mut body = json(&body);
        let data = body.get_mut("data").map(Value::take).unwrap_or_default();
        let errors = body.get_mut("errors").map(Value::take).unwrap_or_default();
        let errors = if let Value::Array(errors) = errors { errors } else { Vec::new() };
        Ok(GraphqlResponse { data, errors, meta: tried.meta })
    }

    /// Makes a REST call: `products.json?limit=5` is relative to the version, `/admin/…` is used as
    /// it is. Waits out a 429. Retries methods that HTTP calls idempotent when the response is lost
    /// or Shopify fails, and others only when they had no effect.
    ///
    /// # Errors
    /// [`ShopifyErrorKind`] distinguishes them. A POST whose response was lost is `Unknown`.
    pub async fn rest(&self, method: Method, path: &str, body: Option<&Value>) -> Result<RestResponse> {
        let ask = PreparedCall::rest(self.version, method, path, body)?;
        let (tried, status, body) = self.call_with_retries(ask).await?;
        let AttemptOutcome::Done { headers, .. } = &tried.outcome else { return Err(unreadable_answer()) };
        let link = headers.get(http::header::LINK).and_then(|link| link.to_str().ok()).map(str::to_owned);
        let body = if body.is_empty() {
            Value::Null
        } else {
            let told = |_| ShopifyErrorKind::Unreadable("the response is not JSON.".into());
            serde_json::from_slice(&body).map_err(told)?
        };
        Ok(RestResponse { status, body, link, meta: tried.meta })
    }

    /// Returns the bulk operations of this shop.
    #[must_use]
    pub fn bulk(&self) -> Bulk {
        Bulk::new(self.clone())
    }

    /// Makes a call until it succeeds, is refused, or the patience ends.
    async fn call_with_retries(&self, mut ask: PreparedCall) -> Result<(AttemptResult, u16, bytes::Bytes)> {
        self.inner.sender.sender.check(&ask.request)?;
        let end = Instant::now() + self.patience.min(PATIENCE_MAX);
        let (mut failures, mut throttles) = (0_u32, 0_u32);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let grant = self.pacer.take(ask.api, ask.cost, left).await?;
            let tried = self
                .inner
                .sender
                .attempt(ask.request.clone(), ask.api, ask.on_unknown, &self.operation)
                .await;
            self.pacer.settle(grant, ask.cost, &tried).await;
            self.note_response(&tried, &mut ask);
            let (wait, error) = match &tried.outcome {
                AttemptOutcome::Done { status, body, .. } => {
                    let (status, body) = (*status, body.clone());
                    return Ok((tried, status, body));
                }
                AttemptOutcome::Refused(kind) => return Err(kind.clone().into()),
                AttemptOutcome::Unknown(reason) => {
                    return Err(ShopifyErrorKind::Unknown(reason.clone()).into());
                }
                AttemptOutcome::Throttled { after } => {
                    throttles += 1;
                    let wait = match after {
                        Some(after) => throttled(*after, throttles, jitter()),
                        None => throttled_without_hint(throttles, jitter()),
                    };
                    (wait, ShopifyErrorKind::Throttled { wait })
                }
                AttemptOutcome::NotSent(reason) => {
                    (retry_delay(&mut failures), ShopifyErrorKind::NotSent(reason.clone()))
                }
                AttemptOutcome::Failed(reason) => {
                    (retry_delay(&mut failures), ShopifyErrorKind::Failed(reason.clone()))
                }
            };
            let is_over = failures >= self.inner.attempts || Instant::now() + wait > end;
            if is_over {
                return Err(error.into());
            }
            sleep(wait).await;
        }
    }

    /// Records what a response says besides its data: the actual cost of the query, and that
    /// another version responded.
    fn note_response(&self, tried: &AttemptResult, ask: &mut PreparedCall) {
        if let Some(requested) = tried.meta.cost.requested.filter(|_| ask.api == ApiKind::Graphql) {
            ask.cost = requested;
            if let Some(shape) = ask.shape {
                self.inner.cost_cache.put(shape, requested);
            }
        }
        self.inner.once_logger.log(&self.inner.shop, &tried.meta, Some(self.version));
    }
}

fn retry_delay(failures: &mut u32) -> Duration {
    *failures += 1;
    Backoff::RETRY.delay(*failures, jitter())
}

/// Spreads callers that wait for the same thing.
fn jitter() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

fn unreadable_answer() -> Error {
    ShopifyErrorKind::Unreadable("the answer is no answer.".into()).into()
}

impl fmt::Debug for Shopify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shopify({}, {})", self.inner.shop, self.version)
    }
}
