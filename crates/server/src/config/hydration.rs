//! The settings of hydration over HTTP, `/v1/entities/…`: `[hydration]`.

use std::time::Duration;

use tidegate_hydration::FlightRules;

use super::ParseContext;
use super::section::Section;

const HOUR_MS: u64 = 3_600_000;

/// The settings of hydration.
#[derive(Clone, Debug)]
pub struct HydrationConfig {
    /// Times and bounds.
    pub rules: FlightRules,
    /// Most copies that are kept in memory.
    pub copies_max: usize,
}

pub(super) fn read(root: &mut Section<'_>, reading: &mut ParseContext<'_>) -> Option<HydrationConfig> {
    let problems = &mut reading.problems;
    let mut section = root.section("hydration", problems);
    let wait_timeout = section.integer("wait_timeout_ms", 1..=60_000, problems);
    let negative_ttl = section.integer("negative_cache_ttl_ms", 1..=24 * HOUR_MS, problems);
    let in_flight_window = section.integer("in_flight_window_ms", 1..=HOUR_MS, problems);
    let max_retries = section.integer("max_retries", 0..=10, problems);
    let retry_backoff = section.integer("retry_backoff_ms", 1..=60_000, problems);
    let questions_per_s = section.integer("questions_per_s", 1..=1_000_000, problems);
    let copies_max = section.integer("copies_max", 1..=10_000_000, problems);
    section.finish(problems);
    let rules = FlightRules {
        wait_timeout: Duration::from_millis(wait_timeout?),
        negative_ttl: Duration::from_millis(negative_ttl?),
        in_flight_window: Duration::from_millis(in_flight_window?),
        max_retries: u8::try_from(max_retries?).ok()?,
        retry_backoff: Duration::from_millis(retry_backoff?),
        questions_per_s: u32::try_from(questions_per_s?).ok()?,
        ..FlightRules::default()
    };
    Some(HydrationConfig { rules, copies_max: usize::try_from(copies_max?).ok()? })
}
