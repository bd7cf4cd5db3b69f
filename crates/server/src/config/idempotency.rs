//! What an `Idempotency-Key` on the server's own POST routes means: `[idempotency]`. Only what makes sense there is asked
//! for; who calls is known, and how large a request may be is each route's own business.

use std::time::Duration;

use tidegate_idempotency::{InFlight, OnUnknown, Policy};

use super::Reading;
use super::sealing::{self, Sealing};
use super::section::Section;
use crate::edge::content::BATCH_MAX;

const DAY_S: u64 = 24 * 3_600;

/// How the keys of the server's own routes are kept.
#[derive(Clone, Debug)]
pub struct IdempotencyConfig {
    /// How long, and what happens when.
    pub policy: Policy,
    /// The keys that answers are sealed with.
    pub sealing: Option<Sealing>,
}

#[derive(Clone, Copy)]
enum Then {
    Reject,
    Wait,
}

const IN_FLIGHT: [(&str, Then); 2] = [("reject", Then::Reject), ("wait", Then::Wait)];
const ON_UNKNOWN: [(&str, OnUnknown); 2] = [("release", OnUnknown::Release), ("hold", OnUnknown::Hold)];

pub(super) fn read(root: &mut Section<'_>, reading: &mut Reading<'_>) -> Option<IdempotencyConfig> {
    let problems = &mut reading.problems;
    let mut section = root.section("idempotency", problems);
    let ttl = section.integer("ttl_s", 1..=90 * DAY_S, problems);
    let lease = section.integer("lease_s", 1..=3_600, problems);
    let in_flight = section.word("in_flight", &IN_FLIGHT, problems);
    let wait = section.integer("wait_ms", 1..=600_000, problems);
    let on_unknown = section.word("on_unknown", &ON_UNKNOWN, problems);
    let keep_client_errors = section.flag("keep_client_errors", problems);
    let variable = section.text("seal_key_env", problems);
    section.finish(problems);
    let sealing = sealing::read(variable, reading);
    let policy = Policy {
        ttl: Duration::from_secs(ttl?),
        lease: Duration::from_secs(lease?),
        in_flight: match in_flight? {
            Then::Reject => InFlight::Reject,
            Then::Wait => InFlight::Wait(Duration::from_millis(wait?)),
        },
        on_unknown: on_unknown?,
        keep_client_errors: keep_client_errors?,
        request_max: BATCH_MAX,
        ..Policy::default()
    };
    Some(IdempotencyConfig { policy, sealing })
}
