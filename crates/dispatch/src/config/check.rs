//! Checks a configuration: bounds, names, and that every chain can be used. Names the place of each
//! problem.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_core::bounds::{ALTERNATIVES_MAX, AWAIT_MAX, HORIZON_MAX, RESULT_FILE_LEN_MAX};
use tidegate_core::text::is_control;
use tidegate_images::{JobRequest, RequestError};
use tidegate_upstream::Secret;
use tidegate_upstream::http::target::BaseUrl;

use super::{ConfigError, DispatchConfig, ModelConfig, ProviderConfig};
use crate::input_schema::schema_problems;

/// Longest name of a provider or a key, in bytes: both are in the name of an alternative.
const NAME_LEN_MAX: usize = 31;
/// What such a name is made of, for messages.
pub const NAME_RULE: &str = "1 to 31 of a-z, 0-9, - and _";
/// Longest name of a model, in bytes.
const MODEL_NAME_LEN_MAX: usize = 64;
/// Most providers, and most models.
const ITEMS_MAX: usize = 1_000;
/// Highest limit that can be configured.
const LIMIT_FIGURE_MAX: u32 = 1_000_000;
/// Shortest time between polls.
const POLL_MIN: Duration = Duration::from_millis(100);
/// Longest time of one HTTP call.
const TIMEOUT_MAX: Duration = Duration::from_secs(600);

impl DispatchConfig {
    /// Finds what cannot work.
    ///
    /// # Errors
    /// Names the place of the first problem.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.problems().into_iter().next().map_or(Ok(()), Err)
    }

    /// Returns everything that cannot work, each with its place.
    #[must_use]
    pub fn problems(&self) -> Vec<ConfigError> {
        let mut found = Problems::at(String::new());
        for (place, count) in [("providers", self.providers.len()), ("models", self.models.len())] {
            found.push_if(count > ITEMS_MAX, place, format!("There are more than {ITEMS_MAX}."));
        }
        if let Some(Err(problem)) = self.public_url.as_deref().map(BaseUrl::parse) {
            found.push("public_url", problem);
        }
        let is_too_large = !(1..=RESULT_FILE_LEN_MAX).contains(&self.result_max_bytes);
        found.push_if(is_too_large, "result_max_bytes", format!("It must be 1 to {RESULT_FILE_LEN_MAX}."));
        found.check_figure("per_user.max_active", self.per_user.max_active);
        found.check_figure("per_user.per_minute", self.per_user.per_minute);
        let mut names = BTreeSet::new();
        for provider in &self.providers {
            found.list.extend(provider.problems(self.has_remote_keys));
            let is_double = !names.insert(&provider.name);
            found.push_if(
                is_double,
                &format!("providers.{}", provider.name),
                "Two providers have this name.",
            );
        }
        let mut names = BTreeSet::new();
        for model in &self.models {
            found.list.extend(self.model_problems(model));
            let is_double = !names.insert(&model.name);
            found.push_if(is_double, &format!("models.{}", model.name), "Two models have this name.");
        }
        found.list
    }

    /// Checks that every key is here, as whoever submits needs it.
    ///
    /// # Errors
    /// Names the first provider without one.
    pub fn check_keys(&self) -> Result<(), ConfigError> {
        let has_none =
            |provider: &&ProviderConfig| provider.keys.iter().any(|key| key.key.reveal().is_empty());
        self.providers.iter().find(has_none).map_or(Ok(()), |provider| {
            let place = format!("providers.{}", provider.name);
            Err(ConfigError::new(place, "Its key is missing: whoever submits needs it."))
        })
    }

    fn model_problems(&self, model: &ModelConfig) -> Vec<ConfigError> {
        let mut found = Problems::at(format!("models.{}", model.name));
        let is_long = model.name.is_empty() || model.name.len() > MODEL_NAME_LEN_MAX;
        found.push_if(is_long, ".name", format!("It must be 1 to {MODEL_NAME_LEN_MAX} bytes long."));
        let has_space = model.name.chars().any(|c| is_control(c) || c.is_whitespace());
        found.push_if(has_space, ".name", "It must have no spaces.");
        let is_long = model.max_wait.is_some_and(|wait| wait.is_zero() || wait > HORIZON_MAX);
        found.push_if(is_long, ".max_wait", "It must be above zero and at most a year.");
        for problem in model.input_schema.as_ref().map(schema_problems).unwrap_or_default() {
            found.push(".input_schema", problem);
        }
        found.push_if(model.chain.is_empty(), ".chain", "It names no provider.");
        let mut alternatives = 0;
        for (index, link) in model.chain.iter().enumerate() {
            let at = |part: &str| format!(".chain[{index}].{part}");
            let Some(provider) = self.providers.iter().find(|provider| provider.name == link.provider) else {
                found.push(&at("provider"), format!("There is no provider {:?}.", link.provider));
                continue;
            };
            let is_double = model.chain[..index].iter().any(|other| other.provider == link.provider);
            found.push_if(is_double, &at("provider"), "It is in the chain already.");
            if let Some(problem) = model_problem(provider, &link.model) {
                found.push(&at("model"), problem);
            }
            alternatives += provider.keys.len();
        }
        let problem = format!("Its providers have {alternatives} keys; the most is {ALTERNATIVES_MAX}.");
        found.push_if(alternatives > ALTERNATIVES_MAX, ".chain", problem);
        found.list
    }
}

