//! The configured providers, ready to be called: adapters, keys, the names of their limits, and
//! what the model of each chain charges. An alternative is one key of one provider.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::LimitName;
use tidegate_core::alternatives::{Alternative, Alternatives, UnknownSubmit};
use tidegate_core::breaker::CooldownLadder;
use tidegate_core::fact::LimitShape;
use tidegate_core::operation::{Charge, MICRO};
use tidegate_images::{Figure, Provider, ProviderDefaults};

use crate::config::{
    ChainLinkConfig, ConfigError, DispatchConfig, KeyConfig, ModelConfig, ProviderConfig, UnknownPolicy,
};
use crate::webhook::WebhookKeyCache;

/// The figure of a limit that is neither configured nor documented: it never closes, and can be set
/// at run time.
pub const UNLIMITED: u32 = 1_000_000;
/// The period that `rpm` counts in.
const MINUTE: Duration = Duration::from_secs(60);

/// The names of a provider's limits, which the engine shows and changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderLimits {
    /// Its breaker.
    pub breaker: Arc<str>,
    /// Its slots.
    pub slots: Arc<str>,
    /// Its submits a minute.
    pub rpm: Arc<str>,
    /// The breaker of each key, by the name of the key.
    pub keys: Vec<(String, Arc<str>)>,
    /// The breaker of each account, by its name.
    pub accounts: Vec<(String, Arc<str>)>,
}

impl ProviderLimits {
    fn new(config: &ProviderConfig) -> Self {
        let upstream = format!("provider:{}", config.name);
        let limit = |name: &str| Arc::from(LimitName::new(&upstream, name));
        let accounts: BTreeSet<&String> = config.keys.iter().filter_map(|key| key.account.as_ref()).collect();
        let of_key = |key: &KeyConfig| (key.name.clone(), limit(&format!("key:{}", key.name)));
        let of_account = |account: &String| (account.clone(), limit(&format!("account:{account}")));
        Self {
            breaker: limit("health"),
            slots: limit("slots"),
            rpm: limit("rpm"),
            keys: config.keys.iter().map(of_key).collect(),
            accounts: accounts.into_iter().map(of_account).collect(),
        }
    }

    /// The breaker of a key.
    pub(crate) fn of_key(&self, key: &KeyConfig) -> Arc<str> {
        named(&self.keys, &key.name).unwrap_or_else(|| Arc::clone(&self.breaker))
    }

    /// The breaker of the account that owns a key; that of the key when its account is not known.
    pub(crate) fn of_account(&self, key: &KeyConfig) -> Arc<str> {
        let account = key.account.as_ref().and_then(|account| named(&self.accounts, account));
        account.unwrap_or_else(|| self.of_key(key))
    }
}

fn named(limits: &[(String, Arc<str>)], name: &str) -> Option<Arc<str>> {
    limits.iter().find(|(known, _)| known == name).map(|(_, limit)| Arc::clone(limit))
}

/// A provider that is ready to be called.
pub(crate) struct ReadyProvider {
    pub config: ProviderConfig,
    pub adapter: Box<dyn Provider>,
    pub limits: ProviderLimits,
    pub webhook_keys: WebhookKeyCache,
    /// The figures in force where none is configured.
    documented: ProviderDefaults,
    /// Stands for the link of a chain that has lost this provider since.
    former_link: ChainLinkConfig,
}

impl ReadyProvider {
    fn new(config: &ProviderConfig, models: &[ModelConfig]) -> Result<Self, ConfigError> {
        let place = |field: &str| format!("providers.{}.{field}", config.name);
        let adapter =
            config.adapter.build().map_err(|error| ConfigError::new(place(error.field), error.problem))?;
        let links = models.iter().flat_map(|model| &model.chain);
        let links = links.filter(|link| link.provider == config.name);
        let documented = links.map(|link| adapter.defaults(&link.model)).reduce(stricter);
        // A chain may name it later.
        let documented = documented.unwrap_or_else(|| adapter.defaults(""));
        let webhook_keys = WebhookKeyCache::new(config)?;
        let limits = ProviderLimits::new(config);
        // A job knows its model itself.
        let former_link = ChainLinkConfig::new(&config.name, "");
        Ok(Self { config: config.clone(), adapter, limits, webhook_keys, documented, former_link })
    }

    /// How long after a submit the first poll is due.
    pub(crate) fn poll_after(&self) -> Duration {
        self.config.poll_after.unwrap_or(self.documented.poll_first)
    }

    /// The time between polls.
    pub(crate) fn poll_every(&self) -> Duration {
        self.config.poll_every.unwrap_or(self.documented.poll_max)
    }

