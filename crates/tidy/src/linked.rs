//! What is linked into the binary that users install: nothing that is there for tests, benchmarks
//! or examples. Dependencies for tests may be anything.

use std::collections::{BTreeMap, BTreeSet};

use crate::manifest::{Manifest, manifests};
use crate::repository::{Finding, assert_no_findings};

/// The crate of the binary.
const BINARY: &str = "cli";
/// Crates that serve tests, benchmarks and readers.
const NOT_SHIPPED: [&str; 6] = [
    "tidegate-bench",
    "tidegate-contract",
    "tidegate-fixture",
    "tidegate-intake",
    "tidegate-orders",
    "tidegate-tidy",
];

fn check(crates: &BTreeMap<String, Manifest>) -> Vec<Finding> {
    let by_package: BTreeMap<&str, &Manifest> =
        crates.values().map(|manifest| (manifest.package.as_str(), manifest)).collect();
    let mut findings = Vec::new();
    let (mut seen, mut next) = (BTreeSet::new(), vec![&crates[BINARY]]);
    while let Some(manifest) = next.pop() {
        for package in &manifest.dependencies {
            if NOT_SHIPPED.contains(&package.as_str()) {
                let rule = format!("{package} would be linked into the binary: make it a dev-dependency");
                findings.push(manifest.file.at(manifest.line_of(package), rule));
            } else if let Some(used) = by_package.get(package.as_str())
                && seen.insert(package)
            {
                next.push(used);
            }
        }
    }
    findings
}

#[test]
fn the_binary_links_what_users_need() {
    assert_no_findings(check(&manifests()));
}

#[test]
fn a_fixture_below_the_binary_is_found() {
    let of = |folder: &str, text: &str| {
        let text = format!("[package]\nname = \"tidegate-{folder}\"\n{text}\n");
        let file = crate::repository::File::new(&format!("crates/{folder}/Cargo.toml"), &text);
        (folder.to_owned(), Manifest::parse(file))
    };
    let crates = BTreeMap::from([
        of(
            "cli",
            "[dependencies]\ntidegate-server.workspace = true\n[dev-dependencies]\ntidegate-bench = \"1\"",
        ),
        of("server", "[dependencies]\ntidegate-cli.workspace = true\ntidegate-fixture.workspace = true"),
        of("fixture", ""),
    ]);
    let found = check(&crates);
    let at: Vec<_> = found.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
    assert_eq!(at, [("crates/server/Cargo.toml", 5)]);
}
