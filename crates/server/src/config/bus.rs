//! The bus on which questions about entities are asked: `[bus]`.

use super::ParseContext;
use super::section::Section;
use crate::bus::BusScheme;

/// Reads the URL of the bus.
pub(super) fn read(root: &mut Section<'_>, reading: &mut ParseContext<'_>) -> Option<String> {
    let problems = &mut reading.problems;
    let mut section = root.section("bus", problems);
    let url = section.text("url", problems);
    section.finish(problems);
    let url = url?;
    if BusScheme::of(&url.value).is_none() {
        // The URL may hold a password.
        problems.push(url.problem("It must be in-process, redis://… or nats://…."));
        return None;
    }
    Some(url.value)
}
