//! Every metric has a description, which operators read next to its figures, and is in the list of
//! metrics.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{File, Finding, assert_no_findings, file, sources};

/// Where metrics are described.
const DESCRIBED: &str = "crates/server/src/telemetry/describe.rs";
/// Where metrics are listed.
const LISTED: &str = "docs/metrics.md";
/// Where metrics are named apart from the macro that exports them.
const NAMED: [(&str, &str); 3] = [
    ("crates/idempotency/src/counters.rs", "\"idempotency."),
    ("crates/hydration/src/counters.rs", "\"hydration."),
    ("crates/server/src/telemetry/gauges.rs", "\"tidegate_"),
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

/// The metrics that a server exports, by the names that Prometheus sees, with their labels. The
/// exporter writes dots as underscores.
pub(crate) fn listed_metrics() -> BTreeMap<String, BTreeSet<String>> {
    list(&file(LISTED)).into_iter().map(|(_, name, labels)| (name, labels)).collect()
}

/// The metrics in the list, each with its line and its labels.
fn list(page: &File) -> Vec<(usize, String, BTreeSet<String>)> {
    let code =
        |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let is_metric = |name: &String| {
        ["tidegate_", "idempotency_", "hydration_"].iter().any(|start| name.starts_with(start))
    };
    let mut found = Vec::new();
    for (number, line) in page.lines() {
        let mut cells = line.split('|').skip(1);
        let (Some(names), Some(labels)) = (cells.next(), cells.next()) else { continue };
        let labels: BTreeSet<String> = code(labels).into_iter().collect();
        let names = code(names).into_iter().filter(is_metric);
        found.extend(names.map(|name| (number, name, labels.clone())));
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

/// The described metrics that are not in the list, and the listed ones that are not described.
fn check_list(telemetry: &File, page: &File) -> Vec<Finding> {
    let described: BTreeSet<String> =
        described(&telemetry.text).into_iter().map(|name| name.replace('.', "_")).collect();
    let listed = list(page);
    let names: BTreeSet<String> = listed.iter().map(|(_, name, _)| name.clone()).collect();
    let gone = listed.iter().filter(|(_, name, _)| !described.contains(name));
    let gone = gone.map(|(line, name, _)| page.at(*line, format!("there is no metric {name}")));
    let missing = described.difference(&names).map(|name| page.at(1, format!("{name} is not listed")));
    gone.chain(missing).collect()
}

/// The described metrics that nothing exports.
fn check_exported(files: &[File], telemetry: &File) -> Vec<Finding> {
    let exported: BTreeSet<&str> = files.iter().flat_map(exported).map(|(_, name)| name).collect();
    let missing = described(&telemetry.text).into_iter().filter(|name| !exported.contains(name));
    missing.map(|name| telemetry.at(1, format!("nothing exports {name}"))).collect()
}

#[test]
fn every_metric_is_listed() {
    assert_no_findings(check_list(&file(DESCRIBED), &file(LISTED)));
}

#[test]
fn a_metric_that_is_not_listed_and_one_that_is_gone_are_found() {
    let telemetry =
        File::new(DESCRIBED, "describe_gauge!(\"tidegate_a\", \"A.\");\n(\"hydration.b\", \"B.\"),\n");
    let found =
        check_list(&telemetry, &File::new(LISTED, "# Metrics\n| `tidegate_a`, `tidegate_c` | | both |\n"));
    let found: Vec<_> = found.iter().map(|finding| finding.line).collect();
    assert_eq!(found, [2, 1]);
}

#[test]
fn every_metric_is_described() {
    let is_shipped = |file: &File| file.path.contains("/src/") && !file.path.starts_with("crates/tidy/");
    let files: Vec<File> = sources().into_iter().filter(is_shipped).collect();
    let count: usize = files.iter().map(|file| exported(file).len()).sum();
    assert!(count > 60, "{count} metrics were found: the check would prove nothing");
    let telemetry = file(DESCRIBED);
    assert_no_findings(check(&files, &telemetry));
    assert_no_findings(check_exported(&files, &telemetry));
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
    let found = check(&[engine.clone(), keys.clone()], &telemetry);
    let found: Vec<_> = found.iter().map(|finding| (&*finding.path, finding.line)).collect();
    assert_eq!(found, [("crates/engine/src/a.rs", 3), (NAMED[0].0, 2)]);
    assert_eq!(check_exported(&[engine, keys.clone()], &telemetry), []);
    let found = check_exported(&[keys], &telemetry);
    assert_eq!(found.len(), 2, "{found:?}");
}
