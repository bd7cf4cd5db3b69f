//! Phrases that prose does without: each has a plain word that engineers use for it. Comments of
//! sources, documents and the description of the API are prose; a table of requirements keeps the
//! words of its requirements, and the changelog those of its time.

use crate::repository::{File, Finding, assert_no_findings, file, files, sources};

/// Phrases, and what to write instead. Written in pieces, or the table would find itself.
const PHRASES: [(&str, &str); 15] = [
    (concat!("bad ", "day"), "name the fault"),
    (concat!("bad ", "days"), "name the faults"),
    (concat!("be", "side"), "next to, during, in addition to"),
    (concat!("called ", "off"), "canceled"),
    (concat!("goes ", "on"), "continues, resumes"),
    (concat!("hand it ", "in"), "submit it"),
    (concat!("handed ", "in"), "submitted"),
    (concat!("hands ", "in"), "submits"),
    (concat!("in one ", "go"), "at once"),
    (concat!("no", "body"), "no one, or name who"),
    (concat!("once ", "more"), "again"),
    (concat!("sign of ", "life"), "heartbeat"),
    (concat!("some", "body"), "someone, or name who"),
    (concat!("wait in ", "line"), "wait in the queue"),
    (concat!("waits in ", "line"), "waits in the queue"),
];

/// Documents that keep the words of others.
const EXEMPT: [&str; 2] = ["CHANGELOG.md", "docs/requirements.md"];
/// The description of the API, whose texts users read.
const DESCRIPTION: &str = "crates/server/src/openapi.json";

/// Whether a text has a phrase as words of its own.
fn has(text: &str, phrase: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let lower = text.to_lowercase();
    lower
        .match_indices(phrase)
        .any(|(at, found)| !lower[..at].ends_with(is_word) && !lower[at + found.len()..].starts_with(is_word))
}

/// The prose of a line: a comment of a source, or all of it.
fn prose<'a>(file: &File, line: &'a str) -> &'a str {
    if file.is("rs") { line.find("//").map_or("", |at| &line[at..]) } else { line }
}

fn check(file: &File) -> Vec<Finding> {
    let on = |(number, line)| {
        let text = prose(file, line);
        let found = PHRASES.iter().filter(move |(phrase, _)| has(text, phrase));
        found.map(move |(phrase, instead)| file.at(number, format!("{phrase:?}: write {instead}")))
    };
    file.lines().flat_map(on).collect()
}

#[test]
fn prose_is_plain() {
    let shipped = sources().into_iter().filter(|file| file.path.contains("/src/"));
    let is_read = |file: &File| file.is("md") && !EXEMPT.contains(&file.path.as_str());
    let documents = files("").into_iter().filter(is_read);
    let all = shipped.chain(documents).chain([file(DESCRIPTION)]);
    assert_no_findings(all.flat_map(|file| check(&file)).collect());
}

#[test]
fn every_phrase_of_the_table_is_found() {
    let lines = |file: &File| check(file).iter().map(|found| found.line).collect::<Vec<_>>();
    for (phrase, _) in PHRASES {
        let text = format!("/// It {phrase}.\nlet a = \"{phrase}\"; // {phrase}\nlet {phrase} = 1;\n");
        assert_eq!(lines(&File::new("crates/x/src/a.rs", &text)), [1, 2], "{phrase}");
        assert_eq!(lines(&File::new("docs/a.md", &format!("One.\n{phrase}\n"))), [2], "{phrase}");
    }
    let plain = lines(&File::new("docs/a.md", concat!("be", "sides, what goes ", "only here\n")));
    assert!(plain.is_empty(), "{plain:?}");
}
