//! The settings of `Idempotency-Key` on the server's own POST routes: `[idempotency]`. It only has
//! the keys that make sense there: callers are authenticated already, and each route has its own
//! maximum size of a request.

use std::time::Duration;

use tidegate_idempotency::{InFlightPolicy, Policy};

use super::ParseContext;
use super::key_policy::{self, replace_if_set};
use super::policy_route::{self, PolicyRoute};
use super::problem::ConfigProblem;
use super::seal_keys::{self, SealKeys};
use super::section::Section;
use crate::edge::content::BodyBound;

const DAY_S: u64 = 24 * 3_600;

/// The settings of the idempotency keys of the server's own routes.
#[derive(Clone, Debug)]
pub struct IdempotencyConfig {
    /// The default policy.
    pub policy: Policy,
    /// The policies of routes.
    pub routes: Vec<PolicyRoute>,
    /// The keys that seal stored responses.
    pub sealing: Option<SealKeys>,
}

#[derive(Clone, Copy)]
enum InFlightChoice {
    Reject,
    Wait,
}

const IN_FLIGHT: [(&str, InFlightChoice); 2] =
    [("reject", InFlightChoice::Reject), ("wait", InFlightChoice::Wait)];
pub(super) fn read(root: &mut Section<'_>, reading: &mut ParseContext<'_>) -> Option<IdempotencyConfig> {
    let problems = &mut reading.problems;
    let mut section = root.section("idempotency", problems);
    let usual = PolicyChoices {
        policy: Policy::default().with_request_max(BodyBound::Batch.len_max()),
        wait: Duration::from_secs(5),
    };
    let usual = read_choices(&mut section, &usual, problems);
    let variable = section.text("seal_key_env", problems);
    let routes = section.sections("route", problems);
    section.finish(problems);
    let routes = policy_route::read(routes, problems, |section, problems| {
        read_choices(section, &usual, problems).policy
    });
    let sealing = seal_keys::read(variable, reading);
    Some(IdempotencyConfig { policy: usual.policy, routes, sealing })
}

/// The choices so far. The wait of a repeat is known even if repeats do not wait by default, for
/// routes where they do.
struct PolicyChoices {
    policy: Policy,
    wait: Duration,
}

fn read_choices(
    section: &mut Section<'_>,
    usual: &PolicyChoices,
    problems: &mut Vec<ConfigProblem>,
) -> PolicyChoices {
    let (mut policy, mut wait) = (usual.policy.clone(), usual.wait);
    let ttl = section.integer("ttl_s", 1..=90 * DAY_S, problems);
    replace_if_set(&mut policy.ttl, ttl.map(Duration::from_secs));
    let lease = section.integer("lease_s", 1..=3_600, problems);
    replace_if_set(&mut policy.lease, lease.map(Duration::from_secs));
    replace_if_set(&mut wait, section.integer("wait_ms", 1..=600_000, problems).map(Duration::from_millis));
    let then = section.word("in_flight", &IN_FLIGHT, problems);
    policy.in_flight = match (then, usual.policy.in_flight) {
        (Some(InFlightChoice::Reject), _) | (None, InFlightPolicy::Reject) => InFlightPolicy::Reject,
        (Some(InFlightChoice::Wait), _) | (None, InFlightPolicy::Wait(_)) => InFlightPolicy::Wait(wait),
    };
    key_policy::read(section, &mut policy, problems);
    if let Err(wrong) = policy.check() {
        problems.push(section.problem_at(wrong.what, format!("It cannot be used: {wrong}.")));
    }
    PolicyChoices { policy, wait }
}
