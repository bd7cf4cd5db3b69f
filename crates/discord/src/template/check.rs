//! Checks that the parts of a template fit together and within Discord's bounds. Nothing here knows
//! of a file: a template that was built in code has to pass the same checks.

mod access;
mod bounds;
mod clean_names;
mod references;

use super::{Template, TemplatePath};

/// Problems with their paths.
pub(super) type Findings = Vec<(TemplatePath, String)>;

/// Returns all problems of a template.
pub(super) fn check_template(template: &Template) -> Findings {
    let mut findings = Vec::new();
    references::check(template, &mut findings);
    access::check(template, &mut findings);
    bounds::check(template, &mut findings);
    clean_names::check(template, &mut findings);
    findings
}
