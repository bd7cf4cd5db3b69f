//! Nodes whose store is unavailable for a while, or has lost its data.

use std::time::Duration;

use hyper::Method;
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::load::{self, Load, RetryMode};
use super::nodes::Nodes;
use super::store::Store;
use crate::ALONE;

/// How long the load goes on before and after.
const BETWEEN: Duration = Duration::from_millis(600);
/// Calls that were granted before the store went have left when none left for this long, which
/// takes so long at most.
const LAST_CALLS: Duration = Duration::from_millis(400);
const LAST_CALLS_MAX: Duration = Duration::from_secs(5);
/// How long the store stays away after that.
const AWAY: Duration = Duration::from_millis(1_500);
/// In which time acceptance goes on by itself.
const BACK: Duration = Duration::from_secs(15);
/// How long an answer may take while the store is away.
const REFUSED: Duration = Duration::from_secs(14);
/// Longer than a node goes without looking at the others, and without renewing a lease.
const NOTICED: Duration = Duration::from_secs(3);
const ALL: [usize; 4] = [0, 1, 2, 3];

/// Until it accepts again, whoever asks is told to come back later; this long it took.
pub(super) async fn accepts_again(nodes: &Nodes, operation: &Value) -> Duration {
    let since = Instant::now();
    let accepted = async {
        loop {
            match nodes.doors.post(operation).await {
                Some((200 | 202, ..)) => return,
                Some((503, headers, _)) if headers.contains_key("retry-after") => {
                    sleep(Duration::from_millis(50)).await;
                }
                other => panic!("{other:?}"),
            }
        }
    };
    timeout(BACK, accepted).await.expect("it accepts again in time");
    since.elapsed()
}

/// Waits until no call has left for so long, and returns how many had.
async fn quiet_after(time: Duration, calls: impl Fn() -> u64) -> u64 {
    loop {
        let before = calls();
        sleep(time).await;
        if calls() == before {
            return before;
        }
    }
}

/// OPS-8, LIM-30: while the store is away every acceptance is refused with a time, and no call
/// leaves; when it is back everything goes on by itself, and nothing that was acknowledged is lost.
async fn store_away(store: Store) {
    let mut nodes = Nodes::start(ALL.len(), store).await;
    let load = Load::start(&nodes, RetryMode::Patient);
    sleep(BETWEEN).await;
    tokio::task::block_in_place(|| nodes.store.kill());
    let calls = || nodes.limited.stats().calls + nodes.wide.stats().calls;
    let before = timeout(LAST_CALLS_MAX, quiet_after(LAST_CALLS, calls)).await.expect("calls end");
    let probe = |n| load::operation("limited", "probe", n);
    let asked = timeout(REFUSED, nodes.doors.post(&probe(0))).await.expect("it answers in time");
    let (status, headers, text) = asked.expect("a whole answer");
    assert_eq!(status, 503, "{text}");
    assert!(headers.contains_key("retry-after"), "{headers:?}");
    sleep(AWAY).await;
    assert_eq!(calls(), before, "calls left while the store was away");
    tokio::task::block_in_place(|| nodes.store.restart());
    println!("accepts again after {:?}", accepts_again(&nodes, &probe(0)).await);
    nodes.wait_until_shared_by(&ALL).await;
    sleep(BETWEEN).await;
    let groups = load.end().await;
    // Its call may have ended while that could not be written down.
    load::check(&nodes, &groups, |_| 1).await;
    load::check_no_step_back(&nodes).await;
}

/// OPS-8, LIM-30, on both stores side by side: most of the time is spent waiting.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_lim_30_the_store_goes_away_and_comes_back() {
    let _alone = ALONE.lock().await;
    let days = [tokio::spawn(store_away(Store::redis())), tokio::spawn(store_away(Store::postgres()))];
    for day in days {
        day.await.unwrap();
    }
}

/// A store that lost everything is a new one: the nodes serve again from nothing, and nothing of
/// before is known.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_lost_everything_is_begun_again() {
    const EACH: usize = 6;
    let _alone = ALONE.lock().await;
    let mut nodes = Nodes::start(ALL.len(), Store::redis()).await;
    let names = ["limited", "wide"].map(|upstream| (upstream, format!("{upstream}-lost")));
    let mut lost = Vec::new();
    for (upstream, group) in &names {
        for n in 0..EACH {
            lost.push(nodes.doors.submit(&load::operation(upstream, group, n)).await);
        }
    }
    for id in &lost {
        assert_eq!(nodes.doors.wait_until_ended(id).await["state"], "succeeded");
    }
    let Store::Redis(redis) = &mut nodes.store else { panic!("it is a Redis") };
    tokio::task::block_in_place(|| redis.restart_empty());
    for (upstream, group) in &names {
        accepts_again(&nodes, &load::operation(upstream, group, EACH)).await;
    }
    sleep(NOTICED).await;
    nodes.wait_until_shared_by(&ALL).await;
    let mut found = Vec::new();
    for (upstream, group) in &names {
        for n in 0..=EACH {
            found.push(nodes.doors.submit(&load::operation(upstream, group, n)).await);
        }
    }
    assert!(found.iter().all(|id| !lost.contains(id)), "{found:?} {lost:?}");
    for id in &found {
        assert_eq!(nodes.doors.wait_until_ended(id).await["state"], "succeeded");
    }
    for node in ALL {
        for id in &lost {
            let answer =
                nodes.doors.at(node).call(Method::GET, &format!("/v1/operations/{id}"), &[], None).await;
            assert_eq!(
                answer.as_ref().map(|(status, _)| *status),
                Some(404),
                "node {node}, {id}: {answer:?}"
            );
        }
        let listed: Value = serde_json::from_str(&nodes.doors.at(node).get("/v1/operations").await).unwrap();
        let mut listed: Vec<_> =
            listed["operations"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        let mut found: Vec<_> = found.iter().map(String::as_str).collect();
        listed.sort_unstable();
        found.sort_unstable();
        assert_eq!(listed, found, "node {node} lists what there is");
    }
}
