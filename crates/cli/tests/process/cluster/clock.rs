//! A node whose wall clock jumps by an hour, forwards and backwards, while the others' do not.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::load::{self, Load, RetryMode};
use super::node_clients::NodeClients;
use super::nodes::{Nodes, Setup};
use super::store::Store;
use crate::ALONE;
use crate::clocks::Clocks;

const HOUR_S: i64 = 3_600;
/// How long the load runs before and after.
const BETWEEN: Duration = Duration::from_millis(600);
/// Longer than a process goes by what it read of its clock last.
const SEEN: Duration = Duration::from_secs(2);
/// What is put off, in all partitions; for how long, so that they change hands meanwhile; and how
/// late it may be.
const GROUPS: usize = 40;
const DELAY: Duration = Duration::from_secs(5);
const LATE_MAX: Duration = Duration::from_secs(6);
/// An owner whose own clock is wrong is behind by as long as the store took to answer it.
const EARLY_MAX: Duration = Duration::from_secs(1);
const ALL: [usize; 4] = [0, 1, 2, 3];

/// How far the lines that a node wrote are from its first one, in minutes of the day.
fn minutes_off(said: &str) -> Vec<i64> {
    const DAY: i64 = 24 * 60;
    let minute = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let time = line["timestamp"].as_str()?.split_once('T')?.1.to_owned();
        let mut numbers = time.split(':').map(str::parse::<i64>);
        Some(numbers.next()?.ok()? * 60 + numbers.next()?.ok()?)
    };
    let minutes: Vec<i64> = said.lines().filter_map(minute).collect();
    let off = |minute: &i64| (minute - minutes[0] + DAY / 2).rem_euclid(DAY) - DAY / 2;
    minutes.iter().map(off).collect()
}

/// Operations that are put off run when their time has come, by the time that passes here.
async fn submit_delayed(doors: Arc<NodeClients>, round: usize) {
    let mut waiting = JoinSet::new();
    for n in 0..GROUPS {
        let doors = Arc::clone(&doors);
        waiting.spawn(async move {
            let upstream = if n == 0 { "limited" } else { "wide" };
            let mut operation = load::operation(upstream, &format!("later{round}-{n}"), 0);
            operation["delay_ms"] = json!(DELAY.as_millis() as u64);
            let asked = Instant::now();
            let id = doors.submit(&operation).await;
            let accepted = Instant::now();
            let ended = doors.wait_until_ended(&id).await;
            let (most, least) = (asked.elapsed(), accepted.elapsed());
            assert!(most + EARLY_MAX >= DELAY, "{id} ran after {most:?} of {DELAY:?}: {ended}");
            assert!(least <= DELAY + LATE_MAX, "{id} ran after {least:?} of {DELAY:?}: {ended}");
        });
    }
    waiting.join_all().await;
}

/// OPS-8, OPS-4, LIM-6: the node that keeps the limit has its clock moved, and has to take on
/// partitions of a node that leaves. Nothing is overstepped, put off for longer or shorter, lost or
/// carried twice, and no lease runs out.
async fn an_hour_off(store: Store) {
    let clocks = Clocks::new(ALL.len());
    let environments = ALL.into_iter().map(|node| clocks.environment(node)).collect();
    let mut nodes = Nodes::start_with(ALL.len(), store, Setup { environments, ..Setup::default() }).await;
    let load = Load::start(&nodes, RetryMode::Patient);
    sleep(BETWEEN).await;
    let probe = nodes.doors.submit(&load::operation("limited", "probe", 0)).await;
    for (round, seconds) in [HOUR_S, -HOUR_S].into_iter().enumerate() {
        let node = nodes.owner_of(&probe, 0).await;
        let kept = nodes.partitions_of(node, node).await;
        let waiting = tokio::spawn(submit_delayed(Arc::clone(&nodes.doors), round));
        clocks.set(node, seconds);
        sleep(SEEN).await;
        let leaves = (node + 1) % ALL.len();
        nodes.stop(leaves).await;
        let others: Vec<_> = ALL.into_iter().filter(|other| *other != leaves).collect();
        nodes.wait_until_shared_by(&others).await;
        let now = nodes.partitions_of(node, node).await;
        assert!(kept.is_subset(&now) && now.len() > kept.len(), "{kept:?} became {now:?}");
        waiting.await.unwrap();
        nodes.start_again(leaves);
        nodes.wait_until_shared_by(&ALL).await;
        let off = minutes_off(&nodes.stop(node).await);
        let is_off = off.iter().any(|minutes| (minutes - seconds / 60).abs() < 10);
        assert!(is_off, "the clock was never {seconds} s off: {off:?}");
        clocks.set(node, 0);
        nodes.start_again(node);
        nodes.wait_until_shared_by(&ALL).await;
    }
    let groups = load.end().await;
    load::check(&nodes, &groups, |_| 0).await;
    load::check_no_step_back(&nodes).await;
}

/// OPS-8, OPS-4, LIM-6, on both stores side by side.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_lim_6_a_clock_that_jumps_moves_nothing() {
    let _alone = ALONE.lock().await;
    for day in [Store::redis(), Store::postgres()].map(|store| tokio::spawn(an_hour_off(store))) {
        day.await.unwrap();
    }
}
