//! A client for the Admin API of one shop, for programs that make their own calls. Every call passes the shop's limits,
//! which any number of processes share through a store; it follows what Shopify says of them, waits as long as its caller
//! is willing to, and sends nothing twice that might then happen twice.

pub mod answer;
mod ask;
pub mod builder;
pub mod error;
pub(crate) mod pace;
pub(crate) mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_core::backoff::{Backoff, throttled, throttled_without_hint};
use tidegate_limits::Lease;
use tidegate_store::Shared;
use tidegate_upstream::http::download::Downloads;
use tidegate_upstream::{Method, Secret};
use tokio::time::{Instant, sleep};

pub use answer::{Graphql, Rest};
pub use builder::Builder;
pub use error::{Error, Kind, Result};

use crate::bulk::{Bulk, Ears, Pauses};
use crate::cost::Memory;
use crate::telling::Telling;
use crate::version::ApiVersion;
use ask::Ask;
use pace::{Heard, Pace};
use wire::{Speech, Tried, What, Wire, json};

/// Nobody waits for longer.
const PATIENCE_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

/// A client for one shop. Clones are the same client.
#[derive(Clone)]
pub struct Shopify {
    pub(crate) inner: Arc<Inner>,
    pub(crate) pace: Arc<Pace>,
    /// How long a call may wait for limits and for better times, in all.
    patience: Duration,
    /// The operation of the queue that this is for; empty for a program of its own.
    operation: Arc<str>,
    version: ApiVersion,
}

pub(crate) struct Inner {
    /// What messages call it: the shop's id, or the name of the queue's upstream.
    pub(crate) shop: Arc<str>,
    pub(crate) wire: Wire,
    /// What queries of a shape cost.
    pub(crate) memory: Memory,
    /// How often a call is made in all, when it is not Shopify that asks to wait.
    pub(crate) attempts: u32,
    /// What a bulk operation holds; the queue has a cap of its own.
    pub(crate) lease: Option<Lease>,
    pub(crate) downloads: Downloads,
    pub(crate) line_max: usize,
    pub(crate) pauses: Pauses,
    pub(crate) ears: Ears,
    /// What a person was told already: once for each shop is enough.
    pub(crate) telling: Telling,
}

impl Shopify {
    /// A client for `shop` (`acme`, `acme.myshopify.com`, a URL) with an access token. Whoever opens the same `store` shares
    /// the shop's limits.
    pub fn builder(shop: &str, token: impl Into<String>, store: Arc<dyn Shared>) -> Builder {
        Builder::new(shop, Secret::new(token), Some(store))
    }

    pub(crate) fn new(inner: Inner, pace: Pace, patience: Duration, version: ApiVersion) -> Self {
        Self { inner: Arc::new(inner), pace: Arc::new(pace), patience, operation: "".into(), version }
    }

    /// The same client for one attempt of the queue, which paces by itself.
    pub(crate) fn for_operation(&self, operation: &str, version: Option<ApiVersion>) -> Self {
        let version = version.unwrap_or(self.version);
        Self { pace: Arc::new(Pace::queue()), operation: operation.into(), version, ..self.clone() }
    }

    /// What the answers of that attempt said.
    pub(crate) fn heard(&self) -> Heard {
        self.pace.heard()
    }

    /// The same client with another patience: how long a call may wait for limits, and between attempts, in all.
    #[must_use]
    pub fn with_patience(&self, patience: Duration) -> Self {
        Self { patience, ..self.clone() }
    }

    /// Which shop it is for: its id.
    #[must_use]
    pub fn shop(&self) -> &str {
        &self.inner.shop
    }

    /// Which version of the API it asks for.
    #[must_use]
    pub const fn version(&self) -> ApiVersion {
        self.version
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.patience
    }

