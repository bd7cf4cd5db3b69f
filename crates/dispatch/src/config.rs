//! What dispatch is configured with: providers with their keys and limits, and models with the
//! chains of providers that serve them. Plain values: whoever reads a file fills them in, and
//! [`DispatchConfig::check`] names the place of what cannot work.

mod check;

use std::fmt;
use std::time::Duration;

use serde_json::Value;
use tidegate_core::alternatives::PickStrategy;
use tidegate_core::bounds::RESULT_FILE_LEN_MAX;
use tidegate_images::defaults::COOLDOWN_LADDER;
use tidegate_images::{
    Fal, Generic, GenericConfig, Google, Higgsfield, Provider, Replicate, fal, google, higgsfield, replicate,
};
use tidegate_upstream::Secret;

pub use check::{NAME_RULE, is_name};

/// How long an accepted job may take, by default.
const DEADLINE: Duration = Duration::from_secs(30 * 60);
/// How long one HTTP call may take, by default.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a generation may wait to be submitted, by default.
const MAX_WAIT: Duration = Duration::from_secs(3_600);

/// The configuration.
#[derive(Clone, Debug)]
pub struct DispatchConfig {
    /// The providers.
    pub providers: Vec<ProviderConfig>,
    /// The models.
    pub models: Vec<ModelConfig>,
    /// Where providers reach this service, such as `https://app.example`; without it they are
    /// polled.
    pub public_url: Option<String>,
    /// Whether remote workers submit, and have the keys: then a key may be empty here.
    pub has_remote_keys: bool,
    /// What one user may do.
    pub per_user: UserLimits,
    /// The largest file of a result, in bytes.
    pub result_max_bytes: usize,
}

impl Default for DispatchConfig {
    fn default() -> Self {
        Self {
            providers: Vec::new(),
            models: Vec::new(),
            public_url: None,
            has_remote_keys: false,
            per_user: UserLimits::default(),
            result_max_bytes: RESULT_FILE_LEN_MAX,
        }
    }
}

/// What one user may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserLimits {
    /// How many generations may be queued or processed at once.
    pub max_active: Option<u32>,
    /// How many may be created in a minute.
    pub per_minute: Option<u32>,
}

/// A provider.
#[derive(Clone, Debug)]
pub struct ProviderConfig {
    /// Its name, in chains and in URLs.
    pub name: String,
    /// The API that it speaks.
    pub adapter: AdapterConfig,
    /// Its keys, used in this order.
    pub keys: Vec<KeyConfig>,
    /// How many jobs run at once; `None` for the documented figure, if there is one.
    pub max_concurrent: Option<u32>,
    /// How many submits a minute allows; `None` for the documented figure, if there is one.
    pub rpm: Option<u32>,
    /// How long it cools after one, two, three, and four or more errors in a row.
    pub cooldown: [Duration; 4],
    /// How long after a submit the first poll is due; `None` for the adapter's figure.
    pub poll_after: Option<Duration>,
    /// The time between polls; `None` for the adapter's figure.
    pub poll_every: Option<Duration>,
    /// How long an accepted job may take.
    pub deadline: Duration,
    /// How long one HTTP call may take.
    pub timeout: Duration,
    /// The secrets of Standard Webhooks, the current one first. Without any, keys are fetched from
    /// the provider where it publishes them.
    pub webhook_secrets: Vec<Secret>,
}

impl ProviderConfig {
    /// Creates the configuration of a provider without keys, with every default.
    #[must_use]
    pub fn new(name: impl Into<String>, adapter: AdapterConfig) -> Self {
        Self {
            name: name.into(),
            adapter,
            keys: Vec::new(),
            max_concurrent: None,
            rpm: None,
            cooldown: COOLDOWN_LADDER,
            poll_after: None,
            poll_every: None,
            deadline: DEADLINE,
            timeout: TIMEOUT,
            webhook_secrets: Vec::new(),
        }
    }
}

/// The API that a provider speaks. A base URL is the documented one unless it is given.
#[derive(Clone, Debug)]
pub enum AdapterConfig {
    /// Replicate.
    Replicate {
        /// The base URL.
        base_url: Option<String>,
    },
    /// Google's Gemini API.
    Google {
        /// The base URL.
        base_url: Option<String>,
        /// The address of the keys that verify webhooks of single requests.
        jwks_url: Option<String>,
    },
    /// fal.
    Fal {
        /// The base URL.
        base_url: Option<String>,
        /// The address of the keys that verify webhooks.
        jwks_url: Option<String>,
    },
    /// Higgsfield.
    Higgsfield {
        /// The base URL.
        base_url: Option<String>,
    },
    /// Any provider with a plain submit and poll API.
    Generic(Box<GenericConfig>),
}

