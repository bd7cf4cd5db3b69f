//! The kinds that remote workers execute: `[[kind]]` and `[[kind.limit]]`.

use tidegate_core::bounds::CHARGES_MAX;
use tidegate_discord::deploy::executor::KINDS as DISCORD_KINDS;
use tidegate_dispatch::KIND as GENERATION;
use tidegate_dispatch::notify::KIND as NOTIFICATION;
use tidegate_shopify::executor::KIND as BULK;
use tidegate_upstream::RemoteKindConfig;

use super::ParseContext;
use super::read::reject_duplicates;
use super::section::Section;
use super::upstream;
use crate::executors::HTTP;

/// Whether this server has an executor for a kind, which then checks its operations.
pub(crate) fn is_built_in(kind: &str) -> bool {
    [HTTP, BULK, GENERATION, NOTIFICATION].contains(&kind) || DISCORD_KINDS.contains(&kind)
}

/// Whether one of the sections leaves generations to remote workers.
pub(super) fn leaves_generations(kinds: &[Section<'_>]) -> bool {
    kinds.iter().any(|section| section.peek("name") == Some(GENERATION))
}

pub(super) fn read(mut section: Section<'_>, reading: &mut ParseContext<'_>) -> Option<RemoteKindConfig> {
    let problems = &mut reading.problems;
    let name = section.text("name", problems);
    let worker = section.text("worker", problems);
    let repeatable = section.flag("repeatable", problems);
    let limits = section.sections("limit", problems);
    reject_duplicates(&limits, problems);
    let limits: Vec<_> = limits.into_iter().map(|limit| upstream::read_limit(limit, reading)).collect();
    let problems = &mut reading.problems;
    for (key, missing) in [("name", name.is_none()), ("worker", worker.is_none())] {
        if missing && !section.has(key) {
            problems.push(section.problem(format!("The key {key} is missing.")));
        }
    }
    if let Some(word) = worker.filter(|word| word.value != "remote") {
        problems.push(word.problem("It must be \"remote\"."));
    }
    if let Some(name) = &name {
        if let Some(message) = upstream::name_problem(&name.value) {
            problems.push(name.problem(message));
        }
        if is_built_in(&name.value) && (section.has("limit") || section.has("repeatable")) {
            let message = "This kind is built in: its upstreams have limits, and each request says whether it may run again.";
            problems.push(name.problem(message));
        }
    }
    // The gate is one of the charges.
    if limits.len() >= CHARGES_MAX {
        problems.push(section.problem_at("limit", format!("A kind has at most {} limits.", CHARGES_MAX - 1)));
    }
    section.finish(problems);
    let config = RemoteKindConfig::new(name?.value).with_repeatable(repeatable.unwrap_or(true));
    Some(config.with_limits(limits.into_iter().collect::<Option<_>>()?))
}