impl ProviderConfig {
    fn problems(&self, has_remote_keys: bool) -> Vec<ConfigError> {
        let mut found = Problems::at(format!("providers.{}", self.name));
        found.check_name(".name", &self.name);
        match self.adapter.build() {
            Err(error) => found.push(&format!(".{}", error.field), error.problem),
            Ok(_) => {
                if let Err(problem) = BaseUrl::parse(self.adapter.base_url()) {
                    found.push(".base_url", problem);
                }
            }
        }
        found.push_if(self.keys.is_empty(), ".keys", "It has no key.");
        for (index, key) in self.keys.iter().enumerate() {
            let at = |part: &str| format!(".keys[{index}].{part}");
            found.check_name(&at("name"), &key.name);
            if let Some(account) = &key.account {
                found.check_name(&at("account"), account);
            }
            let is_empty = key.key.reveal().is_empty() && !has_remote_keys;
            found.push_if(is_empty, &at("key"), "It is empty.");
            let is_double = self.keys[..index].iter().any(|other| other.name == key.name);
            found.push_if(is_double, &at("name"), "Two keys have this name.");
        }
        found.check_figure(".max_concurrent", self.max_concurrent);
        found.check_figure(".rpm", self.rpm);
        let is_wrong = self.cooldown.iter().any(|step| step.is_zero() || *step > HORIZON_MAX);
        found.push_if(is_wrong, ".cooldown", "Every step must be above zero.");
        for (part, every) in [(".poll_after", self.poll_after), (".poll_every", self.poll_every)] {
            let is_wrong = every.is_some_and(|every| every < POLL_MIN || every > AWAIT_MAX);
            found.push_if(is_wrong, part, "It must be 100 ms to 30 days.");
        }
        let is_wrong = |time: Duration, max: Duration| time.is_zero() || time > max;
        let problem = "It must be above zero and at most 30 days.";
        found.push_if(is_wrong(self.deadline, AWAIT_MAX), ".deadline", problem);
        let problem = "It must be above zero and at most 10 minutes.";
        found.push_if(is_wrong(self.timeout, TIMEOUT_MAX), ".timeout", problem);
        found.list
    }
}

/// The problems of one part of the configuration.
struct Problems {
    place: String,
    list: Vec<ConfigError>,
}

impl Problems {
    const fn at(place: String) -> Self {
        Self { place, list: Vec::new() }
    }

    fn push(&mut self, part: &str, problem: impl Into<String>) {
        self.list.push(ConfigError::new(format!("{}{part}", self.place), problem));
    }

    fn push_if(&mut self, is_wrong: bool, part: &str, problem: impl Into<String>) {
        if is_wrong {
            self.push(part, problem);
        }
    }

    fn check_name(&mut self, part: &str, name: &str) {
        self.push_if(!is_name(name), part, format!("It must be {NAME_RULE}."));
    }

    fn check_figure(&mut self, part: &str, figure: Option<u32>) {
        let is_wrong = figure.is_some_and(|figure| !(1..=LIMIT_FIGURE_MAX).contains(&figure));
        self.push_if(is_wrong, part, format!("It must be 1 to {LIMIT_FIGURE_MAX}."));
    }
}

/// Whether a provider or a key can have this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(is_allowed)
}

