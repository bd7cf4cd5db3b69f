//! Every error code has a page under the title that the API shows, and no page is about a code that
//! does not exist.

use std::collections::BTreeMap;

use crate::repository::{File, Finding, assert_no_findings, file, files};

const CODES: &str = "crates/core/src/error_code.rs";
const PAGES: &str = "docs/errors";

/// The codes by number, with their names and lines, as `ErrorCode::ALL` lists them.
fn codes(source: &File) -> BTreeMap<String, (String, usize)> {
    let listed = source.lines().skip_while(|(_, line)| !line.contains("const ALL: [Self;")).skip(1);
    let listed = listed.take_while(|(_, line)| line.trim() != "];");
    let names = listed.filter_map(|(number, line)| {
        Some((line.trim().strip_prefix("Self::")?.trim_end_matches(',').to_owned(), number))
    });
    names.enumerate().map(|(place, name)| (format!("TG{:04}", place + 1), name)).collect()
}

/// The title of a code, as `ErrorCode::title` has it.
fn title<'a>(source: &'a File, name: &str) -> Option<&'a str> {
    let arm = format!("Self::{name} => \"");
    source.lines().find_map(|(_, line)| line.trim().strip_prefix(arm.as_str())?.strip_suffix("\","))
}

fn check(source: &File, pages: &[File]) -> Vec<Finding> {
    let codes = codes(source);
    let path_of = |code: &str| format!("{PAGES}/{code}.md");
    let mut findings = Vec::new();
    for (code, (name, line)) in &codes {
        let Some(page) = pages.iter().find(|page| page.path == path_of(code)) else {
            findings.push(source.at(*line, format!("{code} {name} has no page {}", path_of(code))));
            continue;
        };
        let Some(title) = title(source, name) else {
            findings.push(source.at(*line, format!("{code} {name} has no title")));
            continue;
        };
        let title = format!("# {code} {title}");
        if page.text.lines().next() != Some(title.as_str()) {
            findings.push(page.at(1, format!("the first line must be {title:?}")));
        }
        for part in ["## What happened", "## What Tidegate did", "## What to do", "```json"] {
            if !page.text.contains(part) {
                findings.push(page.at(1, format!("{part:?} is missing")));
            }
        }
    }
    let known = |page: &File| codes.keys().any(|code| page.path == path_of(code));
    let strange = pages.iter().filter(|page| !known(page));
    findings.extend(strange.map(|page| page.at(1, format!("no code in {CODES} has this page"))));
    findings
}

#[test]
fn every_code_has_its_page() {
    assert_no_findings(check(&file(CODES), &files(PAGES)));
}

#[test]
fn a_missing_page_a_stray_one_and_a_wrong_title_are_found() {
    let source = File::new(
        CODES,
        "pub const ALL: [Self; 2] = [\n    Self::One,\n    Self::Two,\n];\nSelf::Three,\n\
                          Self::One => \"Number one\",\n    Self::Two => \"Number two\",\n",
    );
    let body = "## What happened\n## What Tidegate did\n## What to do\n```json\n";
    let page =
        |code: &str, title: &str| File::new(&format!("{PAGES}/{code}.md"), &format!("{title}\n{body}"));
    let good = [page("TG0001", "# TG0001 Number one"), page("TG0002", "# TG0002 Number two")];
    assert_eq!(check(&source, &good), []);
    let bad = [page("TG0001", "# TG0001 Uno"), page("TG0003", "# TG0003 Three")];
    let found: Vec<_> = check(&source, &bad).into_iter().map(|finding| finding.path).collect();
    assert_eq!(found, [format!("{PAGES}/TG0001.md"), CODES.to_owned(), format!("{PAGES}/TG0003.md")]);
}