impl AdapterConfig {
    /// The names of all adapters.
    pub const NAMES: [&'static str; 5] = ["replicate", "google", "fal", "higgsfield", "generic"];

    /// The name of the adapter.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Replicate { .. } => Self::NAMES[0],
            Self::Google { .. } => Self::NAMES[1],
            Self::Fal { .. } => Self::NAMES[2],
            Self::Higgsfield { .. } => Self::NAMES[3],
            Self::Generic(_) => Self::NAMES[4],
        }
    }

    /// The base URL in use.
    #[must_use]
    pub fn base_url(&self) -> &str {
        match self {
            Self::Replicate { base_url } => base_url.as_deref().unwrap_or(replicate::BASE_URL),
            Self::Google { base_url, .. } => base_url.as_deref().unwrap_or(google::BASE_URL),
            Self::Fal { base_url, .. } => base_url.as_deref().unwrap_or(fal::BASE_URL),
            Self::Higgsfield { base_url } => base_url.as_deref().unwrap_or(higgsfield::BASE_URL),
            Self::Generic(config) => &config.base_url,
        }
    }

    /// Creates the adapter.
    pub(crate) fn build(&self) -> Result<Box<dyn Provider>, tidegate_images::generic::GenericConfigError> {
        let base = self.base_url().to_owned();
        Ok(match self {
            Self::Replicate { .. } => Box::new(Replicate::new(base)),
            Self::Google { jwks_url, .. } => {
                Box::new(Google::new(base, jwks_url.as_deref().unwrap_or(google::JWKS_URL)))
            }
            Self::Fal { jwks_url, .. } => {
                Box::new(Fal::new(base, jwks_url.as_deref().unwrap_or(fal::JWKS_URL)))
            }
            Self::Higgsfield { .. } => Box::new(Higgsfield::new(base)),
            Self::Generic(config) => Box::new(Generic::new((**config).clone())?),
        })
    }
}

/// A key of a provider.
#[derive(Clone, Debug)]
pub struct KeyConfig {
    /// Its name, which is shown; the key itself never is.
    pub name: String,
    /// The key; empty where only remote workers have it.
    pub key: Secret,
    /// The account that owns it: keys of one account share a quota.
    pub account: Option<String>,
}

/// A model, and who serves it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Its name.
    pub name: String,
    /// The JSON Schema of its input; without one any object is an input.
    pub input_schema: Option<Value>,
    /// Who serves it, in the order of preference.
    pub chain: Vec<ChainLinkConfig>,
    /// The order in which they are tried.
    pub strategy: PickStrategy,
    /// Whether users take turns: then a user's generations run one after the other.
    pub fair: bool,
    /// How long a generation may wait to be submitted.
    pub max_wait: Option<Duration>,
    /// What follows a submit of unknown outcome.
    pub on_unknown: UnknownPolicy,
}

impl ModelConfig {
    /// Creates the configuration of a model with every default.
    #[must_use]
    pub fn new(name: impl Into<String>, chain: Vec<ChainLinkConfig>) -> Self {
        Self {
            name: name.into(),
            input_schema: None,
            chain,
            strategy: PickStrategy::Chain,
            fair: false,
            max_wait: Some(MAX_WAIT),
            on_unknown: UnknownPolicy::Wait,
        }
    }
}

/// One provider of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainLinkConfig {
    /// The name of the provider.
    pub provider: String,
    /// The provider's name of the model.
    pub model: String,
    /// Its share of the generations, where the strategy goes by weight.
    pub weight: u32,
    /// What one generation costs, in millionths of any unit that all links share.
    pub cost: u64,
}

impl ChainLinkConfig {
    /// Creates a link with a weight of 1 and without a cost.
    #[must_use]
    pub fn new(provider: impl Into<String>, model: impl Into<String>) -> Self {
        Self { provider: provider.into(), model: model.into(), weight: 1, cost: 0 }
    }
}

/// What follows a submit that may or may not have created a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownPolicy {
    /// It keeps its slot until its webhook, a look-up or a poll resolves it, and fails when none
    /// does by the deadline.
    #[default]
    Wait,
    /// The next provider is used: the generation may be billed twice.
    Failover,
    /// The generation fails.
    Fail,
}

impl UnknownPolicy {
    const ALL: [Self; 3] = [Self::Wait, Self::Failover, Self::Fail];

    /// The stable name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Failover => "failover",
            Self::Fail => "fail",
        }
    }

    /// Parses a stable name.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == word)
    }
}

/// The strategies and their names.
const STRATEGIES: [(PickStrategy, &str); 5] = [
    (PickStrategy::Chain, "chain"),
    (PickStrategy::Weighted, "weights"),
    (PickStrategy::LeastBusy, "least_busy"),
    (PickStrategy::Fastest, "fastest"),
    (PickStrategy::Cheapest, "cheapest"),
];

/// Parses the name of a strategy: `chain`, `weights`, `least_busy`, `fastest` or `cheapest`.
#[must_use]
pub fn parse_strategy(word: &str) -> Option<PickStrategy> {
    STRATEGIES.iter().find(|(_, name)| *name == word).map(|(strategy, _)| *strategy)
}

/// The name of a strategy.
#[must_use]
pub fn strategy_name(strategy: PickStrategy) -> &'static str {
    STRATEGIES.iter().find(|(known, _)| *known == strategy).map_or("", |(_, name)| name)
}

/// A part of the configuration that cannot work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Where it is, such as `providers.replicate.keys[1].name`.
    pub place: String,
    /// What is wrong with it, as a sentence.
    pub problem: String,
}

impl ConfigError {
    pub(crate) fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for ConfigError {}
