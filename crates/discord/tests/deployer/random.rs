//! Random servers, random faults, random kills: every run ends, says the truth, leaves no
//! duplicate, and writes nothing more once the guild is as asked.

use std::sync::Arc;
use std::time::Duration;

use tidegate_contract::rng::{SEED_VARIABLE, TestRng, seeds};
use tidegate_discord::deploy::{DeployReport, Error};
use tidegate_discord::plan::StepTarget;
use tidegate_sim::DiscordSimOptions;
use tidegate_sim::discord::quirks::DiscordQuirks;
use tidegate_store::Store;
use tokio::time::timeout;

use crate::foreign::{ForeignNode, ForeignServer, store};
use crate::world::SMALL;

/// Longer than any wait of a test: two windows of 48 hours.
const LONG: Duration = Duration::from_secs(4 * 86_400);
/// Writes to one object in one run: two that stick, or five that may have happened, and two that
/// fail.
const WRITES_MAX: u64 = 9;
/// Objects and orders of the template.
const TARGETS: u64 = 16;

fn server_options(rng: &mut TestRng) -> DiscordSimOptions {
    let mut options = DiscordSimOptions { seed: rng.roll(), ..DiscordSimOptions::default() };
    options.quirks = DiscordQuirks {
        no_orders: rng.percent(25),
        forget_overwrites: rng.percent(25),
        broken_edits: rng.percent(20),
        longer_wait_ms: if rng.percent(30) { rng.within(1..20_000) } else { 0 },
        refused_types: if rng.percent(20) { vec![*rng.pick(&[2, 5, 15])] } else { Vec::new() },
        false_headers: rng.percent(30),
        bot_permissions: rng.percent(10).then_some(*rng.pick(&[0x400, 0x1000_0410, 0x10])),
        no_community: rng.percent(10),
    };
    if rng.percent(40) {
        (options.fail_rate, options.cut_rate) = (0.08, 0.08);
    }
    if rng.percent(40) {
        options.limits.set("routes", rng.within(1..6), rng.within(200..5_000)).unwrap();
    }
    if rng.percent(30) {
        options.limits.set("role-creates", rng.within(1..4), rng.within(500..60_000)).unwrap();
    }
    options
}

/// A template whose deployment changes something in a guild that has the first one.
fn changed(rng: &mut TestRng) -> String {
    let changes = [
        ("name: Your", "name: Bright"),
        ("color: \"#3498db\"", "color: \"#112233\""),
        ("slow_mode: 10", "slow_mode: 20"),
        ("from 9 to 18", "from 8 to 20"),
        ("key: guest", "key: visitor"),
        ("deny: [SEND_MESSAGES]", "deny: [ADD_REACTIONS]"),
    ];
    let change = |text: String, (from, to): &(&str, &str)| match rng.percent(50) {
        true => text.replace(from, to),
        false => text,
    };
    changes.iter().fold(SMALL.to_owned(), change)
}

/// How a run is ended early.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EarlyEnd {
    /// It is stopped: calls in flight end, and what they did is recorded.
    Stop,
    /// It is killed: nothing that it has begun goes on, wherever it is.
    Kill,
}

/// Applies a template, stopped or killed now and then on the way; returns how it ended, after how
/// many runs, and how many of them were killed.
fn apply_interrupted(
    server: &Arc<ForeignServer>,
    store: &Arc<dyn Store>,
    template: &str,
    rng: &mut TestRng,
) -> (Result<DeployReport, Error>, u64, u64) {
    let mut kills = 0;
    let interrupted = rng.within(1..5);
    for run in 1..=interrupted {
        let (after, end) = (Duration::from_millis(rng.within(1..4_000)), rng.percent(70));
        let end = if end { EarlyEnd::Kill } else { EarlyEnd::Stop };
        let ended = server.run_process(async {
            let node = ForeignNode::open(server, store).await;
            let ended = timeout(after, node.apply(template)).await;
            if ended.is_ok() || end == EarlyEnd::Stop {
                node.engine.drain().await;
            }
            ended
        });
        if let Ok(ended) = ended {
            return (ended, run, kills);
        }
        kills += u64::from(end == EarlyEnd::Kill);
    }
    let ended = server.run_process(async {
        let node = ForeignNode::open(server, store).await;
        let ended = timeout(LONG, node.apply(template)).await.unwrap();
        node.engine.drain().await;
        ended
    });
    (ended, interrupted + 1, kills)
}

