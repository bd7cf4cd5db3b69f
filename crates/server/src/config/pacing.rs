//! The settings of the paced proxy, `/proxy/{upstream}/…`: `[pacing]`.

use std::time::Duration;

use super::ParseContext;
use super::section::Section;

/// The settings of the paced proxy.
#[derive(Clone, Copy, Debug)]
pub struct PacingConfig {
    /// How long a client waits for its response, including the wait for its turn.
    pub wait: Duration,
    /// The maximum attempts of a call that may be sent twice; any other is sent once.
    pub max_attempts: u16,
    /// Whether links of an upstream to itself are rewritten to lead through the proxy.
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
