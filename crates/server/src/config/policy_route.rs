//! Settings of idempotency keys by path: `[[proxy.route]]`, `[[idempotency.route]]`. Two routes for
//! the same path, however it is spelled, are an error.

use percent_encoding::percent_decode_str;
use tidegate_idempotency::Policy;

use super::problem::ConfigProblem;
use super::section::Section;

/// The policy below a path.
#[derive(Clone, Debug)]
pub struct PolicyRoute {
    /// The path.
    pub path: String,
    /// The policy.
    pub policy: Policy,
}

impl PolicyRoute {
    /// The segments of a path as a service would read them: paths with equal segments are the same.
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

/// Reads routes; `read_policy` reads the policy of each.
pub(super) fn read(
    sections: Vec<Section<'_>>,
    problems: &mut Vec<ConfigProblem>,
    read_policy: impl Fn(&mut Section<'_>, &mut Vec<ConfigProblem>) -> Policy,
) -> Vec<PolicyRoute> {
    let mut routes: Vec<PolicyRoute> = Vec::new();
    for mut section in sections {
        let path = section.text("path", problems);
        let policy = read_policy(&mut section, problems);
        match path {
            None if !section.has("path") => problems.push(section.problem("path is missing.")),
            Some(path) if !path.value.starts_with('/') || path.value.contains(['?', '#']) => {
                problems.push(path.problem("It must be a path, such as /payments."));
            }
            Some(path) => match routes.iter().find(|route| route.is_for(&path.value)) {
                Some(first) => problems.push(path.problem(duplicate_route_message(&path.value, &first.path))),
                None => routes.push(PolicyRoute { path: path.value, policy }),
            },
            None => {}
        }
        section.finish(problems);
    }
    routes
}

fn duplicate_route_message(path: &str, first: &str) -> String {
    if path == first {
        return format!("There is a route for {first:?} already.");
    }
    format!("There is a route for the same path already, written {first:?}.")
}