/// Checks what a run says against the guild, as a run without faults sees it.
async fn check_truth(
    server: &Arc<ForeignServer>,
    store: &Arc<dyn Store>,
    template: &str,
    ended: &Result<DeployReport, Error>,
    seed: u64,
) {
    let node = ForeignNode::open(server, store).await;
    let plan = timeout(LONG, node.plan(template)).await.unwrap().plan;
    match ended {
        Ok(report) => {
            assert!(plan.is_empty(), "seed {seed}: it says that it is done: {report:?}\n{plan}");
            let before = server.world().stats().all.writes;
            let again = timeout(LONG, node.apply(template)).await.unwrap().unwrap();
            let after = server.world().stats().all.writes;
            assert_eq!((again.writes(), after - before), (0, 0), "seed {seed}: {again:?}");
        }
        Err(Error::Incomplete { failures, .. }) => {
            let open = |target: &StepTarget| plan.writes().any(|step| step.target == *target);
            // A write whose response was lost may have happened after all.
            let wrong = failures.iter().find(|failure| {
                failure.cause.as_str() != "conflict"
                    && failure.cause.as_str() != "transient"
                    && !open(&failure.target)
            });
            assert!(wrong.is_none(), "seed {seed}: {wrong:?} is said to have failed\n{plan}");
        }
        Err(Error::Conflicts(conflicts)) => {
            let is_seen = !plan.conflicts.is_empty() || !plan.namesakes.is_empty();
            assert!(!conflicts.is_empty() && is_seen, "seed {seed}: {conflicts:?}");
        }
        Err(Error::ReadFailed(_)) => {}
        Err(other) => panic!("seed {seed}: {other}"),
    }
    node.engine.drain().await;
}

/// Returns how many runs were killed.
fn scenario(seed: u64) -> u64 {
    let mut rng = TestRng::new(seed);
    let options = server_options(&mut rng);
    let server = ForeignServer::new(&options);
    let store = store(&server);
    let mut killed = 0;
    let style = if rng.percent(25) { "names: clean\n" } else { "" };
    for template in [SMALL.to_owned(), changed(&mut rng), SMALL.to_owned()] {
        let template = format!("{style}{template}");
        let before = server.world().stats().all.writes;
        let (ended, runs, kills) = apply_interrupted(&server, &store, &template, &mut rng);
        killed += kills;
        let stats = server.world().stats();
        assert_eq!(stats.all.duplicates, 0, "seed {seed}: {:?}", stats.duplicates_by_key);
        assert_eq!(stats.bans, 0, "seed {seed}");
        let writes = stats.all.writes - before;
        assert!(writes <= TARGETS * WRITES_MAX * runs, "seed {seed}: {writes} writes in {runs} runs");
        // What is true is seen without faults.
        server.world().set_fault_rates(0.0, 0.0);
        server.run_process(check_truth(&server, &store, &template, &ended, seed));
        server.world().set_fault_rates(options.fail_rate, options.cut_rate);
    }
    killed
}

/// OPS-14, OPS-15, OPS-18, OPS-19: few seeds by default, 200 with `./test --long`. Most seeds kill
/// some runs.
#[test]
fn ops_19_every_apply_ends_and_says_the_truth() {
    let count = if std::env::var_os(SEED_VARIABLE).is_some() { 200 } else { 12 };
    let killed: u64 = seeds(count).map(scenario).sum();
    println!("{killed} runs of {count} seeds were killed");
    assert!(killed > count, "{killed} runs of {count} seeds were killed");
}
