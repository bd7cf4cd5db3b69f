//! Why a generation is not processed yet: each provider of its chain with its reason and time.

use tidegate::{AlternativeState, AlternativeStatus, Cause, OperationId, Time};

use super::Generations;
use crate::error::DispatchError;
use crate::generation::GenerationStatus;
use crate::provider_set::split_alternative;

/// Why a generation has the status that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationReason {
    /// Its status.
    pub status: GenerationStatus,
    /// One sentence.
    pub because: String,
    /// When that ends, if known.
    pub until: Option<Time>,
    /// Its position among those that wait; 1 is next.
    pub queue_position: Option<usize>,
    /// Each key of each provider of its chain.
    pub providers: Vec<ProviderReason>,
}

/// Why a provider does not have it, with one of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderReason {
    /// The provider.
    pub provider: String,
    /// The name of the key.
    pub key: String,
    /// What keeps it.
    pub state: ProviderState,
    /// The same for people.
    pub because: String,
    /// When it is free, if known.
    pub until: Option<Time>,
}

/// What keeps a provider from taking a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderState {
    /// Nothing.
    Free,
    /// All its slots are taken, or others go first.
    Busy,
    /// Its submits a minute are used up.
    RateLimited,
    /// It, its account or its key cools down after errors.
    CoolingDown,
    /// It was tried for this generation, and failed.
    Failed,
    /// It has the generation.
    InUse,
}

impl ProviderState {
    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Busy => "busy",
            Self::RateLimited => "rate_limited",
            Self::CoolingDown => "cooling_down",
            Self::Failed => "failed",
            Self::InUse => "in_use",
        }
    }
}

impl Generations {
    /// Explains why a generation is not processed yet.
    ///
    /// # Errors
    /// When there is none with this id.
    pub async fn why(&self, id: OperationId) -> Result<GenerationReason, DispatchError> {
        let generation = self.get(id).await?;
        let reason = self.engine.why(id).await?;
        let current = self.engine.current_attempt(id).await?.and_then(|current| current.alternative);
        let alternatives = self.engine.alternatives(id).await?;
        let of = |alternative: &AlternativeStatus| provider_reason(alternative, current.as_deref());
        let status = generation.status;
        // Operations end in other states than generations.
        let ended = status.is_ended().then(|| match &generation.error {
            Some(error) => format!("It has ended: {}. {}.", status.as_str(), error.trim_end_matches('.')),
            None => format!("It has ended: {}.", status.as_str()),
        });
        Ok(GenerationReason {
            status,
            because: ended.unwrap_or(reason.because),
            until: reason.until,
            queue_position: generation.queue_position,
            providers: alternatives.iter().map(of).collect(),
        })
    }
}

fn provider_reason(alternative: &AlternativeStatus, current: Option<&str>) -> ProviderReason {
    let (provider, key) = split_alternative(&alternative.name).unwrap_or((&alternative.name, ""));
    let (state, because) = match &alternative.state {
        _ if current == Some(&*alternative.name) => (ProviderState::InUse, "it has the generation".into()),
        AlternativeState::Free => (ProviderState::Free, "it is free".into()),
        AlternativeState::Failed(fault) => (ProviderState::Failed, fault.message.clone()),
        AlternativeState::Waits(cause) => describe(cause),
    };
    let until = alternative.until.filter(|_| state != ProviderState::InUse);
    ProviderReason { provider: provider.to_owned(), key: key.to_owned(), state, because, until }
}

fn describe(cause: &Cause) -> (ProviderState, String) {
    match cause {
        Cause::Cap { at_once, held, .. } if held >= at_once => {
            (ProviderState::Busy, format!("{held} of {at_once} slots are taken"))
        }
        Cause::Bucket { .. } => (ProviderState::RateLimited, "its submits of this minute are used up".into()),
        Cause::Breaker { name, failures, cooling: true, .. } => {
            let whose = name.split_once('/').map_or("", |(_, part)| part);
            let whose = if whose == "health" { "it".to_owned() } else { whose.replace(':', " ") };
            let after = match failures {
                0 => "because it was asked to".into(),
                1 => "after an error".into(),
                more => format!("after {more} errors in a row"),
            };
            (ProviderState::CoolingDown, format!("{whose} cools down {after}"))
        }
        Cause::Breaker { .. } => {
            (ProviderState::CoolingDown, "it has just recovered: one job goes first".into())
        }
        _ => (ProviderState::Busy, "others go first".into()),
    }
}
