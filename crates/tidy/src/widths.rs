//! Comments and prose wrap at 100 columns, so that they can be read side by side with code. Code is
//! rustfmt's business; tables, links and code blocks of documents may be wider.

use crate::repository::{File, Finding, assert_no_findings, files, sources};

const COLUMNS_MAX: usize = 100;

/// Whether a comment has a place to wrap at: a long link or path has none.
fn can_wrap(text: &str) -> bool {
    text.split_whitespace().count() > 2
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn in_source(file: &File) -> Vec<Finding> {
    let is_wide = |line: &str| is_comment(line) && line.chars().count() > COLUMNS_MAX && can_wrap(line);
    let wide = file.lines().filter(|(_, line)| is_wide(line));
    wide.map(|(number, _)| file.at(number, format!("a comment wider than {COLUMNS_MAX} columns"))).collect()
}

/// Paragraphs and lists only.
fn in_document(file: &File) -> Vec<Finding> {
    let mut is_code = false;
    let mut findings = Vec::new();
    for (number, line) in file.lines() {
        let text = line.trim_start();
        is_code ^= text.starts_with("```");
        let is_prose = !is_code && !text.starts_with(['|', '[', '<', '#', '!']);
        if is_prose && line.chars().count() > COLUMNS_MAX && can_wrap(line) {
            findings.push(file.at(number, format!("prose wider than {COLUMNS_MAX} columns")));
        }
    }
    findings
}

#[test]
fn comments_wrap_at_100_columns() {
    assert_no_findings(sources().iter().flat_map(in_source).collect());
}

#[test]
fn documents_wrap_at_100_columns() {
    let written = files("").into_iter().filter(|file| file.is("md"));
    assert_no_findings(written.flat_map(|file| in_document(&file)).collect());
}

#[test]
fn a_wide_comment_and_wide_prose_are_found() {
    let words = "word ".repeat(21);
    let source =
        format!("//! {words}\nlet a = \"{words}\";\n    // {words}\n// https://{}\n", "x".repeat(120));
    let found = in_source(&File::new("crates/x/src/a.rs", &source));
    assert_eq!(found.iter().map(|found| found.line).collect::<Vec<_>>(), [1, 3]);
    let document = format!("# {words}\n\n{words}\n| {words} |\n```\n{words}\n```\n- {words}\n");
    let found = in_document(&File::new("docs/a.md", &document));
    assert_eq!(found.iter().map(|found| found.line).collect::<Vec<_>>(), [3, 8]);
}
