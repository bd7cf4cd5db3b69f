//! docs/requirements.md lists every requirement once, with the tests that prove it or the word
//! `later`. A test that is named there exists and names the requirement too. What no test shows has
//! a reason.

use std::collections::{BTreeMap, BTreeSet};

use crate::architecture::cells;
use crate::proofs::{REQUIREMENTS, RequirementId, collect_tests, ids};
use crate::repository::{File, Finding, assert_no_findings, file, sources};

type TestIndex = BTreeMap<String, BTreeSet<RequirementId>>;

/// The rows of the page: line, id, proof.
fn rows(page: &File) -> Vec<(usize, RequirementId, &str)> {
    let row = |(line, text)| {
        let cells = cells(text)?;
        let id = ids(cells.first()?).into_iter().next()?;
        Some((line, id, *cells.last()?))
    };
    page.lines().filter_map(row).collect()
}

/// What a proof says before what no test shows.
const NOT_SHOWN: &str = "not shown";

/// What is not shown, and not said why: each has a `because` of its own, up to the next semicolon.
fn without_reason(proof: &str) -> Vec<&str> {
    let claims = proof.split(NOT_SHOWN).skip(1).flat_map(|rest| rest.split("; "));
    let is_bare = |claim: &&str| match claim.split_once("because ") {
        Some((what, reason)) => !what.contains(", ") || reason.len() < 10,
        None => true,
    };
    claims.filter(is_bare).collect()
}

/// The problems of one proof.
fn problems(id: RequirementId, proof: &str, tests: &TestIndex) -> Vec<String> {
    // Every second piece between backticks is a test's name.
    let named: Vec<_> = proof.split('`').skip(1).step_by(2).collect();
    if named.is_empty() && proof != "later" {
        let known: Vec<_> =
            tests.iter().filter(|(_, ids)| ids.contains(&id)).map(|(test, _)| test.as_str()).collect();
        let known = if known.is_empty() { "none does yet".into() } else { known.join(", ") };
        return vec![format!("{id} has no proof and is not `later`; tests that name it: {known}")];
    }
    let wrong = |test: &&str| match tests.get(*test) {
        None => Some(format!("{id}: there is no test {test}")),
        Some(ids) if !ids.contains(&id) => Some(format!("{id}: {test} does not name it")),
        Some(_) => None,
    };
    let bare = without_reason(proof);
    let bare = bare.iter().map(|claim| format!("{id}: say why it is not shown (`because …`): {claim}"));
    named.iter().filter_map(wrong).chain(bare).collect()
}

fn check(page: &File, tests: &TestIndex) -> Vec<Finding> {
    let rows = rows(page);
    let mut findings = Vec::new();
    for (prefix, count) in REQUIREMENTS {
        for number in 1..=count {
            let found = rows.iter().filter(|(_, id, _)| *id == RequirementId(prefix, number)).count();
            if found != 1 {
                findings.push(page.at(1, format!("{prefix}-{number} has {found} rows; it must have one")));
            }
        }
    }
    for (line, id, proof) in &rows {
        findings.extend(problems(*id, proof, tests).into_iter().map(|problem| page.at(*line, problem)));
    }
    findings
}

/// Ids that no requirement has.
fn unknown_ids(source: &File) -> Vec<Finding> {
    let known = |id: &RequirementId| {
        REQUIREMENTS.iter().any(|(prefix, count)| *prefix == id.0 && (1..=*count).contains(&id.1))
    };
    let on = |(number, line)| {
        let strange = ids(line).into_iter().filter(|id| !known(id));
        strange.map(|id| source.at(number, format!("there is no requirement {id}"))).collect::<Vec<_>>()
    };
    source.lines().flat_map(on).collect()
}

#[test]
fn every_requirement_has_its_proof() {
    assert_no_findings(check(&file("docs/requirements.md"), &collect_tests(&sources())));
}

#[test]
fn no_test_names_a_requirement_that_is_not_there() {
    // This crate's own samples are wrong on purpose.
    let own = |file: &&File| file.path.starts_with("crates/tidy/");
    assert_no_findings(sources().iter().filter(|file| !own(file)).flat_map(unknown_ids).collect());
}

#[test]
fn a_proof_that_is_missing_wrong_or_about_something_else_is_found() {
    let tests = TestIndex::from([("a.rs::t".into(), BTreeSet::from([RequirementId("OPS", 1)]))]);
    let of = |number, proof: &str| problems(RequirementId("OPS", number), proof, &tests).len();
    assert_eq!((of(1, "`a.rs::t`"), of(1, "later"), of(1, "later; begun in `a.rs::t`")), (0, 0, 0));
    let not_shown = |what| of(1, &format!("`a.rs::t`; *not shown yet:* {what}"));
    assert_eq!(
        (not_shown("x, because only y can show it"), not_shown("x"), not_shown("x, because")),
        (0, 1, 1)
    );
    assert_eq!((not_shown("x, because only y can show it; z"), not_shown("because only y can")), (1, 1));
    assert_eq!((of(1, ""), of(1, "soon"), of(1, "`a.rs::gone`"), of(2, "`a.rs::t`")), (1, 1, 1, 1));
    let page = File::new("p.md", "| OPS-1 | x | later |\n| OPS-1 | x | later |\n");
    let all: u16 = REQUIREMENTS.iter().map(|(_, count)| count).sum();
    assert_eq!(check(&page, &tests).len(), usize::from(all), "one is there twice, the others not at all");
    assert_eq!(unknown_ids(&File::new("a.rs", "fine OPS-27\nnot OPS-28\n")).len(), 1);
}
