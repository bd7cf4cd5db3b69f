//! The reference of the configuration in `docs/` has every key, and every default as it is.

use std::collections::BTreeSet;

/// A key of a file with defaults: its section, its name, and its default unless it is an example.
struct DefaultKey {
    section: String,
    name: String,
    default: Option<String>,
}

/// The keys of a file in which examples are comments.
fn keys(toml: &str) -> Vec<DefaultKey> {
    let (mut section, mut keys) = (String::new(), Vec::new());
    for line in toml.lines().filter(|line| !line.starts_with("# ")) {
        let text = line.trim_start_matches('#');
        if text.starts_with('[') {
            text.clone_into(&mut section);
        } else if let Some((name, value)) = text.split_once(" = ") {
            let default = (text == line).then(|| value.to_owned());
            keys.push(DefaultKey { section: section.clone(), name: name.to_owned(), default });
        }
    }
    keys
}

/// The beginning of the row about a key: its name and, if it has one, its default.
fn row(key: &DefaultKey) -> String {
    match &key.default {
        Some(default) => format!("| `{}` | `{default}` |", key.name),
        None => format!("| `{}` |", key.name),
    }
}

/// The rows of the table under the heading of a section.
fn rows<'a>(document: &'a str, section: &str) -> Vec<&'a str> {
    let heading = format!("### `{section}`\n");
    let rest = document.split_once(&heading).map_or("", |(_, rest)| rest);
    rest.lines().take_while(|line| !line.starts_with('#')).filter(|line| line.starts_with("| `")).collect()
}

#[test]
fn the_reference_has_every_key_and_its_default() {
    let files = [
        (include_str!("default.toml"), include_str!("../../../../docs/configuration.md")),
        (include_str!("proxy.toml"), include_str!("../../../../docs/proxy.md")),
    ];
    for (toml, document) in files {
        let all = keys(toml);
        assert!(all.len() > 30, "the file is read");
        // A route repeats keys of the section that it belongs to.
        for key in all.iter().filter(|key| !key.section.contains(".route]")) {
            let found = rows(document, &key.section).iter().any(|line| line.starts_with(&row(key)));
            assert!(found, "{} of {} is not in the reference: {}", key.name, key.section, row(key));
        }
        let known: BTreeSet<&str> = all.iter().map(|key| key.name.as_str()).collect();
        for key in all.iter().filter(|key| key.default.is_some()) {
            for line in rows(document, &key.section) {
                let name = line.split('`').nth(1).unwrap();
                let is_said = known.contains(name) || toml.contains(&format!("{name} = "));
                assert!(is_said, "{name} of {} is in the reference, and there is no such key", key.section);
            }
        }
    }
}

/// IDM-2: the first example of each page about keys tells callers apart by a tenant, because a
/// credential changes while a client retries; the pages say so.
#[test]
fn idm_2_the_first_example_names_a_tenant() {
    let pages = [
        include_str!("../../../../docs/proxy.md"),
        include_str!("../../../../docs/idempotency.md"),
        include_str!("../../../idempotency/README.md"),
    ];
    for page in pages {
        let mut examples = page.split("```").skip(1).step_by(2);
        let first =
            examples.find(|code| code.to_lowercase().contains("tenant") || code.contains("uthorization"));
        let first = first.unwrap_or_default().to_lowercase();
        assert!(first.contains("x-tenant") && !first.contains("authorization"), "{first}");
    }
    for page in &pages[..2] {
        assert!(page.contains("`Authorization`") && page.contains("another caller"), "it says why");
    }
}
