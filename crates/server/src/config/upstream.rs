//! The APIs that are called: `[[upstream]]` and its `[[upstream.limit]]`.

use std::time::Duration;

use tidegate_core::bounds::{RESULT_LEN_MAX, TOKENS_MAX};
use tidegate_upstream::http::{LimitConfig, LimitKind, TokenHeader};
use tidegate_upstream::{HttpUpstreams, Secret, http::UpstreamConfig};

use super::Reading;
use super::section::Section;

/// Longest time-out, in milliseconds: an hour.
const TIMEOUT_MAX_MS: u64 = 3_600_000;

pub(super) fn read(mut section: Section<'_>, reading: &mut Reading<'_>) -> Option<UpstreamConfig> {
    let problems = &mut reading.problems;
    let name = section.text("name", problems);
    let dialect = section.text("dialect", problems);
    let base_url = section.text("base_url", problems);
    let variable = section.text("token_env", problems);
    let header = section.text("token_header", problems);
    let timeout = section.integer("timeout_ms", 1..=TIMEOUT_MAX_MS, problems);
    let connect = section.integer("connect_timeout_ms", 1..=TIMEOUT_MAX_MS, problems);
    let most = section.integer("response_max_bytes", 1..=RESULT_LEN_MAX as u64, problems);
    let limits: Vec<_> =
        section.sections("limit", problems).into_iter().map(|limit| read_limit(limit, reading)).collect();
    for (key, missing) in [("name", name.is_none()), ("base_url", base_url.is_none())] {
        if missing && !section.has(key) {
            reading.problems.push(section.problem(format!("The key {key} is missing.")));
        }
    }
    if let Some(dialect) = dialect.filter(|dialect| dialect.value != "http") {
        let message = match dialect.value.as_str() {
            "discord" | "shopify" => {
                format!("The dialect {:?} is not in this version; there is \"http\".", dialect.value)
            }
            _ => format!("There is no dialect {:?}; there is \"http\".", dialect.value),
        };
        reading.problems.push(dialect.problem(message));
    }
    let config = (|| {
        let mut config = UpstreamConfig::new(name?.value, base_url?.value);
        config.token = variable.and_then(|variable| reading.secret(&variable)).map(Secret::new);
        config.token_header =
            header.map_or_else(TokenHeader::default, |text| TokenHeader::parse(&text.value));
        config.timeout = timeout.map_or(config.timeout, Duration::from_millis);
        config.connect_timeout = connect.map_or(config.connect_timeout, Duration::from_millis);
        config.response_max_bytes =
            most.and_then(|most| usize::try_from(most).ok()).unwrap_or(config.response_max_bytes);
        config.limits = limits.into_iter().collect::<Option<_>>()?;
        Some(config)
    })();
    if let Some(config) = &config {
        check(config, &section, reading);
    }
    section.finish(&mut reading.problems);
    config
}

/// Asks the dialect itself, so that no rule stands in two places.
fn check(config: &UpstreamConfig, section: &Section<'_>, reading: &mut Reading<'_>) {
    if let Err(refusal) = HttpUpstreams::new(vec![config.clone()]) {
        let field = refusal.field.strip_prefix(&format!("upstream.{}.", config.name)).unwrap_or_default();
        let key = field.split('.').next().unwrap_or_default();
        reading.problems.push(section.problem_at(key, refusal.message));
    }
}

fn read_limit(mut section: Section<'_>, reading: &mut Reading<'_>) -> Option<LimitConfig> {
    let problems = &mut reading.problems;
    let most = TOKENS_MAX as f64;
    let name = section.text("name", problems);
    let capacity = section.number("capacity", 1.0..=most, problems);
    let refill = section.number("refill_per_s", 0.000_001..=most, problems);
    let at_once = section.integer("at_once", 1..=u64::from(u32::MAX), problems);
    if name.is_none() && !section.has("name") {
        problems.push(section.problem("The key name is missing."));
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
    Some(LimitConfig { name: name?.value, kind: kind? })
}
