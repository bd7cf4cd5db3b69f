//! The queue's executor of kind `shopify.bulk`: starts a bulk operation, and polls it until its
//! end. No worker is held in between: the claim awaits, with its slot. The URL of the result is
//! stored, never the result. A start whose outcome is unknown is looked for, and adopted. With a
//! store, a job also holds the lease of its shop.

mod memo;
mod payload;
mod release_watch;
mod shop_lease;
mod verdict;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::operation::MICRO;
use tidegate_core::{Charge, Hint, LimitName, OnUnknown, OperationId, Verdict};
use tidegate_limits::LeaseToken;
use tidegate_store::SharedState;
use tidegate_upstream::http::UpstreamConfig;
use tidegate_upstream::http::plain::refuse_unknown_limits;
use tidegate_upstream::{
    AcceptedJob, Call, CallCost, CallFuture, CallRequirements, FieldRefusal, JobNote, Outcome, Upstream,
};
use tokio::sync::broadcast;

use crate::budget::{BULK, POINTS};
use crate::bulk::{BulkOperation, Job};
use crate::client::Shopify;
use crate::client::builder::Builder;
use crate::client::error::{Error, Result as CallResult, ShopifyErrorKind};
use crate::client::pacer::ObservedCosts;
use memo::BulkMemo;
use payload::Payload;
use shop_lease::{ShopLease, SlotAcquisition, lease_name};
use verdict::{BulkLimits, end_outcome, poll_refusal_verdict, refusal_body, unreadable_verdict};

/// The kind of operations that it executes.
pub const KIND: &str = "shopify.bulk";
/// The cost of starting one, in points.
const START_POINTS: u64 = 10;
/// How long one is awaited: longer than Shopify lets one run, which is 10 days.
const TIMEOUT: Duration = Duration::from_secs(11 * 24 * 3_600);
/// How many jobs that may start are remembered for an engine that is slow to hear of them.
const STARTS_MAX: usize = 256;

/// The shops that bulk operations can run in.
pub struct BulkUpstreams {
    by_name: BTreeMap<String, BulkShop>,
    /// The jobs that may start because the lease of their shop was released.
    starts: broadcast::Sender<OperationId>,
}

/// One shop with all that an operation needs.
struct BulkShop {
    client: Shopify,
    gate: Arc<str>,
    scopes: BulkLimits,
    lease_name: String,
    lease: Option<ShopLease>,
}

/// Why a bulk operation is not in progress.
enum StartFailure {
    /// The shop's lease is held by others.
    LeaseBusy {
        pause: Duration,
    },
    Call(Error),
}

impl From<Error> for StartFailure {
    fn from(error: Error) -> Self {
        Self::Call(error)
    }
}

impl From<tidegate_limits::Error> for StartFailure {
    fn from(error: tidegate_limits::Error) -> Self {
        Self::Call(error.into())
    }
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
            let (gate, lease_name) = (Arc::from(name.as_str()), lease_name(config));
            by_name.insert(name.clone(), BulkShop { client, gate, scopes, lease_name, lease: None });
        }
        Ok(Self { by_name, starts: broadcast::Sender::new(STARTS_MAX) })
    }

    /// Lets each job hold the lease of its shop in this store, as the client library does: jobs and
    /// programs that use the same store exclude each other. `places` is how many may run at once in
    /// the shop of the upstream with this name.
    ///
    /// # Errors
    /// Names the first upstream whose lease is impossible.
    pub fn with_leases(
        mut self,
        store: &Arc<dyn SharedState>,
        places: impl Fn(&str) -> u32,
    ) -> Result<Self, FieldRefusal> {
        for (name, shop) in &mut self.by_name {
            let lease = ShopLease::new(store, &shop.lease_name, places(name), &self.starts);
            let told = |error: tidegate_limits::Error| {
                FieldRefusal::new(format!("upstream.{name}"), error.to_string())
            };
            shop.lease = Some(lease.map_err(told)?);
        }
        Ok(self)
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
            Ok((shop, payload, job)) => shop.start(&payload, &job, call).await,
            // It was accepted before; the configuration has changed since.
            Err(refusal) => Outcome::unanswered(unreadable_verdict(&refusal, call.reconcile_first)),
        }
    }

    async fn poll_once(&self, call: Call<'_>, accepted: AcceptedJob<'_>) -> Outcome {
        match self.read(call.payload) {
            Ok((shop, payload, job)) => shop.poll(&payload, &job, call, accepted).await,
            Err(refusal) => Outcome::unanswered(poll_refusal_verdict(&refusal)),
        }
    }
}

