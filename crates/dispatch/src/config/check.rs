//! Checks a configuration: bounds, names, and that every chain can be used. Names the place of the
//! first problem.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_core::bounds::{ALTERNATIVES_MAX, AWAIT_MAX, HORIZON_MAX, RESULT_FILE_LEN_MAX};
use tidegate_images::{JobRequest, RequestError};
use tidegate_upstream::Secret;
use tidegate_upstream::http::target::BaseUrl;

use super::{ConfigError, DispatchConfig, ModelConfig, ProviderConfig};

/// Longest name of a provider or a key, in bytes: both are in the name of an alternative.
const NAME_LEN_MAX: usize = 31;
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
        for (place, count) in [("providers", self.providers.len()), ("models", self.models.len())] {
            if count > ITEMS_MAX {
                return Err(ConfigError::new(place, format!("There are more than {ITEMS_MAX}.")));
            }
        }
        if let Some(url) = &self.public_url {
            BaseUrl::parse(url).map_err(|problem| ConfigError::new("public_url", problem))?;
        }
        if !(1..=RESULT_FILE_LEN_MAX).contains(&self.result_max_bytes) {
            let problem = format!("It must be 1 to {RESULT_FILE_LEN_MAX}.");
            return Err(ConfigError::new("result_max_bytes", problem));
        }
        check_figure("per_user.max_active", self.per_user.max_active)?;
        check_figure("per_user.per_minute", self.per_user.per_minute)?;
        let mut names = BTreeSet::new();
        for provider in &self.providers {
            provider.check(self.has_remote_keys)?;
            if !names.insert(&provider.name) {
                let place = format!("providers.{}", provider.name);
                return Err(ConfigError::new(place, "Two providers have this name."));
            }
        }
        let mut names = BTreeSet::new();
        for model in &self.models {
            self.check_model(model)?;
            if !names.insert(&model.name) {
                let place = format!("models.{}", model.name);
                return Err(ConfigError::new(place, "Two models have this name."));
            }
        }
        Ok(())
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

    fn check_model(&self, model: &ModelConfig) -> Result<(), ConfigError> {
        let place = format!("models.{}", model.name);
        let wrong = |part: &str, problem: String| Err(ConfigError::new(format!("{place}{part}"), problem));
        if model.name.is_empty() || model.name.len() > MODEL_NAME_LEN_MAX {
            return wrong(".name", format!("It must be 1 to {MODEL_NAME_LEN_MAX} bytes long."));
        }
        if model.name.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return wrong(".name", "It must have no spaces.".into());
        }
        if model.max_wait.is_some_and(|wait| wait.is_zero() || wait > HORIZON_MAX) {
            return wrong(".max_wait", "It must be above zero and at most a year.".into());
        }
        if let Some(schema) = &model.input_schema
            && let Err(error) = jsonschema::validator_for(schema)
        {
            return wrong(".input_schema", format!("It is no JSON Schema: {error}."));
        }
        if model.chain.is_empty() {
            return wrong(".chain", "It names no provider.".into());
        }
        let mut alternatives = 0;
        for (index, link) in model.chain.iter().enumerate() {
            let at = format!(".chain[{index}]");
            let Some(provider) = self.providers.iter().find(|provider| provider.name == link.provider) else {
                return wrong(
                    &format!("{at}.provider"),
                    format!("There is no provider {:?}.", link.provider),
                );
            };
            if model.chain[..index].iter().any(|other| other.provider == link.provider) {
                return wrong(&format!("{at}.provider"), "It is in the chain already.".into());
            }
            if let Some(problem) = model_problem(provider, &link.model) {
                return wrong(&format!("{at}.model"), problem);
            }
            alternatives += provider.keys.len();
        }
        if alternatives > ALTERNATIVES_MAX {
            let problem = format!("Its providers have {alternatives} keys; the most is {ALTERNATIVES_MAX}.");
            return wrong(".chain", problem);
        }
        Ok(())
    }
}

impl ProviderConfig {
    fn check(&self, has_remote_keys: bool) -> Result<(), ConfigError> {
        let place = format!("providers.{}", self.name);
        let at = |part: &str| format!("{place}.{part}");
        check_name(&at("name"), &self.name)?;
        self.adapter.build().map_err(|error| ConfigError::new(at(error.field), error.problem))?;
        BaseUrl::parse(self.adapter.base_url())
            .map_err(|problem| ConfigError::new(at("base_url"), problem))?;
        if self.keys.is_empty() {
            return Err(ConfigError::new(at("keys"), "It has no key."));
        }
        for (index, key) in self.keys.iter().enumerate() {
            let part = |part: &str| at(&format!("keys[{index}].{part}"));
            check_name(&part("name"), &key.name)?;
            if let Some(account) = &key.account {
                check_name(&part("account"), account)?;
            }
            if key.key.reveal().is_empty() && !has_remote_keys {
                return Err(ConfigError::new(part("key"), "It is empty."));
            }
            if self.keys[..index].iter().any(|other| other.name == key.name) {
                return Err(ConfigError::new(part("name"), "Two keys have this name."));
            }
        }
        check_figure(&at("max_concurrent"), self.max_concurrent)?;
        check_figure(&at("rpm"), self.rpm)?;
        if self.cooldown.iter().any(|step| step.is_zero() || *step > HORIZON_MAX) {
            return Err(ConfigError::new(at("cooldown"), "Every step must be above zero."));
        }
        for (part, every) in [("poll_after", self.poll_after), ("poll_every", self.poll_every)] {
            if every.is_some_and(|every| every < POLL_MIN || every > AWAIT_MAX) {
                return Err(ConfigError::new(at(part), "It must be 100 ms to 30 days."));
            }
        }
        if self.deadline.is_zero() || self.deadline > AWAIT_MAX {
            return Err(ConfigError::new(at("deadline"), "It must be above zero and at most 30 days."));
        }
        if self.timeout.is_zero() || self.timeout > TIMEOUT_MAX {
            return Err(ConfigError::new(at("timeout"), "It must be above zero and at most 10 minutes."));
        }
        Ok(())
    }
}

fn check_name(place: &str, name: &str) -> Result<(), ConfigError> {
    let is_allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    if (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(is_allowed) {
        return Ok(());
    }
    let problem = format!("It must be 1 to {NAME_LEN_MAX} of a-z, 0-9, - and _.");
    Err(ConfigError::new(place, problem))
}

fn check_figure(place: &str, figure: Option<u32>) -> Result<(), ConfigError> {
    match figure {
        Some(figure) if !(1..=LIMIT_FIGURE_MAX).contains(&figure) => {
            Err(ConfigError::new(place, format!("It must be 1 to {LIMIT_FIGURE_MAX}.")))
        }
        _ => Ok(()),
    }
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
