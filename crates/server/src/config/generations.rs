//! The settings of generations: `[generations]`, `[provider.NAME]` and `[model.NAME]`.

mod generic;
mod model;
mod provider;
mod storage;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_dispatch::config::ConfigError;
use tidegate_dispatch::notify::check_target;
use tidegate_dispatch::{DispatchConfig, UserLimits};
use tidegate_images::webhook::standard::StandardSecret;
use tidegate_upstream::Secret;

pub use storage::ResultStorageConfig;

use super::ParseContext;
use super::problem::ConfigProblem;
use super::section::Section;
use super::value::LocatedValue;

/// The highest limit per user that can be configured.
const PER_USER_MAX: u64 = 1_000_000;

/// Places of the configuration of dispatch that have another name in the file.
const KEYS: [(&str, &str); 3] = [
    ("result_max_bytes", "result_max"),
    ("per_user.max_active", "per_user_active"),
    ("per_user.per_minute", "per_user_rpm"),
];

/// The settings of generations.
#[derive(Clone, Debug)]
pub struct GenerationsConfig {
    /// Where results are kept.
    pub storage: ResultStorageConfig,
    /// Where the end of each generation is reported.
    pub notify: Option<NotifyConfig>,
    /// Providers, models and limits. Without a model there are no generations.
    pub dispatch: DispatchConfig,
}

/// Where ends of generations are reported, and how reports are signed.
#[derive(Clone, Debug)]
pub struct NotifyConfig {
    /// The URL of reports whose generation names none.
    pub url: Option<String>,
    /// The secret that signs them.
    pub secret: StandardSecret,
    /// Whether receivers may be in a private network.
    pub allows_private: bool,
}

/// Reads the sections. With `is_remote`, remote workers submit generations, and the keys of
/// providers may be left out.
pub(super) fn read(
    root: &mut Section<'_>,
    public_url: Option<&str>,
    is_remote: bool,
    reading: &mut ParseContext<'_>,
) -> Option<GenerationsConfig> {
    let problems = &mut reading.problems;
    let mut section = root.section("generations", problems);
    let active = section.integer("per_user_active", 0..=PER_USER_MAX, problems);
    let per_minute = section.integer("per_user_rpm", 0..=PER_USER_MAX, problems);
    let result_max = section.size("result_max", problems);
    let url = section.text("notify_url", problems);
    let variable = section.text("notify_secret_env", problems);
    let allows_private = section.flag("notify_private", problems).unwrap_or(false);
    let storage = storage::read(&mut section, reading);
    check_receiver(url.as_ref(), allows_private, &mut reading.problems);
    let notify = read_notify(&section, url, variable, reading).map(|(url, secret)| NotifyConfig {
        url,
        secret,
        allows_private,
    });
    let mut places: BTreeMap<_, _> =
        KEYS.iter().map(|(place, key)| ((*place).to_owned(), section.problem_at(key, ""))).collect();
    places.insert(String::new(), section.problem(""));
    section.finish(&mut reading.problems);
    let most = |figure: u64| u32::try_from(figure).ok().filter(|figure| *figure > 0);
    let per_user = UserLimits { max_active: most(active?), per_minute: most(per_minute?) };
    let defaults = DispatchConfig {
        public_url: public_url.map(str::to_owned),
        has_remote_keys: is_remote,
        per_user,
        result_max_bytes: result_max?,
        ..DispatchConfig::default()
    };
    let dispatch = read_dispatch(root, defaults, places, reading);
    Some(GenerationsConfig { storage: storage?, notify, dispatch: dispatch? })
}

/// Reads providers and models, and checks them together. `places` has where the other settings are,
/// by the names that dispatch has for them; an empty name is for all others.
fn read_dispatch(
    root: &mut Section<'_>,
    defaults: DispatchConfig,
    mut places: BTreeMap<String, ConfigProblem>,
    reading: &mut ParseContext<'_>,
) -> Option<DispatchConfig> {
    let providers = root.named_sections("provider", &mut reading.problems);
    let models = root.named_sections("model", &mut reading.problems);
    let known: BTreeSet<String> = providers.iter().map(|(name, _)| name.clone()).collect();
    for (list, sections) in [("providers", &providers), ("models", &models)] {
        places.extend(sections.iter().map(|(name, section)| (format!("{list}.{name}"), section.problem(""))));
    }
    let may_omit_keys = defaults.has_remote_keys;
    let providers: Vec<_> = providers
        .into_iter()
        .map(|(name, section)| provider::read(name, section, may_omit_keys, reading))
        .collect();
    let models: Vec<_> = models
        .into_iter()
        .map(|(name, section)| model::read(name, section, &known, &mut places, reading))
        .collect();
    let is_complete = providers.iter().all(Option::is_some) && models.iter().all(Option::is_some);
    let providers: Vec<_> = providers.into_iter().flatten().collect();
    let has_provider = |name: &str| providers.iter().any(|provider| provider.name == name);
    // A chain whose provider has problems of its own is checked when those are solved.
    let mut models: Vec<_> = models.into_iter().flatten().collect();
    models.retain(|model| model.chain.iter().all(|link| has_provider(&link.provider)));
    let config = DispatchConfig { providers, models, ..defaults };
    let wrong = config.problems();
    reading.problems.extend(wrong.iter().filter_map(|error| locate(error, &places)));
    (is_complete && wrong.is_empty()).then_some(config)
}

/// Finds the place of a problem in the file: the longest known part of its own place.
fn locate(error: &ConfigError, places: &BTreeMap<String, ConfigProblem>) -> Option<ConfigProblem> {
    let (place, problem) = places.iter().rev().find(|(place, _)| error.place.starts_with(place.as_str()))?;
    let (key, sentence) =
        (error.place[place.len()..].trim_start_matches('.'), error.problem.trim_end_matches('.'));
    let message = if key.is_empty() { format!("{sentence}.") } else { format!("{key}: {sentence}.") };
    Some(ConfigProblem { message, ..problem.clone() })
}

/// Refuses a receiver that no report can be sent to, by the rule of requests that name one.
fn check_receiver(
    url: Option<&LocatedValue<String>>,
    allows_private: bool,
    problems: &mut Vec<ConfigProblem>,
) {
    let Some(url) = url.filter(|url| !url.value.is_empty()) else { return };
    if let Err(refusal) = check_target(&url.value, allows_private) {
        problems.push(url.problem(refusal.message));
    }
}

fn read_notify(
    section: &Section<'_>,
    url: Option<LocatedValue<String>>,
    variable: Option<LocatedValue<String>>,
    reading: &mut ParseContext<'_>,
) -> Option<(Option<String>, StandardSecret)> {
    let url = url.filter(|url| !url.value.is_empty());
    let Some(variable) = variable.filter(|variable| !variable.value.is_empty()) else {
        if url.is_some() {
            let message = "notify_secret_env is missing: reports are signed, so that they can be trusted.";
            reading.problems.push(section.problem_at("notify_url", message));
        }
        return None;
    };
    let secret = StandardSecret::parse(read_secret(&variable, reading)?.reveal()).ok()?;
    Some((url.map(|url| url.value), secret))
}

/// Reads the secret of webhooks in an environment variable.
fn read_secret(variable: &LocatedValue<String>, reading: &mut ParseContext<'_>) -> Option<Secret> {
    let secret = reading.secret(variable)?;
    if let Err(error) = StandardSecret::parse(&secret) {
        let message = format!("The variable {} holds something else: {error}.", variable.value);
        reading.problems.push(variable.problem(message));
        return None;
    }
    Some(Secret::new(secret))
}
