//! Benchmarks from end to end, far too small to measure anything: each runs, starts and stops all
//! it needs, and reports what it promises.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test ends it")]

use std::process::Command;

use serde_json::Value;

/// The cases of `carry`.
const CASES: [&str; 5] = ["bare", "executor", "shallow", "in_memory", "deep"];

/// Long enough that every shop is called: the most expensive query takes a small shop five seconds.
const SCALE: [&str; 10] =
    ["--nodes", "2", "--shops", "10", "--seconds", "8", "--warm-up", "1", "--backlog", "2"];

/// LIM-14, LIM-13: shops of all plans on two nodes, one of them busy, from learned budgets: no
/// limit is exceeded.
#[test]
fn lim_14_lim_13_the_benchmark_of_shops_runs_from_end_to_end() {
    let report = report(&[&["shopify", "--no-peer"], SCALE.as_slice()].concat());
    for (run, shops) in [("without_the_busy_shop", 9), ("with_the_busy_shop", 10)] {
        let run = &report[run];
        let throttled = [&run["throttled_before_learned"], &run["throttled_after_learned"]];
        assert_eq!(throttled, [0, 0], "{run}");
        let plans = run["used"]["by_plan"].as_array().unwrap();
        assert_eq!(plans.iter().filter_map(|plan| plan["shops"].as_u64()).sum::<u64>(), shops, "{run}");
        // The benchmark measures the exact share; nearly nothing would be a fault in its load.
        assert!(run["used"]["used"].as_f64() > Some(0.5), "{run}");
        assert!(run["start_delays"]["p99_to_mean"].as_f64() >= Some(1.0), "{run}");
    }
    assert_eq!(report["goals"].as_array().map(Vec::len), Some(4), "{report}");
    assert!(report["peer"].is_null(), "{report}");
}

/// OPS-18, OPS-21: a guild is deployed within limits whose windows are a tenth: nothing is refused,
/// no object is duplicate or missing, and a second run writes nothing.
#[test]
fn ops_18_ops_21_the_benchmark_of_guilds_runs_from_end_to_end() {
    let small = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/guilds/small.yaml");
    let report =
        report(&["discord", "--no-peers", "--template", small, "--sooner", "10", "--store", "memory:"]);
    let ours = &report["ours"];
    let none = ["throttled", "duplicates", "missing"].map(|count| ours[count].as_u64());
    assert_eq!(none, [Some(0); 3], "{ours}");
    assert_eq!((report["calls"].as_u64(), ours["writes"].as_u64()), (Some(16), Some(14)), "{report}");
    assert_eq!(ours["again"]["writes"].as_u64(), Some(0), "{ours}");
    assert!(ours["again"]["reads"].as_u64().is_some_and(|reads| reads <= 3), "{ours}");
    // No one is faster than the lower bound.
    assert!(ours["seconds"].as_f64() > report["shortest"]["seconds"].as_f64(), "{report}");
    assert_eq!(
        (report["goals"].as_array().map(Vec::len), &report["peers"]),
        (Some(6), &Value::Array(vec![]))
    );
}

