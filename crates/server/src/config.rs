//! The configuration: one file over documented defaults, overridden by environment variables, all
//! of it validated before anything starts. Problems are reported with line and column; no secret is
//! ever in the file.

mod auth;
mod bus;
mod cluster;
mod collections;
mod dialect;
#[cfg(test)]
mod documented;
mod failure;
mod generations;
mod hydration;
mod idempotency;
mod key_policy;
pub(crate) mod kind;
mod pacing;
mod policy_route;
mod problem;
mod proxy;
mod read;
mod seal_keys;
mod section;
mod server;
mod source;
mod telemetry;
#[cfg(test)]
mod tests;
mod token;
mod token_file;
mod units;
mod unknown_variables;
mod upstream;
mod value;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_core::operation::FailureRule;
use tidegate_upstream::http::UpstreamConfig;
use tidegate_upstream::{RemoteKindConfig, Secret};
use toml::de::DeTable;

pub use auth::{AuthSettings, find_tokens_file};
pub use dialect::{DiscordConfig, ShopifyConfig};
pub use generations::{GenerationsConfig, NotifyConfig, ResultStorageConfig};
pub use hydration::HydrationConfig;
pub use idempotency::IdempotencyConfig;
pub use pacing::PacingConfig;
pub use policy_route::PolicyRoute;
pub use problem::{ConfigProblem, ConfigProblems, SourceLocation};
pub use proxy::{PROXY_DEFAULTS, ProxyConfig, ProxyOverrides, ScopeChoice, parse_address};
pub use seal_keys::SealKeys;
pub use section::Environment;
pub use server::TlsConfig;
pub(crate) use source::ID as ENTITY_ID;
pub use source::{GraphqlQuery, SourceConfig};
pub use telemetry::TelemetryConfig;
pub(crate) use token::TENANT_SCOPE;
pub use token::{ApiToken, TokenScope};
pub use token_file::{TokenFile, TokenRecord};
pub use units::{format_duration, parse_duration};

use problem::SourceText;
use section::Section;
use value::LocatedValue;

/// The defaults, with a comment on every key.
pub const DEFAULTS: &str = include_str!("config/default.toml");
/// The largest file that is read, in bytes.
const FILE_LEN_MAX: usize = 1024 * 1024;

/// The configuration of the server.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address of the API and the status page.
    pub listen: SocketAddr,
    /// The files of its certificate; without them it serves plain HTTP.
    pub tls: Option<TlsConfig>,
    /// This node's name.
    pub node: String,
    /// Calls under way at once.
    pub workers: usize,
    /// How long a shutdown waits for calls in flight.
    pub drain: Duration,
    /// The maximum number of concurrent connections.
    pub connections_max: usize,
    /// How long a client may take to send a request.
    pub read_timeout: Duration,
    /// The URL at which services report that a job has ended.
    pub public_url: Option<String>,
    /// Where operations are kept.
    pub store_url: String,
    /// The archive that ended operations are copied to, for a store on Redis.
    pub archive_url: Option<String>,
    /// How long an ended operation is kept.
    pub retention: Duration,
    /// How long a dedupe key is remembered.
    pub dedupe_window: Duration,
    /// What follows a failure if the operation does not say; the first matching rule applies.
    pub on_failure: Vec<FailureRule>,
    /// The upstreams.
    pub upstreams: Vec<UpstreamConfig>,
    /// Upstreams whose operations are spread over all partitions, by group.
    pub spread: BTreeSet<String>,
    /// The additional settings of upstreams with the dialect `shopify`, by name.
    pub shopify: BTreeMap<String, ShopifyConfig>,
    /// The additional settings of upstreams with the dialect `discord`, by name.
    pub discord: BTreeMap<String, DiscordConfig>,
    /// The kinds that remote workers execute.
    pub remote_kinds: Vec<RemoteKindConfig>,
    /// The tokens of callers; if empty, only this machine may call.
    pub tokens: Vec<ApiToken>,
    /// The settings of authentication.
    pub auth: AuthSettings,
    /// The settings of a node in a cluster.
    pub cluster: ClusterConfig,
    /// The idempotency keys of the server's own POST routes.
    pub idempotency: IdempotencyConfig,
    /// The settings of the paced proxy.
    pub pacing: PacingConfig,
    /// The settings of hydration.
    pub hydration: HydrationConfig,
    /// The bus on which questions about entities are asked.
    pub bus_url: String,
    /// The upstreams that answer for a type of entities.
    pub sources: Vec<SourceConfig>,
    /// Generations: their storage, providers and models.
    pub generations: GenerationsConfig,
    /// The traces of operations.
    pub telemetry: TelemetryConfig,
    /// The file that it was read from, if there is one.
    pub file: Option<ConfigFile>,
}

/// A file that a configuration is read from, again if need be.
#[derive(Clone, Debug)]
pub struct ConfigFile {
    /// Where it is.
    pub path: PathBuf,
    /// What overrides it.
    pub overrides: Overrides,
}

/// The settings of a node in a cluster.
#[derive(Clone, Debug)]
pub struct ClusterConfig {
    /// The address at which other nodes reach this one; by default the one it listens on.
    pub advertise: Option<String>,
    /// The number of partitions. The store keeps the number it was first used with.
    pub partitions: u16,
    /// The shared secret of the nodes; without it only nodes on this machine may be in the cluster.
    pub token: Option<Secret>,
}

