//! The rules for failures of operations that do not say what follows: `[[on_failure]]`, by group,
//! by kind, or by both.

use std::sync::Arc;

use tidegate_core::OnFailure;
use tidegate_core::bounds::{GROUP_LEN_MAX, KIND_LEN_MAX};
use tidegate_core::operation::FailureRule;

use super::problem::ConfigProblem;
use super::section::Section;
use super::value::LocatedValue;

const THEN: [(&str, OnFailure); 2] = [("skip", OnFailure::Skip), ("hold", OnFailure::Hold)];

pub(super) fn read(mut section: Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<FailureRule> {
    let group = section.text("group", problems);
    let kind = section.text("kind", problems);
    let on_failure = section.choice("then", &THEN, problems);
    if on_failure.is_none() && !section.has("then") {
        problems.push(section.problem("The key then is missing."));
    }
    if !section.has("group") && !section.has("kind") {
        problems.push(section.problem("A rule needs a group, a kind, or both."));
    }
    let group = check_len(group, GROUP_LEN_MAX + 1, problems);
    if let Some(pattern) = &group
        && pattern.value.trim_end_matches('*').len() + 1 < pattern.value.len()
    {
        problems.push(pattern.problem("One * at its end stands for all groups that begin so."));
    }
    let kind = check_len(kind, KIND_LEN_MAX, problems);
    section.finish(problems);
    let name = |found: Option<LocatedValue<String>>| found.map(|found| Arc::from(found.value));
    Some(FailureRule { group: name(group), kind: name(kind), on_failure: on_failure? })
}

fn check_len(
    found: Option<LocatedValue<String>>,
    most: usize,
    problems: &mut Vec<ConfigProblem>,
) -> Option<LocatedValue<String>> {
    let found = found?;
    if found.value.is_empty() || found.value.len() > most {
        problems.push(found.problem(format!("It must be 1 to {most} bytes long.")));
    }
    Some(found)
}
