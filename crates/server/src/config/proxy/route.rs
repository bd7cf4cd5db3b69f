//! Other choices below some paths: `[[proxy.route]]`. Two of them for one path, however it is spelled, are a mistake.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use tidegate_idempotency::Policy;

use super::policy::{self, Choices};
use crate::config::problem::Problem;
use crate::config::section::Section;

/// Other choices below a path.
#[derive(Clone, Debug)]
pub struct ProxyRoute {
    /// The path.
    pub path: String,
    /// The choices.
    pub policy: Policy,
}

impl ProxyRoute {
    /// The segments of a path as a service would read them: two paths with the same ones are one.
    pub(crate) fn segments(path: &str) -> Vec<Vec<u8>> {
        let decoded: Vec<u8> = percent_decode_str(path).collect();
        let mut segments: Vec<Vec<u8>> = Vec::new();
        for segment in decoded.split(|byte| *byte == b'/') {
            match segment {
                b"" | b"." => {}
                b".." => drop(segments.pop()),
                _ => segments.push(segment.to_vec()),
            }
        }
        segments
    }

    fn is_for(&self, path: &str) -> bool {
        Self::segments(&self.path) == Self::segments(path)
    }
}

pub(super) fn read(
    sections: Vec<Section<'_>>,
    usual: &Choices,
    answer_max: Option<Duration>,
    problems: &mut Vec<Problem>,
) -> Vec<ProxyRoute> {
    let mut routes: Vec<ProxyRoute> = Vec::new();
    for mut section in sections {
        let path = section.text("path", problems);
        let policy = policy::read(&mut section, usual, problems).policy;
        policy::check(&section, &policy, answer_max, problems);
        match path {
            None if !section.has("path") => problems.push(section.problem("path is missing.")),
            Some(path) if !path.value.starts_with('/') || path.value.contains(['?', '#']) => {
                problems.push(path.problem("It must be a path, as in /payments."));
            }
            Some(path) => match routes.iter().find(|route| route.is_for(&path.value)) {
                Some(first) => problems.push(path.problem(told_twice(&path.value, &first.path))),
                None => routes.push(ProxyRoute { path: path.value, policy }),
            },
            None => {}
        }
        section.finish(problems);
    }
    routes
}

fn told_twice(path: &str, first: &str) -> String {
    if path == first {
        return format!("There is a route for {first:?} already.");
    }
    format!("There is a route for the same path already, written {first:?}.")
}
