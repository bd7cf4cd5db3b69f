//! The state of each provider, from the limits of the partition that has the generations and the
//! latest attempts in its ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate::Engine;
use tidegate_core::model::LimitView;
use tidegate_core::operation::MICRO;
use tidegate_core::{OperationId, Time};
use tidegate_dispatch::{Dispatch, Generations, LedgerEntry, ProviderConfig};

use crate::error::{Error, Result};

/// The attempts that are searched for the last error of each provider.
const LEDGER_ENTRIES: usize = 100;

/// A provider, as it is now.
#[derive(Clone, Debug)]
pub(crate) struct ProviderStatus {
    pub name: String,
    pub adapter: &'static str,
    pub breaker: LimitView,
    pub slots: LimitView,
    pub rpm: LimitView,
    /// Its keys by name, each with its breaker.
    pub keys: Vec<(String, LimitView)>,
    /// The accounts of its keys by name, each with its breaker.
    pub accounts: Vec<(String, LimitView)>,
    pub last_error: Option<ProviderError>,
}

/// The last error of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProviderError {
    pub at: Time,
    pub generation: OperationId,
    pub message: String,
}

/// Whether a provider takes a job now, and if not, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// It takes one.
    Free,
    /// All its slots are taken.
    Busy,
    /// The submits of this minute are used up.
    RateLimited,
    /// It, or each of its keys, cools after errors.
    CoolingDown,
}

impl Availability {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Busy => "busy",
            Self::RateLimited => "rate_limited",
            Self::CoolingDown => "cooling_down",
        }
    }
}

impl ProviderStatus {
    /// Whether it takes a job now, and until when not, if that is known.
    pub(crate) fn state(&self, now: Time) -> (Availability, Option<Time>) {
        let closed = |limit: &LimitView| limit.frozen_until.filter(|until| *until > now);
        let keys = || self.keys.iter().map(|(_, limit)| closed(limit));
        let until = closed(&self.breaker).or_else(|| keys().collect::<Option<Vec<_>>>()?.into_iter().min());
        if until.is_some() {
            return (Availability::CoolingDown, until);
        }
        if self.rpm.level < MICRO {
            return (Availability::RateLimited, self.rpm.reset_at);
        }
        if self.slots.level == 0 {
            return (Availability::Busy, None);
        }
        (Availability::Free, None)
    }

    /// One sentence about it.
    pub(crate) fn because(&self, now: Time) -> String {
        let in_use = self.slots.in_flight;
        match self.state(now) {
            (Availability::Free, _) => format!("It takes jobs; {in_use} are in progress."),
            (Availability::Busy, _) => format!("All {in_use} slots are taken."),
            (Availability::RateLimited, _) => "The submits of this minute are used up.".to_owned(),
            (Availability::CoolingDown, _) => match self.breaker.failures {
                0 => "It asked to wait.".to_owned(),
                1 => "It cools after an error.".to_owned(),
                failures => format!("It cools after {failures} errors in a row."),
            },
        }
    }

    /// How many generations wait for it, or for any of several providers of which it is one.
    pub(crate) fn waiting(&self) -> usize {
        // Every alternative of a provider charges its breaker.
        self.breaker.waiters() + self.slots.waiting + self.rpm.waiting
    }
}

/// Reads the state of every provider, in the order of the configuration.
pub(crate) async fn read_all(
    dispatch: &Dispatch,
    engine: &Engine,
    generations: &Generations,
) -> Result<Vec<ProviderStatus>> {
    let limits = engine.limits().await?;
    let ledger = generations.ledger(None, LEDGER_ENTRIES).await.map_err(Error::from)?;
    Ok(from_limits(dispatch, limits, &ledger.entries))
}

/// The state of every provider whose limits are among these, with the last error in this part of
/// the ledger.
pub(crate) fn from_limits(
    dispatch: &Dispatch,
    limits: Vec<LimitView>,
    ledger: &[LedgerEntry],
) -> Vec<ProviderStatus> {
    let limits: BTreeMap<Arc<str>, LimitView> =
        limits.into_iter().map(|limit| (Arc::clone(&limit.name), limit)).collect();
    let providers = dispatch.config().providers.iter();
    providers.filter_map(|provider| status(dispatch, provider, &limits, ledger)).collect()
}

/// The state of one provider; `None` when its limits are not in this partition.
fn status(
    dispatch: &Dispatch,
    provider: &ProviderConfig,
    limits: &BTreeMap<Arc<str>, LimitView>,
    ledger: &[LedgerEntry],
) -> Option<ProviderStatus> {
    let names = dispatch.provider_limits(&provider.name)?;
    let find = |name: &Arc<str>| limits.get(name).cloned();
    let find_all = |all: &[(String, Arc<str>)]| {
        all.iter().filter_map(|(name, limit)| Some((name.clone(), find(limit)?))).collect()
    };
    Some(ProviderStatus {
        name: provider.name.clone(),
        adapter: provider.adapter.name(),
        breaker: find(&names.breaker)?,
        slots: find(&names.slots)?,
        rpm: find(&names.rpm)?,
        keys: find_all(&names.keys),
        accounts: find_all(&names.accounts),
        last_error: last_error(&provider.name, ledger),
    })
}

fn last_error(provider: &str, ledger: &[LedgerEntry]) -> Option<ProviderError> {
    let errors = ledger.iter().filter(|entry| entry.provider == provider).filter_map(|entry| {
        let message = entry.reason.clone()?;
        let at = entry.ended_at.unwrap_or(entry.submitted_at);
        Some(ProviderError { at, generation: entry.generation, message })
    });
    errors.max_by_key(|error| error.at)
}