    /// Runs a query or a mutation. `THROTTLED` is waited out; a query, and a mutation with `@idempotent`, is repeated when
    /// its answer is lost or Shopify fails. Errors beside data are in the answer.
    ///
    /// # Errors
    /// [`Kind`] tells them apart. A mutation whose answer was lost is `Unknown`.
    pub async fn graphql(&self, query: &str, variables: impl Into<Value>) -> Result<Graphql> {
        let ask = Ask::graphql(self.version, query, &variables.into(), &self.inner.memory)?;
        let (tried, _, body) = self.call(ask).await?;
        let mut body = json(&body);
        let data = body.get_mut("data").map(Value::take).unwrap_or_default();
        let errors = body.get_mut("errors").map(Value::take).unwrap_or_default();
        let errors = if let Value::Array(errors) = errors { errors } else { Vec::new() };
        Ok(Graphql { data, errors, said: tried.said })
    }

    /// Makes a REST call: `products.json?limit=5` is taken below the version, `/admin/…` as it is. A 429 is waited out; what
    /// HTTP calls idempotent is repeated when its answer is lost or Shopify fails.
    ///
    /// # Errors
    /// [`Kind`] tells them apart. A POST whose answer was lost is `Unknown`.
    pub async fn rest(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Rest> {
        let ask = Ask::rest(self.version, method, path, body)?;
        let (tried, status, body) = self.call(ask).await?;
        let What::Done { headers, .. } = &tried.what else { return Err(unread()) };
        let link = headers.get(http::header::LINK).and_then(|link| link.to_str().ok()).map(str::to_owned);
        let body = if body.is_empty() {
            Value::Null
        } else {
            let told = |_| Kind::Unreadable("the answer is no JSON.".into());
            serde_json::from_slice(&body).map_err(told)?
        };
        Ok(Rest { status, body, link, said: tried.said })
    }

    /// Bulk operations of this shop.
    #[must_use]
    pub fn bulk(&self) -> Bulk {
        Bulk::new(self.clone())
    }

    /// Makes it until it is done, refused, or patience ends.
    async fn call(&self, mut ask: Ask) -> Result<(Tried, u16, bytes::Bytes)> {
        self.inner.wire.sender.check(&ask.request)?;
        let end = Instant::now() + self.patience.min(PATIENCE_MAX);
        let (mut failures, mut throttles) = (0_u32, 0_u32);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let grant = self.pace.take(ask.speech, ask.cost, left).await?;
            let tried = self.inner.wire.attempt(ask.request.clone(), ask.speech, &self.operation).await;
            self.pace.settle(grant, ask.cost, &tried).await;
            self.notice(&tried, &mut ask);
            let (wait, error) = match &tried.what {
                What::Done { status, body, .. } => {
                    let (status, body) = (*status, body.clone());
                    return Ok((tried, status, body));
                }
                What::Refused(kind) => return Err(kind.clone().into()),
                What::Unsure(reason) if !ask.may_repeat => return Err(Kind::Unknown(reason.clone()).into()),
                What::Throttled { after } => {
                    throttles += 1;
                    let wait = match after {
                        Some(after) => throttled(*after, throttles, chance()),
                        None => throttled_without_hint(throttles, chance()),
                    };
                    (wait, Kind::Throttled { wait })
                }
                What::NotSent(reason) => (retry(&mut failures), Kind::NotSent(reason.clone())),
                What::Unsure(reason) => (retry(&mut failures), Kind::Failed(reason.clone())),
            };
            let is_over = failures >= self.inner.attempts || Instant::now() + wait > end;
            if is_over {
                return Err(error.into());
            }
            sleep(wait).await;
        }
    }

    /// What an answer says besides its data: what the query really asks for, and that another version answered.
    fn notice(&self, tried: &Tried, ask: &mut Ask) {
        if let Some(requested) = tried.said.cost.requested.filter(|_| ask.speech == Speech::Graphql) {
            ask.cost = requested;
            if let Some(shape) = ask.shape {
                self.inner.memory.put(shape, requested);
            }
        }
        self.inner.telling.tell(&self.inner.shop, &tried.said, Some(self.version));
    }
}

fn retry(failures: &mut u32) -> Duration {
    *failures += 1;
    Backoff::RETRY.delay(*failures, chance())
}

/// Spreads those who wait for the same.
fn chance() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

fn unread() -> Error {
    Kind::Unreadable("the answer is no answer.".into()).into()
}

impl fmt::Debug for Shopify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shopify({}, {})", self.inner.shop, self.version)
    }
}
