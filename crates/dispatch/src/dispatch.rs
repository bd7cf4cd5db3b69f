//! The dispatch of generations: a checked configuration, its executor and limits for an engine, and
//! the generations of each engine.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tidegate::{Engine, OperationId, Submission};
use tidegate_core::bounds::{HORIZON_MAX, PAYLOAD_LEN_MAX};
use tidegate_core::fact::LimitShape;
use tidegate_core::fingerprint::{Fingerprint, hex};
use tidegate_core::text::is_plain_text;
use tidegate_upstream::Upstream;
use tokio::sync::watch;

use crate::config::{ConfigError, DispatchConfig, ModelConfig};
use crate::error::{DispatchError, DispatchErrorKind};
use crate::executor::GenerationExecutor;
use crate::generations::{Generations, NewGeneration, UserTurns};
use crate::http_client::HttpClient;
use crate::input_schema::InputProblem;
use crate::model_set::{ModelDiff, ModelSet};
use crate::payload::GenerationPayload;
use crate::provider_set::{ProviderLimits, ProviderSet};
use crate::results::ResultCopier;
use crate::storage::ResultStorage;
use crate::webhook::split_token;

/// The kind of operations that are generations.
pub const KIND: &str = "generation";

/// Longest name of a user, in bytes.
const USER_LEN_MAX: usize = 128;
/// Longest idempotency key, in bytes.
const KEY_LEN_MAX: usize = 255;

/// What all parts share.
pub(crate) struct DispatchState {
    pub config: DispatchConfig,
    pub providers: ProviderSet,
    models: RwLock<Arc<ModelSet>>,
    model_changes: watch::Sender<()>,
    pub client: Arc<HttpClient>,
    pub results: ResultCopier,
    pub turns: UserTurns,
}

impl DispatchState {
    /// The models that are in force.
    pub(crate) fn models(&self) -> Arc<ModelSet> {
        Arc::clone(&self.models.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has [`Generations::follow_chains`] called again: a generation has an outdated chain.
    pub(crate) fn ask_to_follow(&self) {
        self.model_changes.send_replace(());
    }
}

/// The dispatch of generations. Cheap to clone.
#[derive(Clone)]
pub struct Dispatch {
    state: Arc<DispatchState>,
}

impl fmt::Debug for Dispatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dispatch").field("models", &self.state.models().names()).finish_non_exhaustive()
    }
}

impl Dispatch {
    /// Checks a configuration; opens no connection. Files of results go to `storage`.
    ///
    /// # Errors
    /// Names the place of the first problem.
    pub fn new(config: DispatchConfig, storage: Arc<dyn ResultStorage>) -> Result<Self, ConfigError> {
        config.check()?;
        let (providers, models) = (ProviderSet::new(&config)?, ModelSet::new(&config.models)?);
        let client = Arc::new(HttpClient::new());
        let results =
            ResultCopier { storage, client: Arc::clone(&client), max_bytes: config.result_max_bytes };
        let turns = UserTurns::default();
        let models = RwLock::new(Arc::new(models));
        let model_changes = watch::Sender::new(());
        let state = DispatchState { config, providers, models, model_changes, client, results, turns };
        Ok(Self { state: Arc::new(state) })
    }

    /// The limits that an engine must be opened with.
    #[must_use]
    pub fn limits(&self) -> Vec<(Arc<str>, LimitShape)> {
        self.state.providers.shapes()
    }

    /// The executor of operations of [`KIND`].
    #[must_use]
    pub fn executor(&self) -> Arc<dyn Upstream> {
        Arc::new(GenerationExecutor(Arc::clone(&self.state)))
    }

    /// The models that are in force.
    #[must_use]
    pub fn models(&self) -> Vec<ModelConfig> {
        self.state.models().configs().cloned().collect()
    }

    /// Replaces all models; the providers stay. What is created from now on follows them, and what
    /// was created before once [`Generations::follow_chains`] is called. Returns which of them
    /// differ.
    ///
    /// # Errors
    /// Names the place of the first problem; then nothing changes.
    pub fn set_models(&self, models: Vec<ModelConfig>) -> Result<ModelDiff, ConfigError> {
        let config = DispatchConfig { models, ..self.state.config.clone() };
        config.check()?;
        let models = Arc::new(ModelSet::new(&config.models)?);
        let mut in_force = self.state.models.write().unwrap_or_else(PoisonError::into_inner);
        let diff = in_force.diff(&models);
        if diff.is_empty() {
            return Ok(diff);
        }
        *in_force = models;
        drop(in_force);
        self.state.ask_to_follow();
        Ok(diff)
    }

