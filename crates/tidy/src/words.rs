//! Words that must not be in the tree: leftovers, disabled checks, and paths that exist on one
//! machine only. The table is written in pieces, or it would find itself.

use crate::repository::{File, Finding, assert_no_findings, files};

/// Words forbidden in sources, and what to do instead.
const IN_SOURCES: [(&str, &str); 8] = [
    (concat!("#[al", "low("), "use #[expect(…, reason = \"…\")]"),
    (concat!("#![al", "low("), "use #![expect(…, reason = \"…\")]"),
    (concat!("cfg_attr(test, al", "low("), "use #[expect(…, reason = \"…\")]"),
    (concat!("#[ig", "nore"), "a test that does not run proves nothing: make it run or take it out"),
    (concat!("to", "do!("), "finish it"),
    (concat!("unimple", "mented!("), "finish it"),
    (concat!("db", "g!("), "take it out"),
    (concat!("for seed in 0", ".."), "use tidegate_contract::rng::seeds, so that --long draws others"),
];

/// Words forbidden in every text file.
const ANYWHERE: [(&str, &str); 10] = [
    (concat!("FIX", "ME"), "fix it, or say in a sentence what is missing"),
    (concat!("TO", "DO:"), "do it, or say in a sentence what is missing"),
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("/Us", "ers/"), "a path of one machine"),
    (concat!("sha", "red/design"), "not part of this repository"),
    (concat!("sha", "red/spec"), "not part of this repository"),
    (concat!("sha", "red/research"), "not part of this repository"),
    (concat!("sha", "red/seeds"), "not part of this repository"),
];

/// Whether a line contains the word by itself: `/word/` inside a longer path does not count.
fn holds(line: &str, word: &str) -> bool {
    let inside = |before: &str| {
        let last = before.chars().next_back();
        word.starts_with('/')
            && last.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '}' | '_' | '-'))
    };
    line.match_indices(word).any(|(at, _)| !inside(&line[..at]))
}

fn check(file: &File) -> Vec<Finding> {
    let in_sources = IN_SOURCES.iter().filter(|_| file.is("rs"));
    let words: Vec<_> = in_sources.chain(&ANYWHERE).collect();
    let on = |(number, line): (usize, &str)| {
        let found = words.iter().filter(|(word, _)| holds(line, word));
        found.map(|(word, instead)| file.at(number, format!("{word:?}: {instead}"))).collect::<Vec<_>>()
    };
    file.lines().flat_map(on).collect()
}

#[test]
fn no_leftovers_and_no_paths_of_one_machine() {
    let text = |file: &File| !file.path.ends_with("Cargo.lock") && !file.path.starts_with("LICENSE");
    assert_no_findings(files("").iter().filter(|file| text(file)).flat_map(check).collect());
}

#[test]
fn every_word_of_the_table_is_found() {
    for (word, _) in IN_SOURCES.iter().chain(&ANYWHERE) {
        let found = check(&File::new("crates/x/src/a.rs", &format!("//! Head.\n    {word}x)\n")));
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [2], "{word}");
    }
    let elsewhere = concat!("GET /admin/ro", "ot/x and net/wo", "rk/y");
    assert_eq!(check(&File::new("a.md", elsewhere)), []);
}
