//! `core` decides and does nothing else: it needs the standard library and no runtime, and neither
//! reads a clock nor does any I/O. Time and randomness are arguments.

use crate::manifest::{Manifest, manifests};
use crate::repository::{File, Finding, assert_no_findings, files};

/// The crates that `core` may use: two hash functions and a table.
const ALLOWED: [&str; 3] = ["rustc-hash", "sha2", "slab"];
/// What would make a decision depend on more than its arguments.
const IMPURE: [&str; 13] = [
    "std::env",
    "std::fs",
    "std::io",
    "std::net",
    "std::os",
    "std::path",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "async fn",
    "async move",
    "std::future",
];

fn dependencies(manifest: &Manifest) -> Vec<Finding> {
    let strangers = manifest.dependencies.iter().filter(|package| !ALLOWED.contains(&package.as_str()));
    let rule = |package: &String| format!("core uses the standard library only, not {package}");
    strangers.map(|package| manifest.file.at(manifest.line_of(package), rule(package))).collect()
}

fn impure(file: &File) -> Vec<Finding> {
    let is_code = |line: &str| !line.trim_start().starts_with("//");
    let on = |(number, line): (usize, &str)| {
        let found = IMPURE.iter().find(|word| line.contains(*word)).filter(|_| is_code(line))?;
        Some(file.at(number, format!("core does not use `{}`", found.trim())))
    };
    file.lines().filter_map(on).collect()
}

#[test]
fn core_needs_the_standard_library_and_no_runtime() {
    let mut findings = dependencies(&manifests()["core"]);
    let is_shipped = |file: &&File| file.is("rs") && !file.path.ends_with("tests.rs");
    findings.extend(files("crates/core/src").iter().filter(is_shipped).flat_map(impure));
    assert_no_findings(findings);
}

#[test]
fn a_runtime_and_a_clock_in_core_are_found() {
    let text = "[package]\nname = \"tidegate-core\"\n[dependencies]\nslab.workspace = true\ntokio.workspace = true\n";
    let manifest = Manifest::parse(File::new("crates/core/Cargo.toml", text));
    assert_eq!(dependencies(&manifest).iter().map(|found| found.line).collect::<Vec<_>>(), [5]);
    let source =
        "//! std::fs in a comment.\nuse std::time::Duration;\nuse std::time::Instant;\nasync fn a() {}\n";
    let found = impure(&File::new("crates/core/src/a.rs", source));
    assert_eq!(found.iter().map(|found| found.line).collect::<Vec<_>>(), [3, 4]);
}