    /// Notifies when [`Generations::follow_chains`] has to be called: the models have changed, or a
    /// generation was found with an outdated chain.
    #[must_use]
    pub fn model_changes(&self) -> watch::Receiver<()> {
        self.state.model_changes.subscribe()
    }

    /// The generations of an engine that was opened with its limits and its executor.
    #[must_use]
    pub fn generations(&self, engine: &Engine) -> Generations {
        Generations { dispatch: self.clone(), state: Arc::clone(&self.state), engine: engine.clone() }
    }

    /// The configuration that it was created with; its models may have been
    /// [replaced](Self::set_models).
    #[must_use]
    pub fn config(&self) -> &DispatchConfig {
        &self.state.config
    }

    /// Where the files of results are.
    #[must_use]
    pub fn storage(&self) -> &Arc<dyn ResultStorage> {
        &self.state.results.storage
    }

    /// The names of a provider's limits.
    #[must_use]
    pub fn provider_limits(&self, provider: &str) -> Option<ProviderLimits> {
        self.state.providers.get(provider).map(|provider| provider.limits.clone())
    }

    /// The operation that the token of a webhook names, to find the partition that has it. Nothing
    /// is verified.
    #[must_use]
    pub fn operation_of(token: &str) -> Option<OperationId> {
        split_token(token).map(|(id, _)| id)
    }

    /// Checks a generation, and builds the submission of its operation.
    ///
    /// # Errors
    /// When the model is unknown, or a field is wrong.
    pub fn submission(&self, new: &NewGeneration) -> Result<Submission, DispatchError> {
        let invalid = |field: &str, message: String| {
            Err(DispatchError::new(DispatchErrorKind::Invalid, message).with_field(field))
        };
        let models = self.state.models();
        let Some(model) = models.get(&new.model) else {
            let known = models.names();
            let message = format!("there is no model {:?}; known: {known}", new.model);
            return Err(DispatchError::new(DispatchErrorKind::UnknownModel, message).with_field("model"));
        };
        if !is_plain_text(&new.user, 1..=USER_LEN_MAX) {
            return invalid("user", format!("a user is 1 to {USER_LEN_MAX} bytes on one line"));
        }
        if let Some(key) = &new.idempotency_key
            && !(1..=KEY_LEN_MAX).contains(&key.len())
        {
            return invalid("Idempotency-Key", format!("a key is 1 to {KEY_LEN_MAX} bytes"));
        }
        let mut problems = model.problems(&new.input).into_iter();
        if let Some(InputProblem { field, message }) = problems.next() {
            let error = DispatchError::new(DispatchErrorKind::InvalidInput, message).with_field(field);
            return Err(DispatchError { also: problems.collect(), ..error });
        }
        let payload = GenerationPayload {
            model: new.model.clone(),
            user: new.user.clone(),
            input: new.input.clone(),
            notify_url: new.notify_url.clone(),
        };
        let payload = payload.encode();
        if payload.len() > PAYLOAD_LEN_MAX {
            return invalid("input", format!("a generation has at most {PAYLOAD_LEN_MAX} bytes"));
        }
        let key = new.idempotency_key.as_ref().map(|key| request_key(&new.user, key));
        let group = group_of(&new.user, key.as_deref(), model.config.fair)?;
        // It waits for as long as it may, whatever the limits allow now.
        let mut submission = Submission::new(KIND, group, payload)
            .with_user(new.user.as_str())
            .with_upstream(new.model.as_str())
            .with_deadline(model.config.max_wait)
            .with_start_within(model.config.max_wait.map(|_| HORIZON_MAX));
        submission.dedupe_key = key.map(|key| format!("{KIND}:{key}").into());
        submission.request_id = new.request_id.as_deref().map(Arc::from);
        Ok(submission)
    }
}

/// What identifies a request: its key, which belongs to its user.
fn request_key(user: &str, key: &str) -> String {
    let hash = Fingerprint::of("generation key").part(user.as_bytes()).part(key.as_bytes()).short();
    hex(&hash.to_be_bytes())
}

/// The group of a generation: its user's, where users take turns; otherwise its own. The same
/// request has the same group.
fn group_of(user: &str, key: Option<&str>, is_fair: bool) -> Result<String, DispatchError> {
    if is_fair {
        return Ok(format!("{KIND}:user:{user}"));
    }
    if let Some(key) = key {
        return Ok(format!("{KIND}:{key}"));
    }
    let mut name = [0; 16];
    getrandom::fill(&mut name).map_err(|error| {
        let kind = DispatchErrorKind::Engine(tidegate::ErrorKind::Internal);
        DispatchError::new(kind, format!("the system has no random numbers: {error}"))
    })?;
    Ok(format!("{KIND}:{}", hex(&name)))
}
