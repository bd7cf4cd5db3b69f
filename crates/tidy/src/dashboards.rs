//! Dashboards and alert rules use metrics that exist, with labels that they have.

use std::collections::{BTreeMap, BTreeSet};

use crate::metrics::listed_metrics;
use crate::repository::{File, Finding, assert_no_findings, file};

const DASHBOARD: &str = "deploy/grafana/tidegate.json";
const ALERTS: &str = "deploy/prometheus/alerts.yml";
/// How the names of metrics start.
const STARTS: [&str; 3] = ["tidegate_", "idempotency_", "hydration_"];
/// What the series of a histogram add to its name.
const OF_HISTOGRAMS: [&str; 3] = ["_bucket", "_sum", "_count"];
/// Labels that Prometheus adds, and the bounds of a histogram.
const ANY: [&str; 3] = ["instance", "job", "le"];

/// A metric in a query: its name, and the labels that select its series.
type Use<'a> = (&'a str, Vec<&'a str>);

const fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The uses of metrics in a line.
fn uses(line: &str) -> Vec<Use<'_>> {
    let mut found = Vec::new();
    for start in STARTS {
        for (at, _) in line.match_indices(start) {
            if line[..at].ends_with(is_word) {
                continue;
            }
            let rest = &line[at..];
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let selector = after.strip_prefix('{').and_then(|after| after.split_once('}'));
            found.push((name, selector.map_or_else(Vec::new, |(selector, _)| labels(selector))));
        }
    }
    found
}

/// The labels of a selector, as in `state="failed",job=~"$job"`; JSON escapes its quotes.
fn labels(selector: &str) -> Vec<&str> {
    let matchers = selector.split(',').filter(|part| part.contains('='));
    matchers.filter_map(|part| part.split(['=', '!']).next()).map(str::trim).collect()
}

/// Whether the metric exists, and if so what labels it has.
fn labels_of<'a>(
    name: &str,
    metrics: &'a BTreeMap<String, BTreeSet<String>>,
) -> Option<&'a BTreeSet<String>> {
    let of_histogram = || {
        let base = OF_HISTOGRAMS.iter().find_map(|end| name.strip_suffix(end))?;
        metrics.get(base).filter(|_| base.ends_with("_seconds"))
    };
    metrics.get(name).or_else(of_histogram)
}

fn check(page: &File, metrics: &BTreeMap<String, BTreeSet<String>>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in page.lines() {
        for (name, selected) in uses(line) {
            let Some(known) = labels_of(name, metrics) else {
                findings.push(page.at(number, format!("there is no metric {name}")));
                continue;
            };
            for label in selected.into_iter().filter(|label| !known.contains(*label) && !ANY.contains(label))
            {
                findings.push(page.at(number, format!("{name} has no label {label}")));
            }
        }
    }
    findings
}

#[test]
fn dashboards_and_alerts_use_metrics_that_exist() {
    let metrics = listed_metrics();
    let pages = [DASHBOARD, ALERTS].map(file);
    for page in &pages {
        let count: usize = page.lines().map(|(_, line)| uses(line).len()).sum();
        assert!(count > 10, "{}: {count} metrics were found: the check would prove nothing", page.path);
    }
    assert_no_findings(pages.iter().flat_map(|page| check(page, &metrics)).collect());
}

/// The dashboard is JSON, and each panel has a place and a query.
#[test]
fn the_dashboard_can_be_read() {
    let dashboard: serde_json::Value = serde_json::from_str(&file(DASHBOARD).text).unwrap();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        assert!(panel["gridPos"]["w"].is_u64(), "{panel}");
        if panel["type"] != "row" {
            let targets = panel["targets"].as_array().unwrap();
            assert!(
                targets.iter().all(|target| target["expr"].is_string()) && !targets.is_empty(),
                "{panel}"
            );
        }
    }
    assert!(ids.len() > 10, "{}", ids.len());
}

/// Every alert has an expression and a summary.
#[test]
fn every_alert_says_what_is_wrong() {
    let text = file(ALERTS).text;
    let alerts: Vec<&str> = text.split("- alert: ").skip(1).collect();
    assert!(alerts.len() > 5, "{}", alerts.len());
    for alert in alerts {
        for part in ["expr: ", "for: ", "severity: ", "summary: "] {
            assert!(alert.contains(part), "{part} is missing: {alert}");
        }
    }
}

#[test]
fn metrics_and_labels_that_do_not_exist_are_found() {
    let labels = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let metrics = BTreeMap::from([
        ("tidegate_a".to_owned(), labels(&["state"])),
        ("tidegate_b_seconds".to_owned(), labels(&[])),
    ]);
    let page = File::new(
        "a.yml",
        "sum(tidegate_a{state=\"x\",job=~\"$job\"}) / tidegate_b_seconds_count\ntidegate_a_count\n\
         rate(tidegate_a{stat!=\\\"x\\\"}[5m])\ntidegate_b_seconds_max + my_tidegate_a\n",
    );
    let found: Vec<_> = check(&page, &metrics).iter().map(|finding| finding.line).collect();
    assert_eq!(found, [2, 3, 4]);
}
