//! A provider: `[provider.NAME]`.

use std::time::Duration;

use tidegate_dispatch::config::{NAME_RULE, is_name};
use tidegate_dispatch::{AdapterConfig, KeyConfig, ProviderConfig};
use tidegate_upstream::Secret;

use super::super::ParseContext;
use super::super::problem::ConfigProblem;
use super::super::read::check_url;
use super::super::section::Section;
use super::super::value::LocatedValue;
use super::{generic, read_secret};

/// The most jobs at once, and submits a minute, that can be configured.
const FIGURE_MAX: u64 = 1_000_000;
/// The longest cooldown, deadline and time between polls: a day.
const TIME_MAX_S: u64 = 86_400;
/// The longest time of one call: ten minutes.
const TIMEOUT_MAX_S: u64 = 600;

pub(super) fn read(
    name: String,
    mut section: Section<'_>,
    may_omit_keys: bool,
    reading: &mut ParseContext<'_>,
) -> Option<ProviderConfig> {
    let problems = &mut reading.problems;
    let has_name = is_name(&name);
    if !has_name {
        problems.push(section.problem(format!("Its name must be {NAME_RULE}.")));
    }
    let adapter = read_adapter(&name, &mut section, problems);
    let figure = |found: Option<u64>| found.and_then(|figure| u32::try_from(figure).ok());
    let max_concurrent = figure(section.integer("max_concurrent", 1..=FIGURE_MAX, problems));
    let rpm = figure(section.integer("rpm", 1..=FIGURE_MAX, problems));
    let cooldown = read_ladder(&mut section, problems);
    let [poll_after, poll_every, deadline] = ["poll_after_s", "poll_every_s", "deadline_s"]
        .map(|key| section.integer(key, 1..=TIME_MAX_S, problems).map(Duration::from_secs));
    let timeout = section.integer("timeout_s", 1..=TIMEOUT_MAX_S, problems).map(Duration::from_secs);
    let variable = section.text("webhook_secret_env", problems);
    let keys = read_keys(&mut section, may_omit_keys, reading);
    let secret = variable.map(|variable| read_secret(&variable, reading));
    section.finish(&mut reading.problems);
    let usual = ProviderConfig::new(name, adapter.filter(|_| has_name)?);
    Some(ProviderConfig {
        keys: keys?,
        max_concurrent,
        rpm,
        cooldown: cooldown?.unwrap_or(usual.cooldown),
        poll_after,
        poll_every,
        deadline: deadline.unwrap_or(usual.deadline),
        timeout: timeout.unwrap_or(usual.timeout),
        webhook_secrets: secret.into_iter().collect::<Option<_>>()?,
        ..usual
    })
}

/// Reads the adapter, by default the one with the provider's own name, and the addresses of its
/// API.
fn read_adapter(
    name: &str,
    section: &mut Section<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<AdapterConfig> {
    let word = section.text("adapter", problems);
    let own_url = section.text("base_url", problems);
    let own_keys = section.text("jwks_url", problems);
    let is_given = word.is_some() || section.has("adapter");
    let adapter = word.as_ref().map_or(name, |word| word.value.as_str());
    if !AdapterConfig::NAMES.contains(&adapter) {
        let known = AdapterConfig::NAMES.map(|known| format!("{known:?}")).join(", ");
        problems.push(match &word {
            Some(word) => word.problem(format!("There is no adapter {adapter:?}; there are {known}.")),
            // A name that no provider can have says nothing about its adapter.
            None if is_given || !is_name(name) => return None,
            None => section.problem(format!("The key adapter is missing; there are {known}.")),
        });
        return None;
    }
    for url in [&own_url, &own_keys].into_iter().flatten() {
        check_url(url, problems);
    }
    reject_others(adapter, section, problems);
    let (base_url, jwks_url) = (own_url.map(|url| url.value), own_keys.map(|url| url.value));
    Some(match adapter {
        "replicate" => AdapterConfig::Replicate { base_url },
        "google" => AdapterConfig::Google { base_url, jwks_url },
        "fal" => AdapterConfig::Fal { base_url, jwks_url },
        "higgsfield" => AdapterConfig::Higgsfield { base_url },
        _ => {
            if base_url.is_none() && !section.has("base_url") {
                problems.push(section.problem("The key base_url is missing."));
            }
            AdapterConfig::Generic(Box::new(generic::read(name, base_url, section, problems)?))
        }
    })
}

/// Reports the keys that the adapter does not have.
fn reject_others(adapter: &str, section: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) {
    if adapter != "generic" {
        for key in generic::KEYS {
            if section.has(key) {
                section.asked.push(key);
                problems.push(section.problem_at(key, "Only the adapter \"generic\" has this key."));
            }
        }
    }
    if !["google", "fal"].contains(&adapter) && section.has("jwks_url") {
        let message = "Only the adapters \"google\" and \"fal\" have public keys.";
        problems.push(section.problem_at("jwks_url", message));
    }
}

/// Reads the ladder of cooldowns; the last step is repeated for those that are left out. `None`
/// inside when there is none.
fn read_ladder(
    section: &mut Section<'_>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<Option<[Duration; 4]>> {
    let Some(steps) = section.integers("cooldown_s", 1..=TIME_MAX_S, problems) else {
        return (!section.has("cooldown_s")).then_some(None);
    };
    let steps = steps.value;
    let Some(last) = steps.last().filter(|_| steps.len() <= 4 && steps.is_sorted()) else {
        let message = "It must be 1 to 4 numbers, none smaller than the one before it.";
        problems.push(section.problem_at("cooldown_s", message));
        return None;
    };
    let step = |place: usize| Duration::from_secs(*steps.get(place).unwrap_or(last));
    Some(Some([step(0), step(1), step(2), step(3)]))
}

/// Reads the credentials: `key_env` for one, or `keys` for several. Where only remote workers have
/// them, they are known by their names.
fn read_keys(
    section: &mut Section<'_>,
    may_omit: bool,
    reading: &mut ParseContext<'_>,
) -> Option<Vec<KeyConfig>> {
    let single = section.text("key_env", &mut reading.problems);
    let several = section.sections("keys", &mut reading.problems);
    let is_omitted = may_omit && !section.has("key_env") && !section.has("keys");
    if section.has("key_env") == section.has("keys") && !is_omitted {
        reading.problems.push(section.problem("A provider needs either key_env or keys."));
        return None;
    }
    let secret = |variable: Option<LocatedValue<String>>, is_omitted, reading: &mut ParseContext<'_>| {
        let secret = if is_omitted { String::new() } else { reading.secret(&variable?)? };
        Some(Secret::new(secret))
    };
    if !section.has("keys") {
        let key = secret(single, is_omitted, reading)?;
        return Some(vec![KeyConfig { name: "key-1".to_owned(), key, account: None }]);
    }
    let mut keys = Vec::new();
    for (index, mut table) in several.into_iter().enumerate() {
        let variable = table.text("env", &mut reading.problems);
        let [name, account] = ["name", "account"].map(|key| table.text(key, &mut reading.problems));
        let is_omitted = may_omit && !table.has("env");
        if variable.is_none() && !table.has("env") && !is_omitted {
            reading.problems.push(table.problem("The key env is missing."));
        }
        table.finish(&mut reading.problems);
        let name = name.map_or_else(|| format!("key-{}", index + 1), |name| name.value);
        let account = account.map(|account| account.value);
        keys.push(secret(variable, is_omitted, reading).map(|key| KeyConfig { name, key, account }));
    }
    keys.into_iter().collect()
}
