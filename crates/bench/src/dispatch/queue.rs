//! An engine with generations over the endpoints, as a server has one: the queue that is measured.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use tidegate::{CompletionKey, Engine, Options, Submission};
use tidegate_dispatch::storage::FolderStorage;
use tidegate_dispatch::{
    AdapterConfig, ChainLinkConfig, Dispatch, DispatchConfig, KIND, KeyConfig, ModelConfig, NewGeneration,
    ProviderConfig,
};
use tidegate_images::generic::{
    AuthConfig, FieldConfig, PollConfig, StateConfig, SubmitConfig, WebhookVerification,
};
use tidegate_images::{GenericConfig, ThrottleScope};
use tidegate_upstream::Secret;

use super::endpoints::SUBMIT;
use crate::scratch::{self, Scratch};

const MODEL: &str = "flux";
/// Submits a minute of each endpoint: no limit.
const RPM: u32 = 1_000_000;

/// The queue.
#[derive(Debug)]
pub(super) struct GenerationQueue {
    pub engine: Engine,
    dispatch: Dispatch,
    _files: TempDir,
    _scratch: Scratch,
}

impl GenerationQueue {
    /// Opens one on a fresh store, with as many slots at each endpoint as there are workers.
    pub(super) async fn open(store: &str, bases: &[String], workers: usize) -> Result<Self, String> {
        let scratch = Scratch::on_any_store(store)?;
        // Next to the store, on the disk that is measured.
        let parent = scratch.path().and_then(|path| path.parent().map(Path::to_owned));
        let files = scratch::dir_in(&parent.unwrap_or_else(std::env::temp_dir))?;
        let storage = FolderStorage::open(files.path()).map_err(|error| error.to_string())?;
        let slots = u32::try_from(workers).map_err(|_| "--workers is too large")?;
        let dispatch = Dispatch::new(config(bases, slots), Arc::new(storage));
        let dispatch = dispatch.map_err(|error| error.to_string())?;
        let options =
            Options::default().with_workers(workers).with_completion_key(CompletionKey::new(&[7; 16]));
        let engine = Engine::builder(scratch::open(scratch.url()).await?)
            .options(options)
            .limits(dispatch.limits())
            .executor(KIND, dispatch.executor())
            .open()
            .await
            .map_err(|error| error.to_string())?;
        Ok(Self { engine, dispatch, _files: files, _scratch: scratch })
    }

    /// The submission of a generation.
    pub(super) fn submission(&self, prompt: &str) -> Result<Submission, String> {
        let new = NewGeneration::new("bench", MODEL, json!({ "prompt": prompt }));
        self.dispatch.submission(&new).map_err(|error| error.to_string())
    }

    /// How many slots are taken, at all endpoints.
    pub(super) async fn slots_in_use(&self) -> Result<u32, String> {
        let limits = self.engine.limits().await.map_err(|error| error.to_string())?;
        Ok(limits.iter().filter(|limit| limit.name.ends_with("/slots")).map(|limit| limit.in_flight).sum())
    }
}

fn config(bases: &[String], slots: u32) -> DispatchConfig {
    let mut config = DispatchConfig::default();
    let mut chain = Vec::new();
    for (number, base) in bases.iter().enumerate() {
        let name = format!("endpoint-{number}");
        let adapter = AdapterConfig::Generic(Box::new(plain_api(&name, base)));
        let mut provider = ProviderConfig::new(&name, adapter);
        provider.keys = vec![KeyConfig { name: "main".into(), key: Secret::new("bench"), account: None }];
        (provider.max_concurrent, provider.rpm) = (Some(slots), Some(RPM));
        config.providers.push(provider);
        chain.push(ChainLinkConfig::new(name, MODEL));
    }
    config.models.push(ModelConfig::new(MODEL, chain));
    config
}

/// The API of an endpoint.
fn plain_api(name: &str, base: &str) -> GenericConfig {
    GenericConfig {
        name: name.to_owned(),
        base_url: base.to_owned(),
        auth: AuthConfig::default(),
        submit: SubmitConfig {
            path: SUBMIT.to_owned(),
            input_field: None,
            model_field: Some("/model".to_owned()),
            webhook_field: None,
            webhook_query: None,
            attempt_header: None,
        },
        poll: PollConfig { path: "/jobs/{id}".to_owned() },
        cancel: None,
        fields: FieldConfig {
            id: "/id".to_owned(),
            status: "/status".to_owned(),
            files: vec!["/files/*".to_owned()],
            error: Some("/error/message".to_owned()),
            queue_position: None,
            percent: None,
            retry_after: None,
        },
        states: StateConfig { succeeded: vec!["done".to_owned()], ..StateConfig::default() },
        webhook: WebhookVerification::Token,
        throttle_scope: ThrottleScope::Key,
        max_concurrent: None,
        rpm: None,
    }
}
