//! The state of each provider, from the limits of the partition that has the generations. Its last
//! error is that of the call that closed it last; while none has, that of its latest attempt in the
//! ledger.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidegate::Engine;
use tidegate_core::fact::LimitClosure;
use tidegate_core::id::Partition;
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
    pub keys: Vec<KeyStatus>,
    /// The accounts of its keys by name, each with its breaker.
    pub accounts: Vec<(String, LimitView)>,
    pub last_error: Option<ProviderError>,
}

/// A key of a provider.
#[derive(Clone, Debug)]
pub(crate) struct KeyStatus {
    pub name: String,
    /// The account that owns it, if that is known.
    pub account: Option<String>,
    pub breaker: LimitView,
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
    /// Its cooldown is over, and one job has to succeed before others follow.
    Probing,
}

impl Availability {
    const ALL: [Self; 5] = [Self::Free, Self::Busy, Self::RateLimited, Self::CoolingDown, Self::Probing];

    /// The state that the API names so.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Busy => "busy",
            Self::RateLimited => "rate_limited",
            Self::CoolingDown => "cooling_down",
            Self::Probing => "probing",
        }
    }
}

impl ProviderStatus {
    /// Whether it takes a job now, and until when not, if that is known.
    pub(crate) fn state(&self, now: Time) -> (Availability, Option<Time>) {
        let until = self.closed_until(now);
        if until.is_some() {
            return (Availability::CoolingDown, until);
        }
        if self.failing_since().is_some() {
            return (Availability::Probing, None);
        }
        if self.rpm.level < MICRO {
            return (Availability::RateLimited, self.rpm.reset_at);
        }
        if self.slots.level == 0 {
            return (Availability::Busy, None);
        }
        (Availability::Free, None)
    }

    /// Until when no job can be submitted: it cools itself, or each of its keys does, alone or with
    /// its account.
    fn closed_until(&self, now: Time) -> Option<Time> {
        let closed = |limit: &LimitView| limit.frozen_until.filter(|until| *until > now);
        let of_key = |key: &KeyStatus| closed(&key.breaker).max(self.account_of(key).and_then(closed));
        let of_keys = self.keys.iter().map(of_key).collect::<Option<Vec<_>>>();
        closed(&self.breaker).max(of_keys.and_then(|until| until.into_iter().min()))
    }

    /// Since when it takes no jobs but one at a time, to see whether it is well again; `None` while
    /// it takes them.
    pub(crate) fn failing_since(&self) -> Option<Time> {
        let of_key = |key: &KeyStatus| {
            let limits = [Some(&key.breaker), self.account_of(key)].into_iter().flatten();
            limits.filter_map(LimitView::failing_since).min()
        };
        // Until the last of its keys failed, there was another one.
        let of_keys = self.keys.iter().map(of_key).collect::<Option<Vec<_>>>();
        let of_keys = of_keys.and_then(|since| since.into_iter().max());
        self.breaker.failing_since().into_iter().chain(of_keys).min()
    }

    fn account_of(&self, key: &KeyStatus) -> Option<&LimitView> {
        let name = key.account.as_ref()?;
        self.accounts.iter().find(|(known, _)| known == name).map(|(_, limit)| limit)
    }

    /// The breakers that may keep it closed: its own, and those of its keys and their accounts.
    pub(crate) fn breakers(&self) -> impl Iterator<Item = &LimitView> {
        let keys = self.keys.iter().map(|key| &key.breaker);
        std::iter::once(&self.breaker).chain(keys).chain(self.accounts.iter().map(|(_, limit)| limit))
    }

    /// One sentence about it.
    pub(crate) fn because(&self, now: Time) -> String {
        let in_use = self.slots.in_flight;
        match self.state(now) {
            (Availability::Free, _) => format!("It takes jobs; {in_use} are in progress."),
            (Availability::Busy, _) => format!("All {in_use} slots are taken."),
            (Availability::RateLimited, _) => "The submits of this minute are used up.".to_owned(),
            (Availability::CoolingDown, _) => match self.breaker.failures {
                0 if self.breaker.failing_since().is_none() => {
                    "Each of its keys cools after an error.".to_owned()
                }
                0 => "It asked to wait.".to_owned(),
                1 => "It cools after an error.".to_owned(),
                failures => format!("It cools after {failures} errors in a row."),
            },
            (Availability::Probing, _) => {
                "After errors, one job goes first; others follow when it succeeds.".to_owned()
            }
        }
    }

    /// How many generations wait for it, or for any of several providers of which it is one.
    pub(crate) fn waiting(&self) -> usize {
        // Every alternative of a provider charges its breaker.
        self.breaker.waiters() + self.slots.waiting + self.rpm.waiting
    }

    /// The error of the call that closed it, or one of its keys, last.
    fn closing_error(&self, partition: Partition) -> Option<ProviderError> {
        let last = self.breakers().filter_map(|limit| limit.closure.as_ref()).max_by_key(|one| one.at)?;
        let LimitClosure { at, seq, accepted_at, fault, .. } = last;
        let generation = OperationId::new(*accepted_at, partition, *seq);
        Some(ProviderError { at: *at, generation, message: fault.as_ref()?.message.clone() })
    }
}

/// Reads the state of every provider, in the order of the configuration.
pub(crate) async fn read_all(
    dispatch: &Dispatch,
    engine: &Engine,
    generations: &Generations,
) -> Result<Vec<ProviderStatus>> {
    let mut all = from_limits(dispatch, engine.limits().await?);
    let ledger = generations.ledger(None, LEDGER_ENTRIES).await.map_err(Error::from)?;
    for status in &mut all {
        let closing = status.closing_error(engine.partition());
        status.last_error = closing.or_else(|| last_error(&status.name, &ledger.entries));
    }
    Ok(all)
}

/// The state of every provider whose limits are among these, without its last error.
pub(crate) fn from_limits(dispatch: &Dispatch, limits: Vec<LimitView>) -> Vec<ProviderStatus> {
    let limits: BTreeMap<Arc<str>, LimitView> =
        limits.into_iter().map(|limit| (Arc::clone(&limit.name), limit)).collect();
    let providers = dispatch.config().providers.iter();
    providers.filter_map(|provider| status(dispatch, provider, &limits)).collect()
}

/// The state of one provider; `None` when its limits are not in this partition.
fn status(
    dispatch: &Dispatch,
    provider: &ProviderConfig,
    limits: &BTreeMap<Arc<str>, LimitView>,
) -> Option<ProviderStatus> {
    let names = dispatch.provider_limits(&provider.name)?;
    let find = |name: &Arc<str>| limits.get(name).cloned();
    let key = |(name, limit): &(String, Arc<str>)| {
        let account = provider.keys.iter().find(|key| key.name == *name).and_then(|key| key.account.clone());
        Some(KeyStatus { name: name.clone(), account, breaker: find(limit)? })
    };
    Some(ProviderStatus {
        name: provider.name.clone(),
        adapter: provider.adapter.name(),
        breaker: find(&names.breaker)?,
        slots: find(&names.slots)?,
        rpm: find(&names.rpm)?,
        keys: names.keys.iter().filter_map(key).collect(),
        accounts: names
            .accounts
            .iter()
            .filter_map(|(name, limit)| Some((name.clone(), find(limit)?)))
            .collect(),
        last_error: None,
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

#[cfg(test)]
mod tests;
