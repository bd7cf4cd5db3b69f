//! The settings that a route may override. The others are those of the whole proxy.

use std::time::Duration;

use axum::http::Method;
use tidegate_idempotency::{InFlightPolicy, Policy};

use crate::config::key_policy::{self, replace_if_set};
use crate::config::problem::ConfigProblem;
use crate::config::section::Section;

/// The methods that may have a key: those that change something.
const METHODS: [Method; 4] = [Method::POST, Method::PUT, Method::PATCH, Method::DELETE];

/// The choices so far. The wait of a repeat is known even if repeats do not wait by default, for
/// routes where they do.
#[derive(Clone)]
pub(super) struct PolicyChoices {
    pub policy: Policy,
    wait: Duration,
}

impl Default for PolicyChoices {
    fn default() -> Self {
        Self { policy: Policy::default(), wait: Duration::from_secs(10) }
    }
}

pub(super) fn read(
    section: &mut Section<'_>,
    usual: &PolicyChoices,
    problems: &mut Vec<ConfigProblem>,
) -> PolicyChoices {
    let PolicyChoices { mut policy, mut wait } = usual.clone();
    replace_if_set(&mut policy.ttl, section.duration("ttl", problems));
    replace_if_set(&mut policy.lease, section.duration("lease", problems));
    replace_if_set(&mut policy.run_max, section.duration("run_max", problems));
    replace_if_set(&mut policy.store_patience, section.duration("store_patience", problems));
    replace_if_set(&mut policy.methods, read_methods(section, problems));
    replace_if_set(&mut policy.required, section.switch("required", problems));
    replace_if_set(&mut wait, section.duration("wait", problems));
    let waits = section.choice("in_flight", &[("reject", false), ("wait", true)], problems);
    let waits = waits.unwrap_or(policy.in_flight != InFlightPolicy::Reject);
    policy.in_flight = if waits { InFlightPolicy::Wait(wait) } else { InFlightPolicy::Reject };
    key_policy::read(section, &mut policy, problems);
    replace_if_set(&mut policy.request_max, section.size("request_max", problems));
    replace_if_set(&mut policy.body_rate_min, section.size("body_rate_min", problems));
    PolicyChoices { policy, wait }
}

/// Reports figures that are out of bounds, with their location. A key must be held for as long as a
/// response may take, or a repeat would be sent while the first request is in flight.
pub(super) fn check(
    section: &Section<'_>,
    policy: &Policy,
    answer_max: Option<Duration>,
    problems: &mut Vec<ConfigProblem>,
) {
    if let Err(wrong) = policy.check() {
        problems.push(section.problem_at(wrong.what, format!("It cannot be used: {wrong}.")));
    }
    if let Some(answer_max) = answer_max.filter(|answer_max| policy.run_max < *answer_max) {
        let message = format!(
            "run_max is {:?}; it must be at least connect_timeout and answer_timeout together, which are {answer_max:?}.",
            policy.run_max
        );
        problems.push(section.problem_at("run_max", message));
    }
}

fn read_methods(section: &mut Section<'_>, problems: &mut Vec<ConfigProblem>) -> Option<Vec<Method>> {
    let found = section.texts("methods", problems)?;
    let known = |text: &String| METHODS.into_iter().find(|method| method.as_str() == text);
    let methods: Option<Vec<Method>> = found.value.iter().map(known).collect();
    if methods.as_ref().is_none_or(Vec::is_empty) {
        problems
            .push(found.problem("It must be a list of some of \"POST\", \"PUT\", \"PATCH\" and \"DELETE\"."));
        return None;
    }
    methods
}
