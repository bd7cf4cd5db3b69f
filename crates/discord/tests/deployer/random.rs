//! Random servers, random faults, random kills: every run ends, says the truth, leaves no
//! duplicate, and writes nothing more once the guild is as asked.

use std::time::Duration;

use tidegate_contract::rng::{SEED_VARIABLE, TestRng, seeds};
use tidegate_discord::deploy::{DeployReport, Error};
use tidegate_discord::plan::StepTarget;
use tidegate_sim::DiscordSimOptions;
use tidegate_sim::discord::quirks::DiscordQuirks;
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

/// Applies a template, killed now and then on the way; returns how it ended, and after how many
/// runs.
async fn apply_killed(
    server: &std::sync::Arc<ForeignServer>,
    store: &std::sync::Arc<dyn tidegate_store::Store>,
    template: &str,
    rng: &mut TestRng,
) -> (Result<DeployReport, Error>, u64) {
    for run in 1..=rng.within(1..4) {
        let node = ForeignNode::open(server, store).await;
        let killed = timeout(Duration::from_millis(rng.within(1..4_000)), node.apply(template)).await;
        node.engine.drain().await;
        if let Ok(ended) = killed {
            return (ended, run);
        }
    }
    let node = ForeignNode::open(server, store).await;
    let ended = timeout(LONG, node.apply(template)).await.unwrap();
    node.engine.drain().await;
    (ended, 4)
}

async fn scenario(seed: u64) {
    let mut rng = TestRng::new(seed);
    let options = server_options(&mut rng);
    let server = ForeignServer::new(&options);
    let store = store(&server);
    for template in [SMALL.to_owned(), changed(&mut rng), SMALL.to_owned()] {
        let before = server.world().stats().all.writes;
        let (ended, runs) = apply_killed(&server, &store, &template, &mut rng).await;
        let stats = server.world().stats();
        assert_eq!(stats.all.duplicates, 0, "seed {seed}: {:?}", stats.duplicates_by_key);
        assert_eq!(stats.bans, 0, "seed {seed}");
        let writes = stats.all.writes - before;
        assert!(writes <= TARGETS * WRITES_MAX * runs, "seed {seed}: {writes} writes in {runs} runs");
        // What is true is seen without faults.
        server.world().set_fault_rates(0.0, 0.0);
        let node = ForeignNode::open(&server, &store).await;
        let plan = timeout(LONG, node.plan(&template)).await.unwrap().plan;
        match &ended {
            Ok(report) => {
                assert!(plan.is_empty(), "seed {seed}: it says that it is done: {report:?}\n{plan}");
                let before = server.world().stats().all.writes;
                let again = timeout(LONG, node.apply(&template)).await.unwrap().unwrap();
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
                assert!(!conflicts.is_empty() && !plan.conflicts.is_empty(), "seed {seed}: {conflicts:?}");
            }
            Err(Error::ReadFailed(_)) => {}
            Err(other) => panic!("seed {seed}: {other}"),
        }
        node.engine.drain().await;
        server.world().set_fault_rates(options.fail_rate, options.cut_rate);
    }
}

/// OPS-14, OPS-15, OPS-18, OPS-19: few seeds by default, 200 with `./test --long`.
#[tokio::test(start_paused = true)]
async fn ops_19_every_apply_ends_and_says_the_truth() {
    let count = if std::env::var_os(SEED_VARIABLE).is_some() { 200 } else { 12 };
    for seed in seeds(count) {
        scenario(seed).await;
    }
}
