//! The queue's executor of kind `shopify.bulk`: starts a bulk operation, follows it to its end, and
//! stores the URL of its result, never the result. The claim holds its slot; an operation that a
//! crash or a drain left running is adopted.

mod payload;
mod verdict;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::operation::MICRO;
use tidegate_core::{Charge, Hint, LimitName, OnUnknown};
use tidegate_upstream::http::UpstreamConfig;
use tidegate_upstream::http::plain::refuse_unknown_limits;
use tidegate_upstream::{Call, CallCost, CallFuture, CallRequirements, FieldRefusal, Outcome, Upstream};
use tokio::sync::Semaphore;

use crate::budget::{BULK, POINTS};
use crate::bulk::Job;
use crate::client::Shopify;
use crate::client::builder::Builder;
use payload::Payload;
use verdict::{BulkLimits, refusal_body, unreadable_verdict};

/// The kind of operations that it executes.
pub const KIND: &str = "shopify.bulk";
/// The cost of starting one, in points.
const START_POINTS: u64 = 10;
/// Upper bound of how many run at once; also the default.
const PLACES_MAX: usize = 100_000;

/// The shops that bulk operations can run in.
pub struct BulkUpstreams {
    by_name: BTreeMap<String, BulkShop>,
    /// One permit for each that may run at once: each holds a worker until it ends.
    places: Semaphore,
    places_in_all: usize,
}

/// One shop with all that an operation needs.
struct BulkShop {
    client: Shopify,
    gate: Arc<str>,
    scopes: BulkLimits,
}

impl BulkUpstreams {
    /// Creates the executor for the upstreams of the dialect `shopify`, which were checked. Opens
    /// no connection.
    ///
    /// # Errors
    /// Names the first upstream that cannot be used.
    pub fn new<'a>(configs: impl IntoIterator<Item = &'a UpstreamConfig>) -> Result<Self, FieldRefusal> {
        let mut by_name = BTreeMap::new();
        for config in configs {
            let name = &config.name;
            let client = Builder::for_queue(config)
                .map_err(|error| FieldRefusal::new(format!("upstream.{name}"), error.to_string()))?;
            let limit = |what: &str| Arc::from(LimitName::new(name, what));
            let scopes = BulkLimits { points: limit(POINTS), bulk: limit(BULK) };
            by_name.insert(name.clone(), BulkShop { client, gate: Arc::from(name.as_str()), scopes });
        }
        Ok(Self { by_name, places: Semaphore::new(PLACES_MAX), places_in_all: PLACES_MAX })
    }

    /// Limits how many run at once, over all shops, so that workers are left for quick operations.
    #[must_use]
    pub fn with_max_at_once(self, places: usize) -> Self {
        let places_in_all = places.clamp(1, PLACES_MAX);
        Self { places: Semaphore::new(places_in_all), places_in_all, ..self }
    }

    /// Returns whether there is no shop at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    fn read(&self, payload: &[u8]) -> Result<(&BulkShop, Payload, Job), FieldRefusal> {
        let payload = Payload::decode(payload)?;
        let shop = self.by_name.get(&payload.upstream).ok_or_else(|| {
            let known: Vec<_> = self.by_name.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let message = format!("No upstream of the dialect shopify has this name; configured: {known}.");
            FieldRefusal::new("upstream", message)
        })?;
        let job = payload.job()?;
        Ok((shop, payload, job))
    }

    async fn attempt(&self, call: Call<'_>) -> Outcome {
        match self.read(call.payload) {
            Ok((shop, payload, job)) => match self.places.try_acquire() {
                Ok(_place) => shop.run(&payload, &job, call).await,
                Err(_) => shop.scopes.full_outcome(self.places_in_all),
            },
            // It was accepted before; the configuration has changed since.
            Err(refusal) => Outcome::unanswered(unreadable_verdict(&refusal, call.reconcile_first)),
        }
    }
}

impl BulkShop {
    async fn run(&self, payload: &Payload, job: &Job, call: Call<'_>) -> Outcome {
        let client = self.client.for_operation(call.operation, payload.api_version);
        // A read is repeated without an instruction to look first; if it is still running it is
        // adopted.
        let look_first = call.reconcile_first || call.attempt > 1 && !job.is_mutation();
        // The queue waits for limits, not a worker.
        let begun = client.with_patience(Duration::ZERO).bulk().start_for_queue(job, look_first).await;
        let spent = client.observed_costs().spent;
        let mut outcome = match begun {
            Ok(running) => self.scopes.end_outcome(running.with_client(&client).wait_for_end().await),
            Err(error) => {
                let verdict = self.scopes.start_failure_verdict(&error, look_first);
                Outcome::unanswered(verdict).with_body(refusal_body(error.kind()))
            }
        };
        // Polling costs points too, which are restored by the time it ends: the remaining balance
        // covers the rest.
        let last = client.observed_costs().last;
        outcome.hints = vec![Hint {
            limit: Arc::clone(&self.scopes.points),
            remaining: last.available,
            capacity: last.maximum,
            refill_per_s: last.restore_per_s,
            spent: Some(spent),
            ..Hint::default()
        }];
        outcome.spending = vec![CallCost {
            limit: Arc::clone(&self.scopes.points),
            shape: shape(job),
            requested: START_POINTS * MICRO,
            actual: Some(client.observed_costs().spent),
            restore_rate: last.restore_per_s,
        }];
        outcome
    }

    fn charges(&self, cost: &BTreeMap<String, u64>) -> Result<Vec<Charge>, FieldRefusal> {
        // A cost given for a cap is ignored.
        refuse_unknown_limits(&self.gate, &[POINTS, BULK], cost)?;
        let points = Arc::clone(&self.scopes.points);
        Ok(vec![
            Charge::tokens(Arc::clone(&self.gate), 1),
            match cost.get(POINTS) {
                Some(said) => Charge::tokens(points, *said),
                None => Charge::estimate(points, START_POINTS * MICRO),
            },
            Charge::tokens(Arc::clone(&self.scopes.bulk), 1),
        ])
    }
}

/// Returns the shape that bulk operations of one text share.
fn shape(job: &Job) -> Arc<str> {
    let name = if job.is_mutation() { "bulkOperationRunMutation" } else { "bulkOperationRunQuery" };
    let hash = Fingerprint::of("bulk shape").part(job.text.as_bytes()).short().to_be_bytes();
    format!("{name}#{}", hex(&hash[..4])).into()
}

impl Upstream for BulkUpstreams {
    fn check(&self, payload: &[u8], cost: &BTreeMap<String, u64>) -> Result<CallRequirements, FieldRefusal> {
        let (shop, _, job) = self.read(payload)?;
        let on_unknown = if job.is_mutation() { OnUnknown::Reconcile } else { OnUnknown::Repeat };
        let required = CallRequirements::new(shop.charges(cost)?);
        Ok(required.with_on_unknown(on_unknown).with_can_reconcile(true))
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(self.attempt(call))
    }
}

/// Encodes the result that is stored.
fn encode_result(result: &impl serde::Serialize) -> Bytes {
    serde_json::to_vec(result).map_or_else(|_| Bytes::new(), Bytes::from)
}

impl fmt::Debug for BulkUpstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.by_name.keys()).finish()
    }
}
