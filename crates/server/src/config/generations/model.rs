//! A model: `[model.NAME]`, with the input that it takes and the chain of providers that serve it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tidegate_dispatch::{ChainLinkConfig, ModelConfig, UnknownPolicy, parse_strategy, schema_problems};
use toml::de::DeValue;

use super::super::problem::ConfigProblem;
use super::super::section::Section;
use super::super::value::{LocatedValue, RawConfigValue};
use super::super::{FILE_LEN_MAX, ParseContext};

/// The longest wait for a provider: a week.
const WAIT_MAX_S: u64 = 7 * 86_400;
/// The largest weight, and the largest cost.
const FIGURE_MAX: u64 = 1_000_000_000;

/// Reads a model. `places` learns where the parts of its chain are.
pub(super) fn read(
    name: String,
    mut section: Section<'_>,
    providers: &BTreeSet<String>,
    places: &mut BTreeMap<String, ConfigProblem>,
    reading: &mut ParseContext<'_>,
) -> Option<ModelConfig> {
    let problems = &mut reading.problems;
    let input_schema = read_schema(&mut section, problems);
    let chain = read_chain(&name, &mut section, providers, places, problems);
    let strategy = section.text("strategy", problems).map(|word| {
        let known = "It must be chain, weights, least_busy, fastest or cheapest.";
        parse_strategy(&word.value).ok_or_else(|| word.problem(known))
    });
    let fair = section.flag("fair", problems);
    let max_wait = section.integer("max_wait_s", 1..=WAIT_MAX_S, problems).map(Duration::from_secs);
    let on_unknown = section.text("on_unknown", problems).map(|word| {
        UnknownPolicy::parse(&word.value).ok_or_else(|| word.problem("It must be wait, failover or fail."))
    });
    section.finish(problems);
    let strategy = strategy.transpose().map_err(|problem| problems.push(problem));
    let on_unknown = on_unknown.transpose().map_err(|problem| problems.push(problem));
    let usual = ModelConfig::new(name, chain?);
    Some(ModelConfig {
        input_schema: input_schema?,
        strategy: strategy.ok()?.unwrap_or(usual.strategy),
        fair: fair.unwrap_or(usual.fair),
        max_wait: max_wait.or(usual.max_wait),
        on_unknown: on_unknown.ok()?.unwrap_or(usual.on_unknown),
        ..usual
    })
}

/// Reads the schema of the input, written here or in a file of its own. `None` inside when there is
/// none.
fn read_schema(section: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<Option<Value>> {
    let inline = section.text("input_schema", problems);
    let file = section.text("input_schema_file", problems);
    let read = match (inline, file) {
        (None, None) => {
            let is_absent = !section.has("input_schema") && !section.has("input_schema_file");
            return is_absent.then_some(None);
        }
        (Some(inline), None) => Ok((inline.value.clone(), inline)),
        (None, Some(file)) => match read_file(section, &file.value) {
            Ok(text) => Ok((text, file)),
            Err(problem) => Err(file.problem(problem)),
        },
        (Some(inline), Some(_)) => Err(inline.problem("There is input_schema_file too: leave one out.")),
    };
    let schema = read.and_then(|(text, found)| match serde_json::from_str(&text) {
        Ok(schema) => Ok((schema, found)),
        Err(error) => Err(found.problem(format!("It is not JSON: {error}."))),
    });
    let (schema, found) = schema.map_err(|problem| problems.push(problem)).ok()?;
    let faults = schema_problems(&schema);
    problems.extend(faults.iter().map(|fault| found.problem(fault)));
    faults.is_empty().then_some(Some(schema))
}

/// Reads a file that is named from the folder of the configuration.
fn read_file(section: &Section<'_>, name: &str) -> Result<String, String> {
    let folder = Path::new(section.source.name).parent().unwrap_or(Path::new(""));
    let bytes = std::fs::read(folder.join(name)).map_err(|error| format!("It cannot be read: {error}."))?;
    if bytes.len() > FILE_LEN_MAX {
        return Err(format!("It is {} bytes long; the most is {FILE_LEN_MAX}.", bytes.len()));
    }
    String::from_utf8(bytes).map_err(|_| "It is not UTF-8.".to_owned())
}

/// Reads the chain: tables, or names of providers that know the model by its own name.
fn read_chain(
    model: &str,
    section: &mut Section<'_>,
    providers: &BTreeSet<String>,
    places: &mut BTreeMap<String, ConfigProblem>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<Vec<ChainLinkConfig>> {
    if !section.has("chain") {
        problems.push(section.problem("The key chain is missing."));
        return None;
    }
    let Some(names) = read_names(section) else {
        let links = section.sections("chain", problems);
        for (index, link) in links.iter().enumerate() {
            let place =
                |key: &str| (format!("models.{model}.chain[{index}].{key}"), link.problem_at(key, ""));
            places.extend(["provider", "model"].map(place));
        }
        // All are read, so that all their problems are reported.
        let links: Vec<_> = links.into_iter().map(|link| read_link(link, providers, problems)).collect();
        return links.into_iter().collect();
    };
    let unknown: Vec<_> = names.value.iter().filter(|name| !providers.contains(*name)).collect();
    if !unknown.is_empty() {
        problems.extend(unknown.into_iter().map(|name| names.problem(no_provider(name))));
        return None;
    }
    let place = |index: usize| (format!("models.{model}.chain[{index}]"), names.problem(""));
    places.extend((0..names.value.len()).map(place));
    let link = |provider: &String| ChainLinkConfig {
        provider: provider.clone(),
        model: model.to_owned(),
        weight: 1,
        cost: 0,
    };
    Some(names.value.iter().map(link).collect())
}

/// The chain, if it is a list of names.
fn read_names(section: &mut Section<'_>) -> Option<LocatedValue<Vec<String>>> {
    let LocatedValue { value, at, key_path } = section.find("chain")?;
    let RawConfigValue::Value(DeValue::Array(items)) = value else { return None };
    let name = |item: &DeValue<'_>| match item {
        DeValue::String(name) => Some(name.to_string()),
        _ => None,
    };
    let value: Vec<_> = items.iter().map(|item| name(item.get_ref())).collect::<Option<_>>()?;
    Some(LocatedValue { value, at, key_path })
}

fn read_link(
    mut section: Section<'_>,
    providers: &BTreeSet<String>,
    problems: &mut Vec<ConfigProblem>,
) -> Option<ChainLinkConfig> {
    let provider = section.text("provider", problems);
    let model = section.text("model", problems);
    let weight = section.integer("weight", 0..=FIGURE_MAX, problems).unwrap_or(1);
    let cost = section.integer("cost", 0..=FIGURE_MAX, problems).unwrap_or(0);
    for (key, is_missing) in [("provider", provider.is_none()), ("model", model.is_none())] {
        if is_missing && !section.has(key) {
            problems.push(section.problem(format!("The key {key} is missing.")));
        }
    }
    let unknown = provider.as_ref().filter(|provider| !providers.contains(&provider.value));
    problems.extend(unknown.map(|provider| provider.problem(no_provider(&provider.value))));
    section.finish(problems);
    if unknown.is_some() {
        return None;
    }
    let weight = u32::try_from(weight).ok()?;
    Some(ChainLinkConfig { provider: provider?.value, model: model?.value, weight, cost })
}

fn no_provider(name: &str) -> String {
    format!("There is no [provider.{name}].")
}
