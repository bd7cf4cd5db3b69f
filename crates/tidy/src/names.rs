//! A file is named after its one purpose. Names that could contain anything are refused.

use crate::repository::{File, Finding, assert_no_findings, sources};

const REFUSED: [&str; 7] = ["mod", "utils", "util", "helpers", "helper", "common", "imp"];

fn check(file: &File) -> Option<Finding> {
    let stem = |part: &str| part.strip_suffix(".rs").unwrap_or(part).to_owned();
    let refused = file.path.split('/').map(stem).find(|part| REFUSED.contains(&part.as_str()))?;
    Some(file.at(1, format!("{refused:?} says nothing about what is in it; modules are foo.rs and foo/")))
}

#[test]
fn files_are_named_after_what_they_are() {
    assert_no_findings(sources().iter().filter_map(check).collect());
}

#[test]
fn a_drawer_for_everything_is_found() {
    for bad in ["crates/x/src/utils.rs", "crates/x/src/a/mod.rs", "crates/x/tests/common/a.rs"] {
        assert!(check(&File::new(bad, "")).is_some(), "{bad}");
    }
    assert!(check(&File::new("crates/x/src/model.rs", "")).is_none());
}
