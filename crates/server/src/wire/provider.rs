//! Providers as JSON: whether each takes jobs now, and the limits that say so.

use serde::Serialize;
use tidegate_core::Time;
use tidegate_core::fact::LimitShape;
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;
use tidegate_dispatch::UNLIMITED;

use super::response::source_word;
use super::time::Timestamp;
use crate::generations::providers::{ProviderError, ProviderStatus};

/// A provider.
#[derive(Serialize)]
pub(crate) struct ProviderOut<'a> {
    name: &'a str,
    adapter: &'static str,
    state: &'static str,
    until: Option<Timestamp>,
    failing_since: Option<Timestamp>,
    because: String,
    waiting: usize,
    slots: Option<SlotsOut>,
    rpm: Option<RateOut>,
    breaker: BreakerOut,
    keys: Vec<PoolMemberOut<'a>>,
    accounts: Vec<PoolMemberOut<'a>>,
    last_error: Option<ProviderErrorOut<'a>>,
}

#[derive(Serialize)]
struct SlotsOut {
    /// `None` for any number.
    max_concurrent: Option<u32>,
    in_use: u32,
    free: Option<u64>,
    source: &'static str,
}

#[derive(Serialize)]
struct RateOut {
    /// `None` for any number.
    limit: Option<u64>,
    left: Option<u64>,
    reset_at: Option<Timestamp>,
    source: &'static str,
}

#[derive(Serialize)]
struct BreakerOut {
    state: &'static str,
    failures: u32,
    open_until: Option<Timestamp>,
    /// The number of jobs that may be in flight while the load comes back; `None` for any number.
    at_once: Option<u64>,
}

#[derive(Serialize)]
struct PoolMemberOut<'a> {
    name: &'a str,
    cooling_until: Option<Timestamp>,
    failures: u32,
}

impl<'a> PoolMemberOut<'a> {
    fn new(name: &'a str, breaker: &LimitView) -> Self {
        Self { name, cooling_until: breaker.frozen_until.map(Timestamp), failures: breaker.failures }
    }
}

#[derive(Serialize)]
struct ProviderErrorOut<'a> {
    at: Timestamp,
    generation: String,
    message: &'a str,
}

impl<'a> ProviderOut<'a> {
    pub(crate) fn new(status: &'a ProviderStatus, now: Time) -> Self {
        let (state, until) = status.state(now);
        Self {
            name: &status.name,
            adapter: status.adapter,
            state: state.as_str(),
            until: until.map(Timestamp),
            failing_since: status.failing_since().map(Timestamp),
            because: status.because(now),
            waiting: status.waiting(),
            slots: slots(&status.slots),
            rpm: rate(&status.rpm),
            breaker: breaker(&status.breaker, now),
            keys: status.keys.iter().map(|key| PoolMemberOut::new(&key.name, &key.breaker)).collect(),
            accounts: status.accounts.iter().map(|(name, limit)| PoolMemberOut::new(name, limit)).collect(),
            last_error: status.last_error.as_ref().map(last_error),
        }
    }
}

fn slots(limit: &LimitView) -> Option<SlotsOut> {
    let LimitShape::Cap { at_once } = limit.shape else { return None };
    let max_concurrent = Some(at_once).filter(|most| *most < UNLIMITED);
    let free = max_concurrent.map(|_| limit.level);
    Some(SlotsOut { max_concurrent, in_use: limit.in_flight, free, source: source_word(limit.source) })
}

fn rate(limit: &LimitView) -> Option<RateOut> {
    let most = match limit.shape {
        LimitShape::Window { limit, .. } => limit,
        LimitShape::Drip { capacity, .. } => capacity,
        _ => return None,
    };
    let most = Some(most / MICRO).filter(|most| *most < u64::from(UNLIMITED));
    Some(RateOut {
        limit: most,
        left: most.map(|_| limit.level / MICRO),
        reset_at: limit.reset_at.map(Timestamp),
        source: source_word(limit.source),
    })
}

fn breaker(limit: &LimitView, now: Time) -> BreakerOut {
    let open_until = limit.frozen_until.filter(|until| *until > now);
    let state = match (open_until, limit.level) {
        (Some(_), _) => "open",
        (None, 0) => "closed",
        (None, _) => "half_open",
    };
    BreakerOut {
        state,
        failures: limit.failures,
        open_until: open_until.map(Timestamp),
        at_once: Some(limit.level).filter(|level| *level > 0),
    }
}

fn last_error(error: &ProviderError) -> ProviderErrorOut<'_> {
    ProviderErrorOut {
        at: Timestamp(error.at),
        generation: error.generation.to_string(),
        message: &error.message,
    }
}

#[derive(Serialize)]
pub(crate) struct ProvidersOut<'a> {
    pub providers: Vec<ProviderOut<'a>>,
}
