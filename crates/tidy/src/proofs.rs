//! The tests of the workspace as text: the location of each, and the requirements it names in its
//! own name or in the comment above it.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::File;

/// The capabilities and the number of requirements of each.
pub(crate) const REQUIREMENTS: [(&str, u16); 5] =
    [("OPS", 27), ("LIM", 30), ("IDM", 22), ("DSP", 26), ("HYD", 27)];

/// The id of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RequirementId(pub &'static str, pub u16);

impl std::fmt::Display for RequirementId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.0, self.1)
    }
}

/// The ids in a text, such as `OPS-4` or, in a name, `ops_4`; including those out of range.
pub(crate) fn ids(text: &str) -> BTreeSet<RequirementId> {
    let mut found = BTreeSet::new();
    for (prefix, _) in REQUIREMENTS {
        for spelled in [format!("{prefix}-"), format!("{}_", prefix.to_lowercase())] {
            for (at, _) in text.match_indices(&spelled) {
                let before = text[..at].chars().next_back();
                let digits: String =
                    text[at + spelled.len()..].chars().take_while(char::is_ascii_digit).collect();
                if let (Ok(number), false) = (digits.parse(), before.is_some_and(char::is_alphanumeric)) {
                    found.insert(RequirementId(prefix, number));
                }
            }
        }
    }
    found
}

/// Tests as `crate/src/file.rs::name`, each with the ids it names.
pub(crate) fn collect_tests(sources: &[File]) -> BTreeMap<String, BTreeSet<RequirementId>> {
    let mut found = BTreeMap::new();
    for file in sources {
        let path = file.path.strip_prefix("crates/").unwrap_or(&file.path);
        let mut above = String::new();
        let mut is_test = false;
        for (_, line) in file.lines() {
            let line = line.trim();
            if line.starts_with("///") || line.starts_with("//") {
                above.push_str(line);
                above.push(' ');
            } else if line.starts_with("#[") {
                is_test |=
                    line.starts_with("#[test]") || line.contains("::test]") || line.contains("::test(");
            } else {
                if let Some(name) = is_test.then(|| function_name(line)).flatten() {
                    found.insert(format!("{path}::{name}"), ids(&format!("{above} {name}")));
                }
                above.clear();
                is_test = false;
            }
        }
    }
    found
}

/// The name of the function that a line declares.
fn function_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[test]
fn tests_and_their_ids_are_read() {
    let text = "/// LIM-12 / LIM-20: x.\n#[test]\nfn a() {}\n#[tokio::test]\nasync fn ops_4_b() {}\nfn ops_5_no_test() {}\n// OPS-6\nlet x = 1;\n#[test]\nfn c() {}\n";
    let found = collect_tests(&[File::new("crates/x/src/a.rs", text)]);
    let named: Vec<_> =
        found.iter().map(|(test, ids)| (test.as_str(), ids.iter().copied().collect())).collect();
    let expected: Vec<(&str, Vec<RequirementId>)> = vec![
        ("x/src/a.rs::a", vec![RequirementId("LIM", 12), RequirementId("LIM", 20)]),
        ("x/src/a.rs::c", vec![]),
        ("x/src/a.rs::ops_4_b", vec![RequirementId("OPS", 4)]),
    ];
    assert_eq!(named, expected);
    assert_eq!(
        ids("OPS-12, XOPS-3, ops_1 OPS-"),
        BTreeSet::from([RequirementId("OPS", 1), RequirementId("OPS", 12)])
    );
}