/// Calls are sent to a real upstream, from a short queue and from a long one that is read back,
/// each once: the benchmark itself fails when the upstream saw more or fewer calls than there were
/// operations.
#[test]
fn the_benchmark_of_calls_runs_from_end_to_end() {
    let dir = tempfile::tempdir().unwrap();
    for store in [format!("file:{}", dir.path().display()), "memory:".into()] {
        let scale = ["--operations", "400", "--groups", "30", "--turns", "2", "--workers", "8"];
        let report = report(&[&["carry", "--store", store.as_str()], scale.as_slice()].concat());
        let turns = report["turns"].as_array().unwrap();
        assert_eq!(turns.len(), 2, "{report}");
        for (turn, case) in turns.iter().flat_map(|turn| CASES.map(|case| (turn, case))) {
            assert_eq!(turn[case]["calls"], 400, "{case}: {turn}");
            assert!(turn[case]["calls_per_s"].as_f64() > Some(0.0), "{case}: {turn}");
        }
        assert!(report["deep_to_shallow"].as_f64() > Some(0.0), "{report}");
        assert_eq!(report["goals"].as_array().map(Vec::len), Some(2), "{report}");
    }
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Views of a full server, and what tokens, traces and open pages cost.
#[test]
fn the_benchmark_of_views_runs_from_end_to_end() {
    let scale = ["--operations", "3000", "--groups", "500", "--requests", "2", "--seconds", "1"];
    let smaller = ["--connections", "4", "--pages", "2", "--turns", "1", "--store", "memory:"];
    let report = report(&[&["operate"][..], &scale, &smaller].concat());
    assert_eq!(report["views"]["operations"], 3_000, "{report}");
    for view in ["overview", "groups_view", "operations_view", "summary", "metrics"] {
        assert!(report["views"][view]["bytes"].as_u64() > Some(100), "{view}: {report}");
    }
    for with in ["with_token", "with_traces", "with_pages"] {
        assert!(report["overhead"][with].as_f64() > Some(0.0), "{with}: {report}");
    }
    assert_eq!(report["goals"].as_array().map(Vec::len), Some(6), "{report}");
}

/// DSP-8, DSP-10, DSP-18: generations over endpoints of which the first fails for a while: none is
/// lost or submitted twice, and no slot is leaked.
#[test]
fn dsp_8_dsp_10_dsp_18_the_benchmark_of_dispatch_runs_from_end_to_end() {
    let outage = ["--outage-after", "1", "--outage-seconds", "1", "--idle-seconds", "1", "--no-peer"];
    let load = ["dispatch", "--store", "memory:", "--generations", "200", "--workers", "8", "--rate", "80"];
    let report = report(&[load.as_slice(), &outage].concat());
    for load in ["unpaced", "steady"].map(|load| &report[load]) {
        let none = ["lost", "duplicate_submits", "leaked_slots"].map(|count| load[count].as_u64());
        assert_eq!(none, [Some(0); 3], "{load}");
    }
    assert!(report["steady"]["refused_submits"].as_u64() > Some(0), "the outage was noticed: {report}");
    assert!(report["steady"]["failover"]["samples"].as_u64() > Some(0), "{report}");
    // The few that every endpoint refused have failed.
    assert!(report["parked"]["parked"].as_u64() > Some(100), "{report}");
    assert_eq!(report["goals"].as_array().map(Vec::len), Some(6), "{report}");
}

/// Every job is accepted, started by one of the worker processes and settled: the benchmark itself
/// fails when they do not add up. Awaiting operations are measured in a process of their own.
#[test]
fn the_benchmark_of_workers_runs_from_end_to_end() {
    let scale =
        ["--seconds", "1", "--processes", "2", "--concurrency", "4", "--batch", "8", "--groups", "30"];
    let idle = ["--awaiting", "500", "--idle-seconds", "1"];
    let report = report(&[&["work", "--store", "memory:"], scale.as_slice(), idle.as_slice()].concat());
    assert!(report["lifecycles"].as_u64() > Some(0), "{report}");
    assert_eq!(report["start_delay"]["samples"], report["lifecycles"], "{report}");
    assert_eq!(report["awaiting"]["operations"], 500, "{report}");
    assert_eq!(report["goals"].as_array().map(Vec::len), Some(2), "{report}");
}

/// HYD-19, HYD-26: the benchmark of hydration runs: one question for all callers, two if no one
/// answers, whatever they do; every id of a scan is asked for once.
#[test]
fn hyd_19_hyd_26_the_benchmark_of_hydration_runs_from_end_to_end() {
    let args = ["--callers", "100", "--hits", "100", "--scan", "1000", "--slow-ms", "100"];
    let report = report(&[&["hydration"], args.as_slice()].concat());
    let ours = |case: &str| {
        let all = report[case].as_array().unwrap().iter();
        all.filter(|figure| figure["contender"] == "tidegate-hydration").cloned().collect::<Vec<_>>()
    };
    // On a busy machine a question may be repeated once before its answer is read.
    let asked = |figure: &Value, entities: u64| {
        assert!((entities..=2 * entities).contains(&figure["questions"].as_u64().unwrap()), "{report}");
        figure["found"].as_u64()
    };
    let found: Vec<_> = ours("one_entity").iter().map(|figure| asked(figure, 1)).collect();
    assert_eq!(found, [Some(100), Some(100), Some(0)], "{report}");
    assert_eq!(asked(&ours("many_entities")[0], 100), Some(100), "{report}");
    let scan = &ours("scan")[0];
    assert!(scan["questions"].as_u64() >= Some(1_000), "{scan}");
    assert_eq!((scan["not_found"].as_u64(), scan["missed"].as_u64()), (Some(1_000), Some(0)), "{scan}");
    assert_eq!(report["goals"].as_array().map(Vec::len), Some(6), "{report}");
}

/// Runs a benchmark and returns its report.
fn report(args: &[&str]) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate-bench"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TIDEGATE_")) {
        command.env_remove(name);
    }
    let output = command.args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
