//! The calls and the lower bound, on the two examples; no calls are made.

use std::time::Duration;

use clap::Parser;
use serde_json::Value;
use tidegate_discord::template::Template;
use tidegate_sim::discord::limits::DiscordLimits;

use super::{Args, GUILD, LARGE, Scenario, calls, lower_bound};

const SMALL: &str = include_str!("../../../../examples/guilds/small.yaml");

#[derive(Parser)]
struct TestCli {
    #[command(flatten)]
    args: Args,
}

fn stage(words: &[&str]) -> Scenario {
    Scenario::from_args(&TestCli::parse_from([&["discord"], words].concat()).args).unwrap()
}

/// The 215 channels alone take 21 windows of ten seconds before the last five. All but one, which
/// has no message and no neighbor, have something after them: a message, or the order.
#[test]
fn the_shortest_time_is_that_of_the_channels() {
    let told = serde_json::to_value(stage(&[]).shortest).unwrap();
    assert_eq!(
        (&told["limit"], &told["calls"], &told["windows"]),
        (&"channel-create".into(), &214.into(), &21.into())
    );
    assert_eq!(
        (told["seconds"].as_f64(), told["schedule_s"].as_f64()),
        (Some(210.1), Some(210.1)),
        "it can be reached"
    );
    let sooner = serde_json::to_value(stage(&["--sooner", "10"]).shortest).unwrap();
    assert_eq!(sooner["seconds"].as_f64(), Some(21.1));
}

/// Without limits it is the longest chain: a role, a channel for it, and a message in that channel.
#[test]
fn without_limits_the_shortest_time_is_the_longest_chain() {
    let template = Template::read("small.yaml", SMALL).unwrap();
    let calls = calls::plan_calls(&template, GUILD).unwrap();
    let shortest = lower_bound::lower_bound(&calls, &DiscordLimits::default(), Duration::from_secs(1));
    let told = serde_json::to_value(shortest).unwrap();
    assert_eq!(
        (told["windows"].as_u64(), told["seconds"].as_f64()),
        (Some(0), told["schedule_s"].as_f64()),
        "{told}"
    );
    assert!(told["seconds"].as_f64() >= Some(3.0), "{told}");
}

/// A peer gets everything of the plan: each name that stands for an id is an object that an earlier
/// call creates.
#[test]
fn peers_are_told_all_that_they_need() {
    let template = Template::read("large.yaml", LARGE).unwrap();
    let calls = calls::plan_calls(&template, GUILD).unwrap();
    assert_eq!(calls.len(), 463);
    let told = serde_json::to_value(&calls).unwrap();
    let told = told.as_array().unwrap();
    for (at, call) in told.iter().enumerate() {
        let earlier = |name: &Value| told[..at].iter().any(|other| other["makes"] == *name);
        assert!(call["needs"].as_array().unwrap().iter().all(earlier), "{call}");
        assert!(!call["path"].as_str().unwrap().contains('{'), "{call}");
    }
    let text = Value::Array(told.clone()).to_string();
    assert!(text.contains("/channels/<channel ") && text.contains("\"<role "));
    let order = told
        .iter()
        .find(|call| call["path"].as_str().unwrap().ends_with("/roles") && call["method"] == "PATCH");
    assert_eq!(order.unwrap()["needs"].as_array().map(Vec::len), Some(60));
}
