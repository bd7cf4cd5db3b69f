//! A benchmark from end to end, far too small to say anything: that it runs, starts and ends all it needs, and tells what it
//! says it tells.

use serde_json::Value;

use crate::ALONE;
use crate::child::tidegate;

/// Long enough that every shop is called: the dearest query takes a small shop five seconds.
const SCALE: [&str; 10] =
    ["--nodes", "2", "--shops", "10", "--seconds", "8", "--warm-up", "1", "--backlog", "2"];

/// LIM-14, LIM-13: shops of all plans on two nodes, one of them busy, from budgets that are learned: none is overstepped.
#[tokio::test(flavor = "multi_thread")]
async fn lim_14_lim_13_the_benchmark_of_shops_runs_from_end_to_end() {
    let _alone = ALONE.lock().await;
    let mut command = tidegate();
    command.args(["bench", "shopify", "--no-peer"]).args(SCALE);
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (run, shops) in [("without_the_busy_shop", 9), ("with_the_busy_shop", 10)] {
        let run = &report[run];
        let throttled = [&run["throttled_before_learned"], &run["throttled_after_learned"]];
        assert_eq!(throttled, [0, 0], "{run}");
        let plans = run["used"]["by_plan"].as_array().unwrap();
        assert_eq!(plans.iter().filter_map(|plan| plan["shops"].as_u64()).sum::<u64>(), shops, "{run}");
        // How much of it is for the benchmark to say; nearly nothing would be a fault in its load.
        assert!(run["used"]["used"].as_f64() > Some(0.5), "{run}");
        assert!(run["start_delays"]["p99_to_mean"].as_f64() >= Some(1.0), "{run}");
    }
    assert_eq!(report["goals"].as_array().map(Vec::len), Some(4), "{report}");
    assert!(report["peer"].is_null(), "{report}");
}
