//! A heavy driver is a dependency of the one crate that is responsible for it, so that it can be
//! replaced there.

use std::collections::BTreeMap;

use crate::manifest::{Manifest, manifests};
use crate::repository::{Finding, assert_no_findings};

/// Drivers, and the crates that may depend on them. If there are several, each is a server or a
/// client of its own: the executor of calls and the reverse proxy are clients of upstreams,
/// dispatch sends notifications to addresses that it must check first, the command line is a client
/// of the server, the simulators are servers, and the benchmarks are both. A store is linked by the
/// one crate that opens it, behind a feature.
const DRIVERS: [(&str, &[&str]); 20] = [
    ("tidegate-store-embedded", &["backend"]),
    ("tidegate-store-redis", &["backend"]),
    ("tidegate-store-postgres", &["backend"]),
    ("rusqlite", &["store-embedded"]),
    ("redis", &["store-redis"]),
    ("sqlx", &["store-postgres"]),
    ("async-nats", &["bus-nats"]),
    ("async-compression", &["encoding"]),
    ("axum", &["server", "sim", "bench"]),
    ("hyper", &["upstream", "server", "sim", "cli", "idempotency", "bench"]),
    ("hyper-util", &["upstream", "dispatch", "server", "sim", "cli", "idempotency", "bench"]),
    ("hyper-rustls", &["upstream", "idempotency"]),
    ("tokio-rustls", &["server"]),
    ("maud", &["server", "sim"]),
    ("metrics-exporter-prometheus", &["server"]),
    ("utoipa", &["server"]),
    ("clap", &["cli", "bench"]),
    ("indicatif", &["cli"]),
    ("twilight-model", &["discord"]),
    ("ed25519-dalek", &["images"]),
];

/// Dependencies that are for tests only, in any crate.
const FOR_TESTS: [&str; 5] = ["insta", "proptest", "rcgen", "reqwest", "shuttle"];

fn check(crates: &BTreeMap<String, Manifest>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in crates.values() {
        for used in &manifest.dependencies {
            let allowed = DRIVERS.iter().find(|(driver, _)| driver == used).map(|(_, allowed)| *allowed);
            if let Some(allowed) = allowed.filter(|allowed| !allowed.contains(&manifest.folder.as_str())) {
                let rule = format!("{used} lives in {} only", allowed.join(" and "));
                findings.push(manifest.file.at(manifest.line_of(used), rule));
            }
            let a_harness = matches!(manifest.folder.as_str(), "contract" | "sim" | "bench");
            if FOR_TESTS.contains(&used.as_str()) && !a_harness {
                let rule = format!("{used} is for tests: it belongs under [dev-dependencies]");
                findings.push(manifest.file.at(manifest.line_of(used), rule));
            }
        }
    }
    findings
}

#[test]
fn heavy_drivers_live_in_one_crate() {
    assert_no_findings(check(&manifests()));
}

/// A program links only the stores that it chose.
#[test]
fn each_store_is_behind_a_feature() {
    let backend = &manifests()["backend"];
    let table: toml::Table = backend.file.text.parse().unwrap();
    for store in backend.dependencies.iter().filter(|package| package.starts_with("tidegate-store-")) {
        assert_eq!(table["dependencies"][store].get("optional"), Some(&true.into()), "{store}");
    }
    let root: toml::Table = crate::repository::file("Cargo.toml").text.parse().unwrap();
    for library in ["tidegate", "tidegate-backend", "tidegate-limits", "tidegate-idempotency"] {
        let used = &root["workspace"]["dependencies"][library];
        assert_eq!(used.get("default-features"), Some(&false.into()), "{library}");
    }
}

#[test]
fn a_driver_in_the_wrong_crate_is_found() {
    let text = "[package]\nname = \"tidegate\"\n[dependencies]\nproptest.workspace = true\nrusqlite.workspace = true\n";
    let manifest = Manifest::parse(crate::repository::File::new("crates/engine/Cargo.toml", text));
    let found = check(&BTreeMap::from([("engine".into(), manifest)]));
    assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [4, 5]);
}
