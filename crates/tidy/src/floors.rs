//! A crate may depend on lower layers (floors) only, and crates of one layer do not depend on each
//! other. The table lists the layer of every crate; a crate that is not in it is an error.

use std::collections::BTreeMap;

use crate::manifest::{Manifest, manifests};
use crate::repository::{Finding, assert_no_findings};

/// The layers by folder, including planned crates.
pub(crate) const FLOORS: [(&str, u8); 26] = [
    ("core", 0),
    ("encoding", 0),
    ("store", 1),
    ("bus", 1),
    ("upstream", 1),
    ("contract", 1),
    ("fixture", 1),
    ("store-embedded", 2),
    ("store-redis", 2),
    ("store-postgres", 2),
    ("bus-nats", 2),
    ("backend", 2),
    ("engine", 3),
    ("cluster", 3),
    ("limits", 3),
    ("idempotency", 3),
    ("hydration", 3),
    ("images", 3),
    ("discord", 4),
    ("shopify", 4),
    ("dispatch", 4),
    ("sim", 5),
    ("bench", 5),
    ("server", 5),
    ("cli", 5),
    ("tidy", 5),
];

/// Allowed dependencies within a layer: from, to, why.
const EXCEPTIONS: [(&str, &str, &str); 9] = [
    ("contract", "store", "its suites are about the promises of that port"),
    ("contract", "bus", "the same"),
    ("backend", "store-embedded", "it opens it, behind a feature"),
    ("backend", "store-redis", "it opens it, behind a feature"),
    ("backend", "store-postgres", "it opens it, behind a feature"),
    ("cli", "server", "`serve` and `demo` start it"),
    ("cli", "sim", "`sim` and `demo` start the simulators"),
    ("bench", "server", "its `http` measures the real one"),
    ("bench", "sim", "what nodes call while they are measured"),
];

pub(crate) fn floor_of(folder: &str) -> Option<u8> {
    FLOORS.iter().find(|(name, _)| *name == folder).map(|(_, floor)| *floor)
}

fn check(crates: &BTreeMap<String, Manifest>) -> Vec<Finding> {
    let folder_of =
        |package: &str| crates.values().find(|known| known.package == package).map(|known| &known.folder);
    let mut findings = Vec::new();
    for manifest in crates.values() {
        let Some(floor) = floor_of(&manifest.folder) else {
            let rule = format!("{} has no floor: give it one in crates/tidy/src/floors.rs", manifest.folder);
            findings.push(manifest.file.at(1, rule));
            continue;
        };
        for used in manifest.dependencies.iter().filter_map(|package| folder_of(package)) {
            let below = floor_of(used).is_some_and(|other| other < floor);
            let excepted = EXCEPTIONS.iter().any(|(who, whom, _)| *who == manifest.folder && whom == used);
            if !below && !excepted {
                let package = &crates[used].package;
                let rule =
                    format!("{} (floor {floor}) may use lower floors only, not {used}", manifest.folder);
                findings.push(manifest.file.at(manifest.line_of(package), rule));
            }
        }
    }
    findings
}

#[test]
fn crates_use_lower_floors_only() {
    assert_no_findings(check(&manifests()));
}

#[test]
fn a_sibling_a_higher_floor_and_a_stranger_are_found() {
    let of = |folder: &str, uses: &str| {
        let text = format!("[package]\nname = \"tidegate-{folder}\"\n[dependencies]\n{uses}\n");
        let file = crate::repository::File::new(&format!("crates/{folder}/Cargo.toml"), &text);
        (folder.to_owned(), Manifest::parse(file))
    };
    let crates = BTreeMap::from([
        of("core", "tidegate-store.workspace = true"),
        of("store", "tidegate-core.workspace = true"),
        of("upstream", "tidegate-store.workspace = true"),
        of("contract", "tidegate-store.workspace = true"),
        of("attic", ""),
    ]);
    let found: Vec<_> = check(&crates).into_iter().map(|finding| (finding.path, finding.line)).collect();
    let at = |folder: &str, line| (format!("crates/{folder}/Cargo.toml"), line);
    assert_eq!(found, [at("attic", 1), at("core", 4), at("upstream", 4)]);
}
