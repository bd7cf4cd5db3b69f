//! Every crate has a row in ARCHITECTURE.md that says what it knows and what it never knows, with
//! its layer.

use std::collections::BTreeMap;

use crate::floors::floor_of;
use crate::manifest::manifests;
use crate::repository::{File, Finding, assert_no_findings, file};

/// The cells of a row of a table.
pub(crate) fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

fn check<'a>(page: &File, folders: impl Iterator<Item = &'a str>) -> Vec<Finding> {
    let mut rows = BTreeMap::new();
    for (line, text) in page.lines() {
        if let Some([floor, name, knows, never]) = cells(text).as_deref()
            && let Some(folder) = name.strip_prefix('`').and_then(|name| name.split('`').next())
        {
            rows.insert(folder, (line, *floor, *knows, *never));
        }
    }
    let mut findings = Vec::new();
    for folder in folders {
        let Some((line, floor, knows, never)) = rows.get(folder) else {
            let rule = format!("{folder} has no row: | floor | `{folder}` | knows | never knows |");
            findings.push(page.at(1, rule));
            continue;
        };
        if floor_of(folder).is_none_or(|known| known.to_string() != *floor) {
            findings.push(page.at(*line, format!("{folder} is not on floor {floor}")));
        }
        if knows.is_empty() || never.is_empty() {
            let rule = format!("{folder} must say what it knows and what it never knows");
            findings.push(page.at(*line, rule));
        }
    }
    findings
}

#[test]
fn every_crate_says_what_it_never_knows() {
    let crates = manifests();
    assert_no_findings(check(&file("ARCHITECTURE.md"), crates.keys().map(String::as_str)));
}

#[test]
fn a_missing_row_a_wrong_floor_and_an_empty_cell_are_found() {
    let page =
        File::new("A.md", "| 0 | `core` | all | |\n| 3 | `store` | a | b |\n| 1 | `upstream` | a | b |\n");
    let found = check(&page, ["core", "store", "upstream", "engine"].into_iter());
    let lines: Vec<_> = found.iter().map(|finding| finding.line).collect();
    assert_eq!(lines, [1, 2, 1]);
}
