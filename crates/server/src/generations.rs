//! Generations: what the server adds to `tidegate_dispatch`. It opens the storage, reads changed
//! models, reports ends to applications, and shows providers. It decides nothing about a
//! generation.

mod chain_follower;
pub(crate) mod mirror;
pub(crate) mod model_file;
pub(crate) mod providers;
mod reporter;

use std::sync::Arc;
use std::time::Duration;

use tidegate::{Engine, Executors};
use tidegate_core::Placement;
use tidegate_core::id::Partition;
use tidegate_dispatch::notify::{self, Notifier, NotifierConfig, check_target};
use tidegate_dispatch::storage::{FolderStorage, ResultStorage, S3Storage};
use tidegate_dispatch::{Dispatch, DispatchError, DispatchErrorKind, Generations, KIND};
use tidegate_store::Clock;
use tidegate_upstream::http::LimitDefinition;

use crate::config::{Config, NotifyConfig, ResultStorageConfig};
use crate::error::{Error, ErrorCode, Result, sentence};
use model_file::ModelFile;

/// When a user with too many unfinished generations may try again: no one knows when one ends.
const ACTIVE_RETRY: Duration = Duration::from_secs(5);
/// The prefix of the names of providers' limits.
const PROVIDER_LIMITS: &str = "provider:";

/// The generations of this server, before any partition is open.
#[derive(Clone)]
pub(crate) struct GenerationService {
    pub dispatch: Dispatch,
    /// How ends are reported, if they are.
    notify: Option<NotifyConfig>,
    notifier: Option<Arc<Notifier>>,
    /// The file of the models, if there is one.
    pub model_file: Option<Arc<ModelFile>>,
    /// Where others reach this server, if that is configured.
    public_url: Option<String>,
}

impl GenerationService {
    /// Opens the storage and checks the configuration; `None` when there is no model.
    pub(crate) fn from_config(config: &Config, clock: &Arc<dyn Clock>) -> Result<Option<Self>> {
        let generations = &config.generations;
        if generations.dispatch.models.is_empty() {
            return Ok(None);
        }
        let bad = |problem: String| Error::new(ErrorCode::BadConfig, problem);
        let storage: Arc<dyn ResultStorage> = match &generations.storage {
            ResultStorageConfig::Folder(folder) => {
                let opened = FolderStorage::open(folder);
                let message = |error| format!("The folder of results cannot be used: {error}.");
                Arc::new(opened.map_err(|error| bad(message(error)))?)
            }
            ResultStorageConfig::S3(bucket) => {
                let opened = S3Storage::new(bucket, Arc::clone(clock));
                Arc::new(opened.map_err(|refusal| bad(format!("In [generations.storage], {refusal}")))?)
            }
        };
        let dispatch = Dispatch::new(generations.dispatch.clone(), storage);
        let dispatch = dispatch.map_err(|error| bad(format!("{error}.")))?;
        let notify = generations.notify.clone();
        let notifier = notify.as_ref().map(|notify| {
            let config = NotifierConfig::new(vec![notify.secret.clone()]);
            Notifier::new(config.with_private(notify.allows_private)).map(Arc::new)
        });
        let notifier = notifier.transpose().map_err(|refusal| bad(refusal.to_string()))?;
        let file = config.file.clone();
        let model_file = file.map(|file| Arc::new(ModelFile::new(file, dispatch.clone())));
        Ok(Some(Self { dispatch, notify, notifier, model_file, public_url: config.public_url.clone() }))
    }

    /// Adds the executors and the limits that generations need.
    pub(crate) fn extend(&self, executors: &mut Executors, limits: &mut Vec<LimitDefinition>) {
        executors.insert(Arc::from(KIND), self.dispatch.executor());
        limits.extend(self.dispatch.limits());
        if let Some(notifier) = &self.notifier {
            limits.extend(notifier.limits());
            executors.insert(Arc::from(notify::KIND), Arc::clone(notifier) as _);
        }
    }

    /// Checks the address that a caller wants an end to be reported to.
    pub(crate) fn check_notify_url(&self, url: &str) -> Result<()> {
        let Some(notify) = &self.notify else {
            let message = "This server reports nothing: set notify_secret_env in [generations].";
            return Err(Error::new(ErrorCode::Invalid, message).field("notify_url"));
        };
        let checked = check_target(url, notify.allows_private);
        checked
            .map(drop)
            .map_err(|refusal| Error::new(ErrorCode::Invalid, refusal.message).field("notify_url"))
    }

    /// Starts what accompanies the engine that has the generations, until that engine ends.
    pub(crate) fn accompany(
        &self,
        engine: &Engine,
        store: &Arc<dyn tidegate_store::Store>,
        clock: &Arc<dyn Clock>,
    ) -> Generations {
        let generations = self.dispatch.generations(engine);
        let follower = chain_follower::ChainFollower {
            dispatch: self.dispatch.clone(),
            engine: engine.clone(),
            generations: generations.clone(),
        };
        tokio::spawn(follower.run());
        if let Some(notify) = &self.notify {
            let reporter = reporter::EndReporter {
                engine: engine.clone(),
                generations: generations.clone(),
                default_url: notify.url.clone(),
                public_url: self.public_url.clone(),
            };
            tokio::spawn(reporter.run());
        }
        if store.status_board().is_some() {
            let mirror = mirror::ProviderMirror {
                dispatch: self.dispatch.clone(),
                engine: engine.clone(),
                generations: generations.clone(),
                store: Arc::clone(store),
                clock: Arc::clone(clock),
            };
            tokio::spawn(mirror.run());
        }
        generations
    }
}

/// The partition that has all generations: they share the limits of their providers.
pub(crate) fn partition(partitions: Partition) -> Partition {
    Placement::Upstream(KIND).partition(partitions)
}

/// The upstream by which the partition of a limit is found: limits of providers, and of
/// notifications, are where the generations are.
pub(crate) fn home_of_limit(upstream: &str) -> &str {
    let is_ours = upstream.starts_with(PROVIDER_LIMITS) || upstream == notify::KIND;
    if is_ours { KIND } else { upstream }
}

impl From<DispatchError> for Error {
    fn from(error: DispatchError) -> Self {
        let code = match error.kind {
            DispatchErrorKind::UnknownModel => ErrorCode::UnknownModel,
            DispatchErrorKind::InvalidInput => ErrorCode::BadInput,
            DispatchErrorKind::Invalid => ErrorCode::Invalid,
            DispatchErrorKind::TooManyActive | DispatchErrorKind::TooFast => ErrorCode::TooManyGenerations,
            DispatchErrorKind::KeyConflict => ErrorCode::KeyConflict,
            DispatchErrorKind::NotFound => ErrorCode::NoOperation,
            DispatchErrorKind::NotNow => ErrorCode::NotNow,
            DispatchErrorKind::Engine(kind) => kind.code(),
            _ => ErrorCode::Internal,
        };
        // The names of the fields of a request, where they differ.
        let field = error.field.as_deref().map(|field| match field {
            "user" => "user_id",
            "model" => "model_id",
            field => field,
        });
        let is_active = error.kind == DispatchErrorKind::TooManyActive;
        let retry_after = error.retry_after.or(is_active.then_some(ACTIVE_RETRY));
        let mut this = Self::new(code, sentence(&error.message)).retry_after(retry_after);
        (this.field, this.operation) = (field.map(Box::from), error.operation);
        let also = error.also.into_iter();
        this.also = also.map(|problem| Self::new(code, problem.message).field(problem.field)).collect();
        this
    }
}
