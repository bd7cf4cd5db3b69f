//! Opens a deployer with an engine of its own, for programs that have no other use for one.

use std::sync::Arc;

use tidegate::{Engine, ErrorCode, Options};
use tidegate_store::Store;
use tidegate_upstream::http::{Dialect, TokenHeader, UpstreamConfig};
use tidegate_upstream::{HttpUpstreams, Secret};

use super::error::Result;
use super::{Deployer, StepExecutor};
use crate::dialect::{BASE_URL, DiscordDialect, DiscordSettings};

/// The name of Discord's upstream where none is given.
pub(super) const UPSTREAM: &str = "discord";

/// The settings of a deployer with an engine of its own; see [`Deployer::builder`].
#[must_use = "nothing happens before `open`"]
pub struct DeployerBuilder {
    store: Arc<dyn Store>,
    token: Secret,
    base_url: String,
    settings: DiscordSettings,
    options: Options,
}

impl Deployer {
    /// Starts building a deployer for a bot, with an engine of its own on this store.
    pub fn builder(store: Arc<dyn Store>, token: impl Into<String>) -> DeployerBuilder {
        DeployerBuilder {
            store,
            token: Secret::new(token),
            base_url: BASE_URL.to_owned(),
            settings: DiscordSettings::default(),
            options: Options::default(),
        }
    }
}

impl DeployerBuilder {
    /// Sets the base URL of the API, if it is not Discord's own.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// Sets what Discord allows the bot.
    pub const fn settings(mut self, settings: DiscordSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets the options of the engine.
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Opens the engine and starts working, in tasks of the current Tokio runtime.
    ///
    /// # Errors
    /// When a setting is invalid, or another process owns the partition of the store.
    pub async fn open(self) -> Result<Deployer> {
        let dialect = DiscordDialect::new(UPSTREAM, &self.base_url, self.settings);
        let config = UpstreamConfig::new(UPSTREAM, self.base_url)
            .with_token(self.token)
            .with_token_header(TokenHeader::parse("authorization: Bot"));
        let http = HttpUpstreams::with_dialects(vec![(config, Arc::new(dialect) as Arc<dyn Dialect>)])
            .map_err(|refusal| tidegate::Error::new(ErrorCode::BadConfig, refusal.to_string()))?;
        let limits = http.limits();
        let engine = Engine::builder(Arc::clone(&self.store))
            .options(self.options)
            .executors(StepExecutor::executors(Arc::new(http)).collect())
            .limits(limits)
            .open()
            .await?;
        Ok(Deployer::new(engine, self.store))
    }
}
