//! How keys are scoped to callers: a choice that the operator must make, because no default is
//! right.

use axum::http::HeaderName;
use tidegate_idempotency::ScopeExtractor;

use super::ProxyOverrides;
use crate::config::problem::ConfigProblem;
use crate::config::section::Section;
use crate::config::value::LocatedValue;

const CHOOSE: &str = "Choose whose a key is. --scope-header NAME (scope_header in the file) tells callers apart by a header \
that each of them sends, such as X-Tenant: then nobody gets the answer to another one's request. --unscoped \
(unscoped = true) says that there is only one caller, or that callers may see each other's answers.";

const NO_CALLER: &str = "Idempotency-Key says nothing about who calls, so that callers with the same key would share an \
answer. Name a header that tells them apart, such as X-Tenant; or say --unscoped (unscoped = true) if that is meant.";

/// How keys are scoped to callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeChoice {
    /// By the value of this header, of which only a hash is stored.
    Header(HeaderName),
    /// All callers share their keys.
    Unscoped,
}

impl ScopeChoice {
    /// Returns the extractor of a request's scope.
    #[must_use]
    pub fn scoping(&self) -> ScopeExtractor {
        match self {
            Self::Header(name) => ScopeExtractor::header(name.clone()),
            Self::Unscoped => ScopeExtractor::unscoped(),
        }
    }
}

impl std::fmt::Display for ScopeChoice {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Header(name) => write!(out, "each value of the header {name} has keys of its own"),
            Self::Unscoped => out.write_str("none: all callers share their keys"),
        }
    }
}

pub(super) fn read(
    section: &mut Section<'_>,
    over: &ProxyOverrides,
    problems: &mut Vec<ConfigProblem>,
) -> Option<ScopeChoice> {
    let header = section.text("scope_header", problems);
    let unscoped = section.switch("unscoped", problems).unwrap_or(false);
    let said = over.scope_header.clone().map(|value| LocatedValue::from_flag("--scope-header", value));
    let (header, unscoped) = match (said, over.unscoped) {
        (None, false) => (header, unscoped),
        said => said,
    };
    match (header, unscoped) {
        (Some(found), false) => match HeaderName::from_bytes(found.value.as_bytes()) {
            Ok(name) if name == "idempotency-key" => {
                problems.push(found.problem(NO_CALLER));
                None
            }
            Ok(name) => Some(ScopeChoice::Header(name)),
            Err(_) => {
                problems.push(found.problem("It must be the name of a header, such as x-tenant."));
                None
            }
        },
        (None, true) => Some(ScopeChoice::Unscoped),
        (Some(_), true) => {
            problems.push(
                section.problem_at("unscoped", "There is a scope_header already: choose one of the two."),
            );
            None
        }
        (None, false) => {
            problems.push(section.problem(CHOOSE));
            None
        }
    }
}