/// Why a provider cannot have a model of this name, as far as its adapter knows.
fn model_problem(provider: &ProviderConfig, model: &str) -> Option<String> {
    let adapter = provider.adapter.build().ok()?;
    let job =
        JobRequest { model, input: &serde_json::json!({ "prompt": "" }), webhook: None, attempt: "check" };
    match adapter.submit(&job, &Secret::new("key")) {
        Err(error @ RequestError::Model(..)) => Some(format!("{error}.")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AdapterConfig, ChainLinkConfig, KeyConfig};

    fn config() -> DispatchConfig {
        let key = |name: &str| KeyConfig { name: name.into(), key: Secret::new("k"), account: None };
        let mut provider = ProviderConfig::new("acme", AdapterConfig::Replicate { base_url: None });
        provider.keys = vec![key("main")];
        let model = ModelConfig::new("flux", vec![ChainLinkConfig::new("acme", "black-forest-labs/flux")]);
        DispatchConfig { providers: vec![provider], models: vec![model], ..DispatchConfig::default() }
    }

    fn place(change: impl FnOnce(&mut DispatchConfig)) -> String {
        let mut config = config();
        change(&mut config);
        config.check().unwrap_err().place
    }

    /// DSP-14: what cannot work is named by its place.
    #[test]
    fn dsp_14_a_wrong_configuration_is_named_by_its_place() {
        assert_eq!(config().check(), Ok(()));
        let provider = "providers.acme";
        let twice = |config: &mut DispatchConfig| {
            let first = config.providers[0].clone();
            config.providers.push(first);
        };
        assert_eq!(place(twice), provider);
        assert_eq!(place(|config| config.providers[0].keys.clear()), format!("{provider}.keys"));
        let same_key = |config: &mut DispatchConfig| {
            let first = config.providers[0].keys[0].clone();
            config.providers[0].keys.push(first);
        };
        assert_eq!(place(same_key), format!("{provider}.keys[1].name"));
        assert_eq!(place(|config| config.providers[0].rpm = Some(0)), format!("{provider}.rpm"));
        let no_url = |config: &mut DispatchConfig| {
            config.providers[0].adapter = AdapterConfig::Replicate { base_url: Some("ftp://x".into()) };
        };
        assert_eq!(place(no_url), format!("{provider}.base_url"));
        assert_eq!(place(|config| config.providers[0].name = "A b".into()), "providers.A b.name");
        assert_eq!(place(|config| config.models[0].chain.clear()), "models.flux.chain");
        let stranger = |config: &mut DispatchConfig| config.models[0].chain[0].provider = "globex".into();
        assert_eq!(place(stranger), "models.flux.chain[0].provider");
        let no_model = |config: &mut DispatchConfig| config.models[0].chain[0].model = "flux".into();
        assert_eq!(place(no_model), "models.flux.chain[0].model");
        let no_schema = |config: &mut DispatchConfig| {
            config.models[0].input_schema = Some(serde_json::json!({ "type": 7 }));
        };
        assert_eq!(place(no_schema), "models.flux.input_schema");
        assert_eq!(place(|config| config.public_url = Some("app".into())), "public_url");
        assert_eq!(place(|config| config.per_user.per_minute = Some(0)), "per_user.per_minute");
    }

    /// DSP-14: all problems are named, not the first one only.
    #[test]
    fn dsp_14_every_problem_is_named() {
        let mut config = config();
        config.public_url = Some("app".into());
        config.providers[0].rpm = Some(0);
        config.providers[0].timeout = Duration::ZERO;
        config.models[0].input_schema = Some(serde_json::json!({ "type": 7, "minLength": -1 }));
        config.models[0].chain.push(ChainLinkConfig::new("globex", "x"));
        config.models[0].chain[0].model = "flux".into();
        let problems = config.problems();
        let places: Vec<_> = problems.iter().map(|problem| problem.place.as_str()).collect();
        let (provider, model) = ("providers.acme", "models.flux");
        let schema = format!("{model}.input_schema");
        let expected = [
            "public_url",
            &format!("{provider}.rpm"),
            &format!("{provider}.timeout"),
            &schema,
            &schema,
            &format!("{model}.chain[0].model"),
            &format!("{model}.chain[1].provider"),
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn a_chain_has_a_bounded_number_of_keys() {
        let many = |config: &mut DispatchConfig| {
            config.providers[0].keys = (0..=ALTERNATIVES_MAX)
                .map(|n| KeyConfig { name: format!("k{n}"), key: Secret::new("k"), account: None })
                .collect();
        };
        assert_eq!(place(many), "models.flux.chain");
    }
}
