//! The upstreams: `[[upstream]]` and `[[upstream.limit]]`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tidegate_core::ServerErrors;
use tidegate_core::bounds::{RESULT_LEN_MAX, TOKENS_MAX};
use tidegate_upstream::http::{LimitConfig, LimitKind, TokenHeader};
use tidegate_upstream::{HttpUpstreams, Secret, http::UpstreamConfig};

use super::ParseContext;
use super::dialect::{self, DialectConfig, DiscordConfig, ShopifyConfig};
use super::problem::ConfigProblem;
use super::read::reject_duplicates;
use super::section::Section;

/// The longest timeout, in milliseconds: an hour.
const TIMEOUT_MAX_MS: u64 = 3_600_000;

/// Settings of upstreams besides how to reach them, by name.
#[derive(Default)]
pub(super) struct UpstreamExtras {
    /// Upstreams that are spread over all partitions.
    pub spread: BTreeSet<String>,
    /// Upstreams with the dialect `shopify`.
    pub shopify: BTreeMap<String, ShopifyConfig>,
    /// Upstreams with the dialect `discord`.
    pub discord: BTreeMap<String, DiscordConfig>,
}

pub(super) fn read(
    mut section: Section<'_>,
    beside: &mut UpstreamExtras,
    reading: &mut ParseContext<'_>,
) -> Option<UpstreamConfig> {
    let problems = &mut reading.problems;
    let name = section.text("name", problems);
    let dialect = dialect::read(&mut section, problems);
    let base_url = section.text("base_url", problems);
    let variable = section.text("token_env", problems);
    let header = section.text("token_header", problems);
    let stored = section.texts("stored_headers", problems);
    let timeout = section.integer("timeout_ms", 1..=TIMEOUT_MAX_MS, problems);
    let connect = section.integer("connect_timeout_ms", 1..=TIMEOUT_MAX_MS, problems);
    let most = section.integer("response_max_bytes", 1..=RESULT_LEN_MAX as u64, problems);
    let server_errors = section.text("server_errors", problems);
    let spread_by = section.text("spread", problems);
    let limits = section.sections("limit", problems);
    reject_duplicates(&limits, problems);
    let limits: Vec<_> = limits.into_iter().map(|limit| read_limit(limit, reading)).collect();
    let base_url = base_url.map(|url| url.value).or_else(|| {
        let usual = dialect.base_url().filter(|_| !section.has("base_url"));
        usual.map(str::to_owned)
    });
    for (key, missing) in [("name", name.is_none()), ("base_url", base_url.is_none())] {
        if missing && !section.has(key) {
            reading.problems.push(section.problem(format!("The key {key} is missing.")));
        }
    }
    let mut config = example();
    config.name = name.as_ref().map_or(config.name, |name| name.value.clone());
    config.base_url = base_url.clone().unwrap_or(config.base_url);
    config.token = variable.and_then(|variable| reading.secret(&variable)).map(Secret::new);
    config.token_header =
        header.map_or_else(|| dialect.token_header(), |text| TokenHeader::parse(&text.value));
    config.stored_headers = stored
        .map(|names| names.value.iter().map(|name| name.to_ascii_lowercase()).collect())
        .unwrap_or_default();
    config.timeout = timeout.map_or(config.timeout, Duration::from_millis);
    config.connect_timeout = connect.map_or(config.connect_timeout, Duration::from_millis);
    config.response_max_bytes =
        most.and_then(|most| usize::try_from(most).ok()).unwrap_or(config.response_max_bytes);
    if let Some(word) = server_errors {
        config.server_errors = ServerErrors::parse(&word.value);
        if config.server_errors.is_none() {
            reading.problems.push(word.problem("It must be \"retry\" or \"unknown\"."));
        }
    }
    if let Some(by) = spread_by {
        if by.value != "group" {
            reading.problems.push(by.problem("It must be \"group\", or left out."));
        } else if !limits.is_empty() || dialect.makes_limits() {
            reading.problems.push(
                by.problem("What is spread over partitions cannot have limits: they are kept in one place."),
            );
        }
        beside.spread.insert(config.name.clone());
    }
    match dialect {
        DialectConfig::Http => {}
        DialectConfig::Shopify(shop) => drop(beside.shopify.insert(config.name.clone(), shop)),
        DialectConfig::Discord(bot) => drop(beside.discord.insert(config.name.clone(), bot)),
    }
    check(&config, limits.len(), &section, &mut reading.problems);
    section.finish(&mut reading.problems);
    config.limits = limits.into_iter().collect::<Option<_>>()?;
    (name.is_some() && base_url.is_some()).then_some(config)
}

