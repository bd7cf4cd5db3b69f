//! How a call through `/proxy/{upstream}/…` waits for its turn and its answer: `[pacing]`.

use std::time::Duration;

use super::ParseContext;
use super::section::Section;

/// How long, and how often.
#[derive(Clone, Copy, Debug)]
pub struct PacingConfig {
    /// How long an answer is waited for, the turn included.
    pub wait: Duration,
    /// Attempts at a call that may be sent twice; any other is made once.
    pub max_attempts: u16,
    /// Whether links of an upstream to itself lead through the proxy.
    pub rewrite_links: bool,
}

pub(super) fn read(root: &mut Section<'_>, reading: &mut ParseContext<'_>) -> Option<PacingConfig> {
    let problems = &mut reading.problems;
    let mut section = root.section("pacing", problems);
    let wait = section.integer("wait_s", 1..=3_600, problems);
    let max_attempts = section.integer("max_attempts", 1..=100, problems);
    let rewrite_links = section.flag("rewrite_links", problems);
    section.finish(problems);
    Some(PacingConfig {
        wait: Duration::from_secs(wait?),
        max_attempts: u16::try_from(max_attempts?).ok()?,
        rewrite_links: rewrite_links?,
    })
}