    fn shapes(&self) -> Vec<(Arc<str>, LimitShape)> {
        let ladder = CooldownLadder(self.config.cooldown);
        let figure = |configured: Option<u32>, documented: fn(&ProviderDefaults) -> Figure| {
            configured.or_else(|| documented(&self.documented).value).unwrap_or(UNLIMITED)
        };
        let at_once = figure(self.config.max_concurrent, |defaults| defaults.max_concurrent);
        let rpm = figure(self.config.rpm, |defaults| defaults.rpm);
        let window = LimitShape::Window { limit: u64::from(rpm) * MICRO, period: MINUTE };
        let limits = &self.limits;
        let breakers = limits.keys.iter().chain(&limits.accounts).map(|(_, limit)| limit);
        let breakers = std::iter::once(&limits.breaker).chain(breakers);
        let mut shapes: Vec<(Arc<str>, LimitShape)> =
            breakers.map(|limit| (Arc::clone(limit), LimitShape::Breaker { ladder })).collect();
        shapes.push((Arc::clone(&limits.slots), LimitShape::Cap { at_once }));
        shapes.push((Arc::clone(&limits.rpm), window));
        shapes
    }

    /// What a submit with this key charges.
    fn charges(&self, key: &KeyConfig) -> Vec<Charge> {
        let limits = &self.limits;
        let mut names = vec![&limits.breaker, &limits.slots, &limits.rpm];
        let of_key = limits.of_key(key);
        let of_account = key.account.as_ref().map(|_| limits.of_account(key));
        names.push(&of_key);
        names.extend(&of_account);
        names.into_iter().map(|limit| Charge::tokens(Arc::clone(limit), 1)).collect()
    }
}

/// The lower figures of two models of one provider, because its limits are one.
fn stricter(one: ProviderDefaults, other: ProviderDefaults) -> ProviderDefaults {
    let lower = |one: Figure, other: Figure| match (one.value, other.value) {
        (Some(known), Some(figure)) if figure < known => other,
        (None, Some(_)) => other,
        _ => one,
    };
    ProviderDefaults {
        max_concurrent: lower(one.max_concurrent, other.max_concurrent),
        rpm: lower(one.rpm, other.rpm),
        ..one
    }
}

/// The configured providers.
pub(crate) struct ProviderSet(Vec<ReadyProvider>);

/// The provider, key and link of a chain that an alternative names.
#[derive(Clone, Copy)]
pub(crate) struct PickedProvider<'a> {
    pub provider: &'a ReadyProvider,
    pub key: &'a KeyConfig,
    pub link: &'a ChainLinkConfig,
}

impl ProviderSet {
    pub(crate) fn new(config: &DispatchConfig) -> Result<Self, ConfigError> {
        let ready = config.providers.iter().map(|provider| ReadyProvider::new(provider, &config.models));
        ready.collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&ReadyProvider> {
        self.0.iter().find(|provider| provider.config.name == name)
    }

    pub(crate) fn shapes(&self) -> Vec<(Arc<str>, LimitShape)> {
        self.0.iter().flat_map(ReadyProvider::shapes).collect()
    }

    /// What an alternative of a model names; `None` when it is not configured any more.
    pub(crate) fn picked<'a>(
        &'a self,
        model: &'a ModelConfig,
        alternative: &str,
    ) -> Option<PickedProvider<'a>> {
        let (provider, key) = self.named(alternative)?;
        let link = model.chain.iter().find(|link| link.provider == provider.config.name)?;
        Some(PickedProvider { provider, key, link })
    }

    /// What the alternative of a job names that was submitted: its chain may have lost the provider
    /// since, or its model be gone, and the job is paid for.
    pub(crate) fn picked_by_job<'a>(
        &'a self,
        model: Option<&'a ModelConfig>,
        alternative: &str,
    ) -> Option<PickedProvider<'a>> {
        model.and_then(|model| self.picked(model, alternative)).or_else(|| {
            let (provider, key) = self.named(alternative)?;
            Some(PickedProvider { provider, key, link: &provider.former_link })
        })
    }

    fn named(&self, alternative: &str) -> Option<(&ReadyProvider, &KeyConfig)> {
        let (provider, key) = split_alternative(alternative)?;
        let provider = self.get(provider)?;
        Some((provider, provider.config.keys.iter().find(|known| known.name == key)?))
    }

    /// The alternatives of a model: each key of each provider of its chain.
    pub(crate) fn alternatives(&self, model: &ModelConfig) -> Alternatives {
        let mut list = Vec::new();
        let mut deadline = Duration::ZERO;
        for link in &model.chain {
            let Some(provider) = self.get(&link.provider) else { continue };
            deadline = deadline.max(provider.config.deadline);
            for key in &provider.config.keys {
                let name = format!("{}/{}", provider.config.name, key.name);
                let charges = provider.charges(key);
                let (weight, price) = (link.weight, link.cost);
                list.push(Alternative { name: name.into(), charges, weight, price });
            }
        }
        let on_unknown = match model.on_unknown {
            UnknownPolicy::Wait => UnknownSubmit::Wait { timeout: deadline },
            UnknownPolicy::Failover => UnknownSubmit::Failover,
            UnknownPolicy::Fail => UnknownSubmit::Fail,
        };
        Alternatives { list, strategy: model.strategy, on_unknown }
    }
}

/// The provider and the key that an alternative names.
pub(crate) fn split_alternative(alternative: &str) -> Option<(&str, &str)> {
    alternative.split_once('/')
}
