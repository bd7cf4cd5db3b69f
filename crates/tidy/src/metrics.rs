//! Every metric has a description, which operators read next to its figures.

use std::collections::BTreeSet;

use crate::repository::{File, Finding, assert_no_findings, file, sources};

/// Where metrics are described.
const DESCRIBED: &str = "crates/server/src/telemetry.rs";
/// Where the libraries name the metrics that they count by themselves.
const NAMED: [(&str, &str); 2] = [
    ("crates/idempotency/src/counters.rs", "\"idempotency."),
    ("crates/hydration/src/counters.rs", "\"hydration."),
];
/// The macros that export a metric.
const MACROS: [&str; 3] = ["counter!(", "gauge!(", "histogram!("];

/// The names behind a prefix, as in `"tidegate_groups"`.
fn names<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(prefix).filter_map(|(at, _)| text[at + 1..].split('"').next())
}

/// The metrics that a file exports, with their lines.
fn exported(file: &File) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in file.lines() {
        let is_counted = MACROS.iter().any(|word| line.contains(word)) && !line.contains("describe_");
        if is_counted {
            found.extend(names(line, "\"tidegate_").map(|name| (number, name)));
        }
        for (_, prefix) in NAMED.iter().filter(|(path, _)| *path == file.path) {
            found.extend(names(line, prefix).map(|name| (number, name)));
        }
    }
    found
}

/// The metrics that are described.
fn described(text: &str) -> BTreeSet<&str> {
    let calls = text.split("describe_").skip(1).filter_map(|call| call.split_once('"')?.1.split('"').next());
    let named = NAMED.iter().flat_map(|(_, prefix)| names(text, prefix));
    calls.chain(named).collect()
}

fn check(files: &[File], telemetry: &File) -> Vec<Finding> {
    let described = described(&telemetry.text);
    let on = |file: &File| -> Vec<Finding> {
        let missing = exported(file).into_iter().filter(|(_, name)| !described.contains(name));
        missing
            .map(|(line, name)| file.at(line, format!("{name} has no description in {DESCRIBED}")))
            .collect()
    };
    files.iter().flat_map(on).collect()
}

#[test]
fn every_metric_is_described() {
    let is_shipped = |file: &File| file.path.contains("/src/") && !file.path.starts_with("crates/tidy/");
    let files: Vec<File> = sources().into_iter().filter(is_shipped).collect();
    let count: usize = files.iter().map(|file| exported(file).len()).sum();
    assert!(count > 60, "{count} metrics were found: the check would prove nothing");
    assert_no_findings(check(&files, &file(DESCRIBED)));
}

#[test]
fn a_metric_without_a_description_is_found() {
    let telemetry = File::new(
        DESCRIBED,
        "describe_counter!(\"tidegate_a\", \"A.\");\ndescribe_gauge!(\n    \"tidegate_b\",\n    \"B.\"\n);\n\
         (\"idempotency.hit\", \"H.\"),\n",
    );
    let engine = File::new(
        "crates/engine/src/a.rs",
        "metrics::counter!(\"tidegate_a\").increment(1);\nmetrics::gauge!(\"tidegate_b\").set(1.0);\n\
         metrics::histogram!(\"tidegate_c\").record(1.0);\nlet table = \"tidegate_d\";\n",
    );
    let keys =
        File::new(NAMED[0].0, "Self::Hit => \"idempotency.hit\",\nSelf::Full => \"idempotency.full\",\n");
    let found = check(&[engine, keys], &telemetry);
    let found: Vec<_> = found.iter().map(|finding| (&*finding.path, finding.line)).collect();
    assert_eq!(found, [("crates/engine/src/a.rs", 3), (NAMED[0].0, 2)]);
}
