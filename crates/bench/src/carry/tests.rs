//! Defaults, refusals and the summary of turns; no calls are made.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct TestCli {
    #[command(flatten)]
    args: Args,
}

fn args(words: &[&str]) -> Args {
    TestCli::parse_from([&["carry"], words].concat()).args
}

#[test]
fn the_defaults_are_those_of_the_goals() {
    let args = args(&[]);
    assert_eq!(args.store, "file:tidegate-bench");
    assert_eq!((args.operations, args.turns, args.workers), (150_000, 3, 64));
    assert!(!args.answer);
}

#[tokio::test]
async fn a_load_of_nothing_is_refused_in_a_sentence() {
    for flag in ["--operations", "--turns", "--workers", "--groups", "--producers", "--outstanding"] {
        let refused = run(args(&[flag, "0"])).await.unwrap_err();
        assert!(refused.contains(flag) && refused.ends_with("must be at least 1"), "{refused}");
    }
}

/// A slow turn is slow for all of its cases: ratios are computed per turn.
#[test]
fn ratios_are_medians_over_turns() {
    let of = |calls_per_s: f64| Run { calls: 1, seconds: 1.0, calls_per_s, cpu_us_per_call: Some(1.0) };
    let turn = |speed: f64, deep: f64| Turn {
        bare: of(100.0 * speed),
        executor: of(90.0 * speed),
        shallow: of(70.0 * speed),
        in_memory: of(80.0 * speed),
        deep: of(70.0 * speed * deep),
    };
    let told = report(&args(&[]), BTreeMap::new(), vec![turn(1.0, 0.9), turn(0.1, 0.8), turn(5.0, 0.7)]);
    assert_eq!((told.deep_to_shallow, told.shallow_to_bare), (0.8, 0.7));
    let told = serde_json::to_value(told).unwrap();
    let met: Vec<_> = told["goals"].as_array().unwrap().iter().map(|goal| goal["met"].as_bool()).collect();
    assert_eq!(met, [Some(false), Some(true)]);
}
