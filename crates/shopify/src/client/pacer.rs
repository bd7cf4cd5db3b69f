//! Paces calls and learns from their responses: the two buckets of a shop, shared by every process
//! that opens the same store. Inside the queue nothing waits here, because the queue has granted
//! the call already; the pacer only keeps what the responses report, for the queue.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_limits::{Grant, ReportedLevels, SharedBucket, TokenTakeOutcome, Tokens};
use tidegate_store::SharedState;

use super::attempt::{ApiKind, AttemptOutcome, AttemptResult};
use super::error::{Error, Result, ShopifyErrorKind};
use crate::budget::{InitialBudget, POINTS, POINTS_INITIAL, REQUESTS, REQUESTS_INITIAL};
use crate::response_meta::{QueryCost, ResponseMeta};
use crate::shop::ShopId;

/// The source of pacing.
pub(crate) enum Pacer {
    /// Buckets that this program shares with others.
    Buckets { points: SharedBucket, requests: SharedBucket },
    /// The queue. Keeps for it what was spent and what was last reported.
    Queue(Mutex<ObservedCosts>),
}

/// What the responses of one attempt of the queue reported.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ObservedCosts {
    /// The cost of all calls together, in micro-points.
    pub(crate) spent: u64,
    /// The last response's report.
    pub(crate) last: QueryCost,
}

impl Pacer {
    pub(crate) fn buckets(store: &Arc<dyn SharedState>, shop: &ShopId) -> Result<Self> {
        let bucket = |what: &str, InitialBudget { capacity, refill_per_s }| {
            SharedBucket::learning(
                Arc::clone(store),
                format!("shopify/{shop}/{what}"),
                capacity,
                refill_per_s,
            )
        };
        let (points, requests) = (bucket(POINTS, POINTS_INITIAL)?, bucket(REQUESTS, REQUESTS_INITIAL)?);
        Ok(Self::Buckets { points, requests })
    }

    pub(crate) fn queue() -> Self {
        Self::Queue(Mutex::default())
    }

    /// Returns the report for the queue.
    pub(crate) fn observed_costs(&self) -> ObservedCosts {
        match self {
            Self::Buckets { .. } => ObservedCosts::default(),
            Self::Queue(heard) => *heard.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Waits until a call with this cost in micro-points, or one REST call, may be made.
    pub(crate) async fn take(
        &self,
        speech: ApiKind,
        micro: u64,
        patience: Duration,
    ) -> Result<Option<Grant>> {
        let (bucket, cost) = match (self, speech) {
            (Self::Queue(_), _) => return Ok(None),
            (Self::Buckets { points: bucket, .. }, ApiKind::Graphql) => (bucket, Tokens::from_micro(micro)),
            (Self::Buckets { requests, .. }, ApiKind::Rest) => (requests, 1.into()),
        };
        let taken = match bucket.take_within(cost, patience).await {
            // An estimate above the capacity proves nothing: Shopify knows the cost, and reports
            // it.
            Err(tidegate_limits::Error::TooCostly { capacity, .. }) => {
                bucket.take_within(capacity, patience).await?
            }
            taken => taken?,
        };
        match taken {
            TokenTakeOutcome::Granted(grant) => Ok(Some(grant)),
            TokenTakeOutcome::Wait(wait) => Err(Error::new(ShopifyErrorKind::Throttled { wait: wait.delay })),
        }
    }

    /// Settles a call that asked for so many micro-points by what its response reported. A failing
    /// store does not take the response away.
    pub(crate) async fn settle(&self, grant: Option<Grant>, asked: u64, tried: &AttemptResult) {
        match (self, grant) {
            (Self::Queue(heard), _) => {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                // A refused call took nothing; a lost one may have taken all that it asked for.
                let unsaid = match &tried.outcome {
                    AttemptOutcome::Throttled { .. }
                    | AttemptOutcome::NotSent(_)
                    | AttemptOutcome::Refused(_) => 0,
                    AttemptOutcome::Done { .. } | AttemptOutcome::Failed(_) | AttemptOutcome::Unknown(_) => {
                        asked
                    }
                };
                heard.spent += tried.meta.cost.actual.unwrap_or(unsaid);
                if tried.meta.cost.available.is_some() {
                    heard.last = tried.meta.cost;
                }
            }
            (Self::Buckets { .. }, Some(grant)) => {
                let Some(spent) = spent(tried, &grant) else { return };
                let bucket = grant.bucket().to_owned();
                if let Err(error) = grant.settle_as_reported(spent, reported_levels(tried)).await {
                    tracing::warn!(%bucket, %error, "the cost of a call could not be settled");
                }
            }
            (Self::Buckets { .. }, None) => {}
        }
    }
}

/// Returns the actual cost; `None` when it is unknown, and then what was reserved stays taken.
fn spent(tried: &AttemptResult, grant: &Grant) -> Option<Tokens> {
    match &tried.outcome {
        AttemptOutcome::Throttled { .. } | AttemptOutcome::NotSent(_) => Some(0.into()),
        AttemptOutcome::Failed(_) | AttemptOutcome::Unknown(_) => {
            tried.meta.cost.actual.map(Tokens::from_micro)
        }
        AttemptOutcome::Done { .. } | AttemptOutcome::Refused(_) => {
            Some(tried.meta.cost.actual.map_or_else(|| grant.reserved().into(), Tokens::from_micro))
        }
    }
}

fn reported_levels(tried: &AttemptResult) -> ReportedLevels {
    let tokens = |micro: Option<u64>| micro.map(Tokens::from_micro);
    let said: &ResponseMeta = &tried.meta;
    let told = match said.calls {
        Some(calls) => ReportedLevels {
            capacity: tokens(Some(calls.capacity())),
            refill_per_s: tokens(Some(calls.refill_per_s())),
            remaining: tokens(Some(calls.remaining())),
        },
        None => ReportedLevels {
            capacity: tokens(said.cost.maximum),
            refill_per_s: tokens(said.cost.restore_per_s),
            remaining: tokens(said.cost.available),
        },
    };
    // A 429 without figures still says that nothing is left.
    let nothing = matches!(tried.outcome, AttemptOutcome::Throttled { .. }).then(|| Tokens::from(0));
    ReportedLevels { remaining: told.remaining.or(nothing), ..told }
}