/// Command-line options, which override everything else.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// The address to listen on.
    pub listen: Option<SocketAddr>,
    /// Where operations are kept.
    pub store_url: Option<String>,
    /// Calls under way at once.
    pub workers: Option<usize>,
}

/// The state of parsing: the environment, and all problems found.
struct ParseContext<'a> {
    env: Environment<'a>,
    problems: Vec<ConfigProblem>,
}

impl ParseContext<'_> {
    /// Reads the secret in an environment variable.
    fn secret(&mut self, variable: &LocatedValue<String>) -> Option<String> {
        let secret = (self.env)(&variable.value).filter(|text| !text.is_empty());
        if secret.is_none() {
            self.problems.push(variable.problem(format!("The variable {} is not set.", variable.value)));
        }
        secret
    }
}

impl Config {
    /// The number of limits besides the gates: those in the configuration and those that a dialect
    /// creates.
    #[must_use]
    pub fn limit_count(&self) -> usize {
        crate::dialects::from_config(self)
            .iter()
            .map(|(_, dialect)| dialect.limits().len().saturating_sub(1))
            .sum()
    }

    /// Loads the configuration of this process: from the file, if there is one, and the
    /// environment.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn load(file: Option<&Path>, over: &Overrides) -> Result<Self, ConfigProblems> {
        let env = |name: &str| std::env::var(name).ok();
        let set: Vec<_> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
        match file {
            Some(path) => {
                let config = Self::parse(&path.display().to_string(), &read_file(path)?, &env, over, &set)?;
                let file = ConfigFile { path: path.to_owned(), overrides: over.clone() };
                Ok(Self { file: Some(file), ..config })
            }
            None => Self::parse("defaults", "", &env, over, &set),
        }
    }

    /// The default configuration.
    ///
    /// # Errors
    /// When an environment variable is invalid.
    pub fn defaults(env: Environment<'_>, over: &Overrides) -> Result<Self, ConfigProblems> {
        Self::parse("defaults", "", env, over, &[])
    }

    /// Parses a text; `name` is its name in messages. `set` are the variables that are set, which
    /// are checked for misspelled names.
    ///
    /// # Errors
    /// Everything that is wrong.
    pub fn parse(
        name: &str,
        text: &str,
        env: Environment<'_>,
        over: &Overrides,
        set: &[String],
    ) -> Result<Self, ConfigProblems> {
        parse(SourceText { name, text }, DEFAULTS, env, set, |root, reading| read::read(root, reading, over))
    }

    /// Returns why it is not safe to serve, if it is not: without tokens only this machine may
    /// call.
    #[must_use]
    pub fn exposure_problem(&self) -> Option<String> {
        (!self.requires_tokens() && !self.listen.ip().is_loopback()).then(|| exposure_message(self.listen))
    }

    /// Whether callers need a token; otherwise only this machine may call.
    #[must_use]
    pub const fn requires_tokens(&self) -> bool {
        !self.tokens.is_empty() || self.auth.tokens_file.is_some()
    }
}

/// Parses a text over its defaults; `set` are the variables that are set, which are checked for
/// misspelled names.
fn parse<T>(
    source: SourceText<'_>,
    defaults: &str,
    env: Environment<'_>,
    set: &[String],
    read: impl FnOnce(&mut Section<'_>, &mut ParseContext<'_>) -> Option<T>,
) -> Result<T, ConfigProblems> {
    let defaults = SourceText { name: "defaults", text: defaults };
    let default_table = parse_toml(defaults)?;
    let table = parse_toml(source)?;
    // Every variable that is looked up is known, so no separate list of variables is needed.
    let asked = RefCell::new(Vec::new());
    let asking = |variable: &str| {
        asked.borrow_mut().push(variable.to_owned());
        env(variable)
    };
    let mut reading = ParseContext { env: &asking, problems: Vec::new() };
    let mut root = Section::of_root((table.get_ref(), source), (default_table.get_ref(), defaults), &asking);
    let config = read(&mut root, &mut reading);
    root.finish(&mut reading.problems);
    let mut problems = reading.problems;
    problems.extend(unknown_variables::problems(set, &asked.borrow(), env));
    problems.sort_by(|a, b| a.at.cmp(&b.at));
    match config {
        Some(config) if problems.is_empty() => Ok(config),
        _ => Err(ConfigProblems(problems)),
    }
}

/// Reads a file.
fn read_file(path: &Path) -> Result<String, ConfigProblems> {
    let failed = |message: String| {
        let at = SourceLocation::outside_file(path.display().to_string());
        ConfigProblems(vec![ConfigProblem { at, key_path: String::new(), message }])
    };
    let bytes = std::fs::read(path).map_err(|error| failed(format!("It cannot be read: {error}.")))?;
    if bytes.len() > FILE_LEN_MAX {
        return Err(failed(format!("It is {} bytes long; the most is {FILE_LEN_MAX}.", bytes.len())));
    }
    String::from_utf8(bytes).map_err(|_| failed("It is not UTF-8.".into()))
}

fn exposure_message(listen: SocketAddr) -> String {
    format!(
        "{listen} can be reached from other machines, and there is no [[token]]. Add one, or listen on 127.0.0.1."
    )
}

fn parse_toml(source: SourceText<'_>) -> Result<toml::Spanned<DeTable<'_>>, ConfigProblems> {
    DeTable::parse(source.text).map_err(|error| {
        let at = source.location(error.span().map_or(0, |span| span.start));
        let message = format!("This is not TOML: {}.", error.message());
        ConfigProblems(vec![ConfigProblem { at, key_path: String::new(), message }])
    })
}
