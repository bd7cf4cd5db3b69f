//! Bounds are in one place. A maximum that several files use is in `core::bounds`, or in the file
//! with the limits of the API that it is a fact about; any other is a private constant.

use crate::repository::{File, Finding, assert_no_findings, sources};

/// The files with the bounds of Tidegate, and with those of the APIs it calls.
const BOUNDS: [&str; 3] =
    ["crates/core/src/bounds.rs", "crates/discord/src/bounds.rs", "crates/shopify/src/bounds.rs"];
/// Crates that ship nothing: a simulator has the bounds of the API it simulates.
const EXEMPT: [&str; 3] = ["crates/sim/", "crates/bench/", "crates/contract/"];

/// The name of a constant that a line shares with other files.
fn shared(line: &str) -> Option<&str> {
    let (visibility, rest) = line.strip_prefix("pub")?.split_once("const ")?;
    let is_shared = visibility.trim().is_empty() || visibility.starts_with('(');
    is_shared.then(|| rest.split(':').next()).flatten()
}

/// A maximum, with or without its unit. The default of one belongs to what has it.
fn is_bound(name: &str) -> bool {
    name.split('_').any(|word| word == "MAX") && !name.ends_with("_DEFAULT") && name != "MAX"
}

fn check(files: &[File]) -> Vec<Finding> {
    let is_checked = |file: &&File| {
        file.path.contains("/src/")
            && !BOUNDS.contains(&&*file.path)
            && !EXEMPT.iter().any(|exempt| file.path.starts_with(exempt))
    };
    let on = |file: &File| -> Vec<Finding> {
        let shared = file.lines().filter_map(|(number, line)| Some((number, shared(line)?)));
        let bounds = shared.filter(|(_, name)| is_bound(name));
        bounds.map(|(number, name)| file.at(number, format!("{name} belongs in {}", BOUNDS[0]))).collect()
    };
    files.iter().filter(is_checked).flat_map(on).collect()
}

#[test]
fn every_shared_bound_is_in_its_place() {
    assert_no_findings(check(&sources()));
}

#[test]
fn a_bound_that_files_share_is_found() {
    let lines = "const OWN_MAX: usize = 1;\npub const ALL_MAX: u8 = 2;\npub(super) const SOME_MAX: u8 = 3;\n\
                 pub const USUAL_MAX_DEFAULT: u8 = 4;\npub const WAIT_MAX_MS: u8 = 5;\n";
    let files = ["crates/a/src/b.rs", BOUNDS[0], "crates/sim/src/c.rs", "crates/a/tests/d.rs"];
    let found = check(&files.map(|path| File::new(path, lines)));
    let found: Vec<_> = found.iter().map(|finding| (&*finding.path, finding.line)).collect();
    assert_eq!(found, [("crates/a/src/b.rs", 2), ("crates/a/src/b.rs", 3), ("crates/a/src/b.rs", 5)]);
}
