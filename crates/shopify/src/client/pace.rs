//! What a call waits for before it is made, and what its answer teaches: the two buckets of a shop, shared by every process
//! that opens the same store. Inside the queue nothing is waited for here, because the queue has granted it already; only
//! what the answers say is kept, to be told to it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_limits::{Bucket, Grant, Taken, Tokens, Told};
use tidegate_store::Shared;

use super::error::{Error, Kind, Result};
use super::wire::{Speech, Tried, What};
use crate::budget::{AtFirst, POINTS, POINTS_AT_FIRST, REQUESTS, REQUESTS_AT_FIRST};
use crate::said::{Cost, Said};
use crate::shop::ShopId;

/// Who paces the calls.
pub(crate) enum Pace {
    /// Buckets that this program shares with others.
    Buckets { points: Bucket, requests: Bucket },
    /// The queue. What was spent and what was last said is kept for it.
    Queue(Mutex<Heard>),
}

/// What the answers of one attempt of the queue said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heard {
    /// What all calls took together, in micro-points.
    pub(crate) spent: u64,
    /// What the last answer said.
    pub(crate) last: Cost,
}

impl Pace {
    pub(crate) fn buckets(store: &Arc<dyn Shared>, shop: &ShopId) -> Result<Self> {
        let bucket = |what: &str, AtFirst { capacity, refill_per_s }| {
            Bucket::learning(Arc::clone(store), format!("shopify/{shop}/{what}"), capacity, refill_per_s)
        };
        let (points, requests) = (bucket(POINTS, POINTS_AT_FIRST)?, bucket(REQUESTS, REQUESTS_AT_FIRST)?);
        Ok(Self::Buckets { points, requests })
    }

    pub(crate) fn queue() -> Self {
        Self::Queue(Mutex::default())
    }

    /// What the queue is told.
    pub(crate) fn heard(&self) -> Heard {
        match self {
            Self::Buckets { .. } => Heard::default(),
            Self::Queue(heard) => *heard.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }

    /// Waits until a call that costs so many micro-points, or one REST call, may be made.
    pub(crate) async fn take(&self, speech: Speech, micro: u64, patience: Duration) -> Result<Option<Grant>> {
        let (bucket, cost) = match (self, speech) {
            (Self::Queue(_), _) => return Ok(None),
            (Self::Buckets { points: bucket, .. }, Speech::Graphql) => (bucket, Tokens::from_micro(micro)),
            (Self::Buckets { requests, .. }, Speech::Rest) => (requests, 1.into()),
        };
        let taken = match bucket.take_within(cost, patience).await {
            // An estimate above what the budget holds proves nothing: Shopify knows what it costs, and says so.
            Err(tidegate_limits::Error::TooCostly { capacity, .. }) => {
                bucket.take_within(capacity, patience).await?
            }
            taken => taken?,
        };
        match taken {
            Taken::Granted(grant) => Ok(Some(grant)),
            Taken::Wait(wait) => Err(Error::new(Kind::Throttled { wait: wait.delay })),
        }
    }

    /// Settles a call that asked for so many micro-points by what its answer said. A store that fails does not take the answer away.
    pub(crate) async fn settle(&self, grant: Option<Grant>, asked: u64, tried: &Tried) {
        match (self, grant) {
            (Self::Queue(heard), _) => {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                // What was turned away took nothing; what was lost may have taken all that it asked for.
                let unsaid = match &tried.what {
                    What::Throttled { .. } | What::NotSent(_) | What::Refused(_) => 0,
                    What::Done { .. } | What::Unsure(_) => asked,
                };
                heard.spent += tried.said.cost.actual.unwrap_or(unsaid);
                if tried.said.cost.available.is_some() {
                    heard.last = tried.said.cost;
                }
            }
            (Self::Buckets { .. }, Some(grant)) => {
                let Some(spent) = spent(tried, &grant) else { return };
                let bucket = grant.bucket().to_owned();
                if let Err(error) = grant.settle_as_told(spent, told(tried)).await {
                    tracing::warn!(%bucket, %error, "what a call cost could not be settled");
                }
            }
            (Self::Buckets { .. }, None) => {}
        }
    }
}

/// What it took; `None` when nobody knows, and then what was reserved stays taken.
fn spent(tried: &Tried, grant: &Grant) -> Option<Tokens> {
    match &tried.what {
        What::Throttled { .. } | What::NotSent(_) => Some(0.into()),
        What::Unsure(_) => tried.said.cost.actual.map(Tokens::from_micro),
        What::Done { .. } | What::Refused(_) => {
            Some(tried.said.cost.actual.map_or_else(|| grant.reserved().into(), Tokens::from_micro))
        }
    }
}

fn told(tried: &Tried) -> Told {
    let tokens = |micro: Option<u64>| micro.map(Tokens::from_micro);
    let said: &Said = &tried.said;
    let told = match said.calls {
        Some(calls) => Told {
            capacity: tokens(Some(calls.capacity())),
            refill_per_s: tokens(Some(calls.refill_per_s())),
            remaining: tokens(Some(calls.remaining())),
        },
        None => Told {
            capacity: tokens(said.cost.maximum),
            refill_per_s: tokens(said.cost.restore_per_s),
            remaining: tokens(said.cost.available),
        },
    };
    // A 429 without figures says one thing all the same.
    let nothing = matches!(tried.what, What::Throttled { .. }).then(|| Tokens::from(0));
    Told { remaining: told.remaining.or(nothing), ..told }
}