/// A valid upstream.
fn example() -> UpstreamConfig {
    UpstreamConfig::new("example", "http://localhost")
}

/// Validates with the dialect itself, so that no rule is written twice, and one part at a time, so
/// that all problems are reported.
fn check(config: &UpstreamConfig, limits: usize, section: &Section<'_>, problems: &mut Vec<ConfigProblem>) {
    let mut named = example();
    named.name.clone_from(&config.name);
    // The header is validated even if its token is missing.
    let token = config.token.clone().unwrap_or_else(|| Secret::new("example".to_owned()));
    let token_header = config.token_header.clone();
    let credential = example().with_token(token).with_token_header(token_header);
    let stored = example().with_stored_headers(config.stored_headers.clone());
    let limits = (0..limits).map(|index| placeholder_limit(index.to_string())).collect();
    let limited = example().with_limits(limits);
    let place_of_credential = if section.has("token_header") { "token_header" } else { "token_env" };
    let parts =
        [("name", named), (place_of_credential, credential), ("stored_headers", stored), ("limit", limited)];
    for (key, part) in parts {
        if let Err(refusal) = part.validate() {
            problems.push(section.problem_at(key, refusal.message));
        }
    }
    let based = UpstreamConfig::new("example", config.base_url.as_str());
    if let Err(refusal) = HttpUpstreams::new(vec![based]) {
        problems.push(section.problem_at("base_url", refusal.message));
    }
}

/// A limit that is valid except perhaps for its name.
fn placeholder_limit(name: String) -> LimitConfig {
    LimitConfig::new(name, LimitKind::AtOnce { at_once: 1 })
}

/// The problem of a name of an upstream, or of a kind.
pub(super) fn name_problem(name: &str) -> Option<String> {
    let mut named = example();
    name.clone_into(&mut named.name);
    named.validate().err().map(|refusal| refusal.message)
}

pub(super) fn read_limit(mut section: Section<'_>, reading: &mut ParseContext<'_>) -> Option<LimitConfig> {
    let problems = &mut reading.problems;
    let most = TOKENS_MAX as f64;
    let name = section.text("name", problems);
    let capacity = section.number("capacity", 1.0..=most, problems);
    let refill = section.number("refill_per_s", 0.000_001..=most, problems);
    let at_once = section.integer("at_once", 1..=u64::from(u32::MAX), problems);
    match &name {
        Some(name) => {
            let named = example().with_limits(vec![placeholder_limit(name.value.clone())]);
            problems.extend(named.validate().err().map(|refusal| name.problem(refusal.message)));
        }
        None if section.has("name") => {}
        None => problems.push(section.problem("The key name is missing.")),
    }
    let (drip, cap) = (section.has("capacity") || section.has("refill_per_s"), section.has("at_once"));
    let whole = section.has("capacity") && section.has("refill_per_s");
    if drip == cap || drip != whole {
        problems.push(section.problem("A limit needs either capacity and refill_per_s, or at_once."));
    }
    let kind = match (capacity, refill, at_once) {
        (Some(capacity), Some(refill), None) => {
            Some(LimitKind::Drip { capacity: capacity.value, refill_per_s: refill.value })
        }
        (None, None, Some(at_once)) => {
            Some(LimitKind::AtOnce { at_once: u32::try_from(at_once).unwrap_or(u32::MAX) })
        }
        _ => None,
    };
    section.finish(problems);
    Some(LimitConfig::new(name?.value, kind?))
}