impl BulkShop {
    /// The client for one attempt or poll: the queue waits for limits and repeats, not a worker.
    fn client(&self, payload: &Payload, call: Call<'_>) -> Shopify {
        self.client.for_operation(call.operation, payload.api_version).with_patience(Duration::ZERO)
    }

    /// Starts it, or adopts it where it was started before.
    async fn start(&self, payload: &Payload, job: &Job, call: Call<'_>) -> Outcome {
        let client = self.client(payload, call);
        // A read is repeated without an instruction to look first; if it is still running it is
        // adopted.
        let look_first = call.reconcile_first || call.attempt > 1 && !job.is_mutation();
        let begun = self.start_with_lease(&client, job, look_first, call.operation.parse().ok()).await;
        let observed = client.observed_costs();
        let outcome = match begun {
            Ok((id, lease)) => self.await_outcome(&id, BulkMemo::new(observed.spent, lease)),
            Err(StartFailure::LeaseBusy { pause }) => {
                Outcome::unanswered(self.scopes.lease_busy_verdict(&self.lease_name, pause))
            }
            Err(StartFailure::Call(error)) => {
                let verdict = self.scopes.start_failure_verdict(&error, look_first);
                let outcome = Outcome::unanswered(verdict).with_body(refusal_body(error.kind()));
                outcome.with_spending(self.spending(job, observed.spent, observed))
            }
        };
        outcome.with_hints(self.hints(observed))
    }

    /// Starts it under the shop's lease, or adopts it. Returns its id and the slot it holds.
    async fn start_with_lease(
        &self,
        client: &Shopify,
        job: &Job,
        look_first: bool,
        operation: Option<OperationId>,
    ) -> Result<(String, Option<LeaseToken>), StartFailure> {
        let Some(lease) = &self.lease else {
            return Ok((client.bulk().start_for_queue(job, look_first).await?, None));
        };
        let guard = match lease.acquire(operation).await? {
            SlotAcquisition::Held(guard) => guard,
            SlotAcquisition::Busy { pause } => {
                // What runs already is adopted without a slot. It may be its own that is still
                // held, from before a crash.
                let found = if look_first { client.bulk().find_for_queue(job).await? } else { None };
                return found.map(|id| (id, None)).ok_or(StartFailure::LeaseBusy { pause });
            }
        };
        match client.bulk().start_for_queue(job, look_first).await {
            Ok(id) => Ok((id, Some(lease.keep(guard).await))),
            Err(error) => {
                // One that may have been started keeps its slot until that expires.
                match error.is_unknown() {
                    true => drop(guard.into_token()),
                    false => lease.give_back(guard).await,
                }
                Err(error.into())
            }
        }
    }

