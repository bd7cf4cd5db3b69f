//! Every file starts with a module comment and is short enough to be read at once. The length of
//! functions is left to clippy.

use crate::repository::{File, Finding, assert_no_findings, sources};

/// The maximum number of lines of a file, of any kind.
const LINES_MAX: usize = 500;
/// The maximum number of lines of code: without blank lines, comments and tests.
const CODE_LINES_MAX: usize = 400;

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

fn code_lines(file: &File) -> usize {
    if is_test(&file.path) {
        return 0;
    }
    let mut count = 0;
    let mut lines = file.text.lines().peekable();
    while let Some(line) = lines.next() {
        let opens_tests = lines.peek().is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if line == "#[cfg(test)]" && opens_tests {
            // Up to the brace in the first column that closes the module.
            lines.by_ref().find(|line| *line == "}");
            continue;
        }
        let line = line.trim();
        count += usize::from(!line.is_empty() && !line.starts_with("//"));
    }
    count
}

fn check(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") {
        findings.push(file.at(1, "a file opens with `//!`: what it is, and what it refuses to be"));
    }
    let (all, code) = (file.text.lines().count(), code_lines(file));
    if all > LINES_MAX {
        findings.push(file.at(LINES_MAX + 1, format!("{all} lines; the most is {LINES_MAX}: split it")));
    }
    if code > CODE_LINES_MAX {
        findings.push(file.at(1, format!("{code} lines of code; the most is {CODE_LINES_MAX}: split it")));
    }
    findings
}

#[test]
fn every_file_has_a_head_and_is_one_thing() {
    assert_no_findings(sources().iter().flat_map(check).collect());
}

#[test]
fn tests_blank_lines_and_comments_are_no_code() {
    let text = "//! Head.\n\nfn a() {}\n// why\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n#[cfg(test)]\nmod d;\n";
    assert_eq!(code_lines(&File::new("crates/x/src/a.rs", text)), 4);
    assert_eq!(code_lines(&File::new("crates/x/tests/a.rs", text)), 0);
}

#[test]
fn a_file_without_a_head_and_one_that_is_too_long_are_found() {
    let at = |lines: usize| File::new("crates/x/src/a.rs", &"fn a() {}\n".repeat(lines));
    assert_eq!(check(&at(CODE_LINES_MAX)).len(), 1);
    assert_eq!(check(&at(CODE_LINES_MAX + 1)).len(), 2);
    assert_eq!(check(&at(LINES_MAX + 1)).len(), 3);
}
