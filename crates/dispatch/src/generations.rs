//! The generations of one engine: create, show, list, cancel. A generation is an operation of the
//! queue; this module knows what it means.

mod chains;
mod changes;
mod ledger;
mod reason;
mod user_limits;

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate::{Engine, Filter, OperationId, OperationView};
use tidegate_core::bounds::PAGE_ITEMS_MAX;

use crate::dispatch::{Dispatch, DispatchState, KIND};
use crate::error::{DispatchError, DispatchErrorKind};
use crate::generation::{Generation, GenerationStatus};
use crate::provider_set::split_alternative;

pub use chains::FollowedChains;
pub use changes::{GenerationChange, GenerationChanges};
pub(crate) use ledger::may_be_billed;
pub use ledger::{AttemptOutcome, LedgerEntry, LedgerPage};
pub(crate) use user_limits::UserTurns;

pub use reason::{GenerationReason, ProviderReason, ProviderState};

/// A generation to create.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NewGeneration {
    /// The user it is for.
    pub user: String,
    /// Its model.
    pub model: String,
    /// Its input.
    pub input: Value,
    /// The key of the request: the same key of the same user is the same generation.
    pub idempotency_key: Option<String>,
    /// The caller's request id, for tracing.
    pub request_id: Option<String>,
    /// Where its end is reported.
    pub notify_url: Option<String>,
}

impl NewGeneration {
    /// Creates a request without a key.
    #[must_use]
    pub fn new(user: impl Into<String>, model: impl Into<String>, input: Value) -> Self {
        Self {
            user: user.into(),
            model: model.into(),
            input,
            idempotency_key: None,
            request_id: None,
            notify_url: None,
        }
    }
}

/// A generation that was created.
#[derive(Clone, Debug, PartialEq)]
pub struct CreatedGeneration {
    /// The generation.
    pub generation: Generation,
    /// Whether the same request had created it before.
    pub deduplicated: bool,
}

/// Selects the generations to list, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenerationQuery {
    /// Only those of this user.
    pub user: Option<String>,
    /// Only those with this status.
    pub status: Option<GenerationStatus>,
    /// Only those created before this one.
    pub before: Option<OperationId>,
    /// How many to return at most.
    pub limit: usize,
}

/// A page of generations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerationPage {
    /// Newest first.
    pub generations: Vec<Generation>,
    /// Where the next page starts; `None` at the end. A page can be empty although more follow.
    pub next: Option<OperationId>,
}

/// The generations of one engine. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Generations {
    pub(crate) dispatch: Dispatch,
    pub(crate) state: Arc<DispatchState>,
    pub(crate) engine: Engine,
}

impl std::fmt::Debug for DispatchState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DispatchState").finish_non_exhaustive()
    }
}

impl Generations {
    /// Creates a generation; returns when it is durable.
    ///
    /// # Errors
    /// When the request is wrong, or its user exceeds a limit.
    pub async fn create(&self, new: &NewGeneration) -> Result<CreatedGeneration, DispatchError> {
        let submission = self.dispatch.submission(new)?;
        let turn = self.turn_of(&new.user).await;
        let is_repeat = match &submission.dedupe_key {
            Some(key) => {
                let filter = Filter::default().with_dedupe_key(Arc::clone(key)).with_limit(1);
                !self.engine.list(filter).await?.operations.is_empty()
            }
            None => false,
        };
        if !is_repeat {
            self.check_user(&new.user).await?;
        }
        let receipt = self.engine.submit(submission).await?;
        drop(turn);
        let generation = self.get(receipt.id).await?;
        Ok(CreatedGeneration { generation, deduplicated: receipt.deduplicated })
    }

    /// Returns a generation.
    ///
    /// # Errors
    /// When there is none with this id.
    pub async fn get(&self, id: OperationId) -> Result<Generation, DispatchError> {
        let view = self.engine.get(id).await?;
        self.complete_view(view).await
    }

    /// Returns a generation once it has ended, or as it is after `most`.
    ///
    /// # Errors
    /// When there is none with this id.
    pub async fn wait(&self, id: OperationId, most: Duration) -> Result<Generation, DispatchError> {
        let view = self.engine.wait(id, most).await?;
        self.complete_view(view).await
    }

    async fn complete_view(&self, view: OperationView) -> Result<Generation, DispatchError> {
        let id = view.id;
        if &*view.kind != KIND {
            return Err(DispatchError::not_found(id));
        }
        let payload = self.engine.payload(id).await?;
        let attempts = self.engine.attempts(id).await?;
        let generation = Generation::outline(&view).with_payload(payload.as_deref());
        let mut generation = generation.with_attempts(&attempts).with_result(view.result.as_deref());
        match generation.status {
            GenerationStatus::Queued => {
                generation.queue_position = self.engine.queue_position(id).await?;
            }
            GenerationStatus::Processing => {
                let current = self.engine.current_attempt(id).await?;
                let alternative = current.and_then(|current| current.alternative);
                let provider = alternative.as_deref().and_then(split_alternative);
                generation.provider = provider.map(|(provider, _)| provider.to_owned());
            }
            _ => {}
        }
        Ok(generation)
    }

    /// Lists generations, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(&self, query: &GenerationQuery) -> Result<GenerationPage, DispatchError> {
        if query.status == Some(GenerationStatus::Pending) {
            return Ok(GenerationPage::default());
        }
        let most = usize::try_from(PAGE_ITEMS_MAX).unwrap_or(usize::MAX);
        let states = query.status.map_or(&[][..], GenerationStatus::states);
        let mut filter = Filter::default()
            .with_kind(KIND)
            .with_states(states.iter().copied())
            .with_before(query.before)
            .with_limit(query.limit.clamp(1, most));
        filter.user = query.user.as_deref().map(Arc::from);
        let page = self.engine.list(filter).await?;
        let ids: Vec<_> = page.operations.iter().map(|view| view.id).collect();
        let attempts = self.engine.attempts_of_each(&ids).await?;
        let generation = |(view, attempts): (_, &Vec<_>)| Generation::outline(view).with_attempts(attempts);
        let generations = page.operations.iter().zip(&attempts).map(generation).collect();
        Ok(GenerationPage { generations, next: page.next })
    }

    /// Cancels a generation. One that is at a provider is canceled there, and ends soon after.
    ///
    /// # Errors
    /// When there is none with this id, or it has ended.
    pub async fn cancel(&self, id: OperationId) -> Result<Generation, DispatchError> {
        let generation = self.get(id).await?;
        if generation.status.is_ended() {
            let message = format!("{id} is {}: it has ended", generation.status.as_str());
            let error = DispatchError::new(DispatchErrorKind::NotNow, message);
            return Err(DispatchError { operation: Some(id), ..error });
        }
        let view = self.engine.cancel(id).await?;
        self.complete_view(view).await
    }
}