    /// Asks once how it stands, and passes on a cancel.
    async fn poll(&self, payload: &Payload, job: &Job, call: Call<'_>, accepted: AcceptedJob<'_>) -> Outcome {
        let id = accepted.external_id.unwrap_or_default();
        let mut memo = BulkMemo::decode(accepted.memo);
        let client = self.client(payload, call);
        let mut polled = client.bulk().status(id).await;
        if accepted.cancel_requested && polled.as_ref().is_ok_and(|it| it.status.can_be_canceled()) {
            memo.restart_pauses();
            polled = pass_on_cancel(&client, polled).await;
        }
        let observed = client.observed_costs();
        memo.spent = memo.spent.saturating_add(observed.spent);
        let memo = self.renew_lease(memo, &polled).await;
        let outcome = match polled {
            Ok(operation) if operation.status.is_under_way() => self.await_outcome(id, memo),
            Ok(operation) => {
                let outcome = end_outcome(&operation, accepted.cancel_requested);
                outcome.with_spending(self.spending(job, memo.spent, observed))
            }
            Err(error) => {
                let outcome =
                    Outcome::unanswered(self.scopes.poll_failure_verdict(&error, memo.last_pause()));
                match error.kind() {
                    ShopifyErrorKind::Gone(_) => {
                        outcome.with_spending(self.spending(job, memo.spent, observed))
                    }
                    _ => outcome.with_job(note(id, &memo)),
                }
            }
        };
        outcome.with_hints(self.hints(observed))
    }

    /// Renews the lease after a poll, or releases it after the last one.
    async fn renew_lease(&self, memo: BulkMemo, polled: &CallResult<BulkOperation>) -> BulkMemo {
        let Some(lease) = &self.lease else { return memo };
        let token = memo.lease();
        match (polled, token) {
            (Ok(operation), token) if operation.status.is_under_way() => {
                memo.with_lease(lease.hold(token).await)
            }
            (_, None) => memo,
            (Err(error), Some(token)) if !matches!(error.kind(), ShopifyErrorKind::Gone(_)) => {
                lease.renew(&token).await;
                memo
            }
            (_, Some(token)) => {
                lease.release(&token).await;
                memo.with_lease(None)
            }
        }
    }

    /// The outcome of an operation that is in progress at Shopify.
    fn await_outcome(&self, id: &str, mut memo: BulkMemo) -> Outcome {
        let pause = memo.next_pause(self.client.inner.poll_intervals);
        let verdict = Verdict::Accepted { poll_after: Some(pause), timeout: TIMEOUT };
        Outcome::unanswered(verdict).with_job(note(id, &memo))
    }

    /// What the calls of an attempt or a poll report about the budget.
    fn hints(&self, observed: ObservedCosts) -> Vec<Hint> {
        vec![Hint {
            limit: Arc::clone(&self.scopes.points),
            remaining: observed.last.available,
            capacity: observed.last.maximum,
            refill_per_s: observed.last.restore_per_s,
            spent: Some(observed.spent),
            ..Hint::default()
        }]
    }

    /// What it cost with all its polls, which is reported once, at its end.
    fn spending(&self, job: &Job, spent: u64, observed: ObservedCosts) -> Vec<CallCost> {
        vec![CallCost {
            limit: Arc::clone(&self.scopes.points),
            shape: shape(job),
            requested: START_POINTS * MICRO,
            actual: Some(spent),
            restore_rate: observed.last.restore_per_s,
        }]
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

/// Asks Shopify to stop an operation in progress.
async fn pass_on_cancel(client: &Shopify, polled: CallResult<BulkOperation>) -> CallResult<BulkOperation> {
    let operation = polled?;
    match client.bulk().cancel(&operation.id).await {
        // It ended meanwhile, or cannot be stopped: the next poll shows.
        Err(error) if matches!(error.kind(), ShopifyErrorKind::UserErrors { .. }) => Ok(operation),
        canceled => canceled,
    }
}

/// What is kept of an operation in progress.
fn note(id: &str, memo: &BulkMemo) -> JobNote {
    JobNote { external_id: Some(id.into()), memo: memo.encode(), cost: Some(memo.spent) }
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

    fn early_starts(&self) -> Option<broadcast::Receiver<OperationId>> {
        Some(self.starts.subscribe())
    }

    fn carry<'a>(&'a self, call: Call<'a>) -> CallFuture<'a> {
        Box::pin(self.attempt(call))
    }

    fn poll<'a>(&'a self, call: Call<'a>, job: AcceptedJob<'a>) -> CallFuture<'a> {
        Box::pin(self.poll_once(call, job))
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
