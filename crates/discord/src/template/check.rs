//! Whether the parts of a template fit together and within what Discord allows. Nothing here knows of a file: a
//! template that was made in code is held to the same.

mod access;
mod bounds;
mod references;

use super::{Template, TemplatePath};

/// What is wrong, and where.
pub(super) type Findings = Vec<(TemplatePath, String)>;

/// Everything that is wrong.
pub(super) fn check_template(template: &Template) -> Findings {
    let mut findings = Vec::new();
    references::check(template, &mut findings);
    access::check(template, &mut findings);
    bounds::check(template, &mut findings);
    findings
}
