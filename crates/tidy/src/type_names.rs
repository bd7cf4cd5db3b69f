//! The names of types. A type is a noun that engineers already use, and a public one means the same
//! in every crate. Whether a noun is the right one is a matter for a reader; what can be checked is
//! a list of names that say nothing, and names that are public twice.

use std::collections::BTreeMap;

use crate::repository::{File, Finding, assert_no_findings, sources};

/// Names that could be anything: pronouns, question words, adverbs, lone participles, and metaphors
/// that only their author knows.
const BANNED: [&str; 76] = [
    "About", "After", "Again", "Alone", "Answered", "Asked", "Asking", "Astray", "At", "Away", "Became",
    "Beside", "Books", "Came", "Courier", "Deck", "Desk", "Dice", "Does", "Done", "Door", "Ear", "Ears",
    "Eye", "Fate", "For", "Forgot", "Found", "Greeter", "Greeting", "Handed", "Heard", "Hearing", "Herald",
    "Here", "House", "How", "Injury", "Into", "Kept", "Known", "Landlord", "Later", "Likeness", "Lodger",
    "Me", "Must", "Noted", "Odd", "Odds", "Office", "Ours", "Over", "Patient", "Pen", "Pulse", "Ran", "Room",
    "Rooms", "Ruling", "Said", "Shelf", "Spot", "Standing", "Story", "Tenancy", "Tenure", "Then", "Told",
    "Trouble", "Wanted", "Went", "What", "Which", "Whom", "Wish",
];

/// Names that every library has for itself.
const AGREED: [&str; 5] = ["Builder", "Config", "Error", "Options", "Result"];

/// A simulator calls things what the API calls them, as the client of that API does.
const MIRRORS: &str = "crates/sim/";

/// The name that a line defines as a type, and whether it is public.
fn defined(line: &str) -> Option<(&str, bool)> {
    let code = line.trim_start();
    let (is_public, code) = match code.strip_prefix("pub ") {
        Some(code) => (true, code),
        None if code.starts_with("pub(") => (false, code.split_once(") ")?.1),
        None => (false, code),
    };
    let name = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| code.strip_prefix(word))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some((&name[..end], is_public))
}

/// What a reader could not guess. An associated type has the name that its trait gave it.
fn banned(file: &File) -> Vec<Finding> {
    let on = |(number, line): (usize, &str)| {
        let (name, _) = defined(line).filter(|(name, _)| BANNED.contains(name))?;
        Some(file.at(number, format!("`{name}` says nothing: name what it holds or does")))
    };
    file.lines().filter_map(on).collect()
}

fn crate_of(path: &str) -> &str {
    path.split('/').nth(1).unwrap_or_default()
}

/// Public names that another crate has for something else. Only items at the top of a file count:
/// those inside are associated types or belong to tests.
fn twice(files: &[File]) -> Vec<Finding> {
    let mut first: BTreeMap<&str, &File> = BTreeMap::new();
    let mut findings = Vec::new();
    let is_library = |file: &&File| file.path.contains("/src/") && !file.path.starts_with(MIRRORS);
    for file in files.iter().filter(is_library) {
        for (number, line) in file.lines().filter(|(_, line)| !line.starts_with(' ')) {
            let Some((name, true)) = defined(line).filter(|(name, _)| !AGREED.contains(name)) else {
                continue;
            };
            let other = *first.entry(name).or_insert(file);
            if crate_of(&other.path) != crate_of(&file.path) {
                let rule = format!("`{name}` is public in {} too: one name, one meaning", other.path);
                findings.push(file.at(number, rule));
            }
        }
    }
    findings
}

#[test]
fn types_are_named_with_nouns_of_the_field() {
    assert_no_findings(sources().iter().flat_map(banned).collect());
}

#[test]
fn a_public_name_has_one_meaning() {
    assert_no_findings(twice(&sources()));
}

#[test]
fn a_banned_name_and_a_second_public_one_are_found() {
    let (banned_name, other_name) = (BANNED[0], BANNED[1]);
    let text = format!(
        "//! Head.\npub struct {banned_name};\npub(crate) enum {other_name}<T> {{}}\n    struct {banned_name}2;\npub struct Lease;\n"
    );
    let file = File::new("crates/a/src/a.rs", &text);
    assert_eq!(banned(&file).iter().map(|found| found.line).collect::<Vec<_>>(), [2, 3]);
    let other = File::new("crates/b/src/b.rs", "//! Head.\npub trait Lease {}\npub struct Error;\n");
    let same_crate = File::new("crates/a/src/c.rs", "//! Head.\npub struct Lease;\npub struct Error;\n");
    let simulator = File::new("crates/sim/src/a.rs", "//! Head.\npub struct Lease;\n");
    let found = twice(&[file, same_crate, other, simulator]);
    assert_eq!(
        found.iter().map(|found| (found.path.as_str(), found.line)).collect::<Vec<_>>(),
        [("crates/b/src/b.rs", 2)]
    );
}
