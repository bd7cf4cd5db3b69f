//! One model, many providers, no double bill. A generation is accepted once, waits for the first
//! provider of its model's chain that can take it, is submitted there exactly once, and is
//! completed when its files are in our own storage. Providers that fail cool down; a submit whose
//! outcome is unknown is resolved, not repeated; a ledger shows every attempt.
//!
//! ```
//! use std::sync::Arc;
//!
//! use serde_json::json;
//! use tidegate::{CompletionKey, Engine, Options};
//! use tidegate_dispatch::config::{AdapterConfig, ChainLinkConfig, KeyConfig, ModelConfig};
//! use tidegate_dispatch::storage::FolderStorage;
//! use tidegate_dispatch::{Dispatch, DispatchConfig, KIND, NewGeneration, ProviderConfig};
//! use tidegate_upstream::Secret;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let adapter = AdapterConfig::Replicate { base_url: None };
//! # let adapter = AdapterConfig::Replicate { base_url: Some("http://127.0.0.1:9".into()) };
//! let mut replicate = ProviderConfig::new("replicate", adapter);
//! let key = Secret::new("r8_key");
//! replicate.keys = vec![KeyConfig { name: "main".into(), key, account: None }];
//! let chain = vec![ChainLinkConfig::new("replicate", "black-forest-labs/flux-schnell")];
//! let config = DispatchConfig {
//!     providers: vec![replicate],
//!     models: vec![ModelConfig::new("flux", chain)],
//!     ..DispatchConfig::default()
//! };
//! let dispatch = Dispatch::new(config, Arc::new(FolderStorage::open(folder.path())?))?;
//!
//! let secret = CompletionKey::new(b"a secret of the store");
//! let engine = Engine::builder(tidegate::store::open("memory:").await?)
//!     .options(Options::default().with_completion_key(secret))
//!     .limits(dispatch.limits())
//!     .executor(KIND, dispatch.executor())
//!     .open()
//!     .await?;
//! let generations = dispatch.generations(&engine);
//! let new = NewGeneration::new("user-7", "flux", json!({ "prompt": "a lighthouse at dusk" }));
//! let created = generations.create(&new).await?;
//! println!("{} is {}", created.generation.id, created.generation.status.as_str());
//! # engine.drain().await;
//! # Ok(())
//! # }
//! ```

pub mod config;
mod dispatch;
mod error;
mod executor;
mod generation;
mod generations;
mod http_client;
mod input_schema;
mod model_set;
pub mod notify;
mod payload;
mod provider_set;
mod public_address;
mod results;
pub mod storage;
mod webhook;

pub use config::{
    AdapterConfig, ChainLinkConfig, ConfigError, DispatchConfig, KeyConfig, ModelConfig, ProviderConfig,
    UnknownPolicy, UserLimits, parse_strategy, strategy_name,
};
pub use dispatch::{Dispatch, KIND};
pub use error::{DispatchError, DispatchErrorKind};
pub use generation::{Generation, GenerationStatus};
pub use generations::{
    AttemptOutcome, CreatedGeneration, FollowedChains, GenerationChange, GenerationChanges, GenerationPage,
    GenerationQuery, GenerationReason, Generations, LedgerEntry, LedgerPage, NewGeneration, ProviderReason,
    ProviderState,
};
pub use input_schema::{InputProblem, schema_problems};
pub use model_set::ModelDiff;
pub use provider_set::{ProviderLimits, UNLIMITED};
pub use results::ResultFile;
pub use storage::ResultStorage;
pub use tidegate_core::alternatives::PickStrategy;
pub use webhook::{WebhookReceipt, WebhookRefusal};
