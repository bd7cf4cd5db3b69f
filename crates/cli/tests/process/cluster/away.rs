//! A node that cannot reach its store: what it refused meanwhile is never sent, what it accepts
//! afterwards is, and a stop ends in time.

use std::collections::BTreeSet;
use std::time::Duration;

use hyper::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::nodes::{Nodes, Setup};
use super::relay::{LinkMode, Relay};
use super::store::Store;
use crate::ALONE;
use crate::caller::Caller;

const EACH: usize = 50;
/// How long an answer may take while the store is away.
const ANSWERED: Duration = Duration::from_secs(20);
/// How long calls in flight are given when a node stops, as the nodes are configured.
const DRAIN: Duration = Duration::from_secs(10);
/// And everything after that.
const GOODBYE: Duration = Duration::from_secs(5);
/// The lines about two outages of all partitions at once; one may notice each outage late.
const LINES_MAX: usize = 4;

fn batch(tag: &str) -> Value {
    let one = |n: usize| {
        json!({
            "upstream": "wide", "group": format!("{tag}-{n}"), "dedupe_key": format!("{tag}-{n}"),
            "request": { "method": "POST", "path": format!("/{tag}/{n}"), "body": { "id": format!("{tag}-{n}") } },
        })
    };
    json!({ "operations": (0..EACH).map(one).collect::<Vec<_>>() })
}

async fn post(nodes: &Nodes, tag: &str) -> Option<(u16, String)> {
    let batch = batch(tag);
    let posted = nodes.doors.at(0).call(Method::POST, "/v1/operations/batch", &[], Some(&batch));
    timeout(ANSWERED, posted).await.expect("it answers in time")
}

fn accepted(answer: &str) -> usize {
    let answer: Value = serde_json::from_str(answer).unwrap();
    answer["operations"].as_array().map_or(0, |all| all.iter().filter(|one| one["id"].is_string()).count())
}

/// The first parts of the paths that reached the upstream, and how many writes that were.
async fn written(nodes: &Nodes) -> (BTreeSet<String>, usize) {
    let log = Caller::of(&format!("http://{}", nodes.wide.addr())).get("/_sim/log").await;
    let log: Value = serde_json::from_str(&log).unwrap();
    let writes = log["writes"].as_array().unwrap();
    let first = |path: &str| path.split('/').nth(1).unwrap_or_default().to_owned();
    (writes.iter().map(|one| first(one["path"].as_str().unwrap())).collect(), writes.len())
}

async fn store_out_of_reach(store: Store) {
    let (port, url) = (store.port(), store.url());
    let relay = Relay::start(port, super::chance(&url)).await;
    let url = url.replace(&port.to_string(), &relay.port.to_string());
    let mut nodes = Nodes::start_with(1, store, Setup { url: Some(url), ..Setup::default() }).await;

    relay.set_mode(LinkMode::Gone);
    let refused = post(&nodes, "refused").await;
    assert!(refused.as_ref().is_none_or(|(_, text)| !text.contains("\"id\"")), "{refused:?}");
    relay.set_mode(LinkMode::Good);
    let back = Instant::now();
    while !matches!(post(&nodes, "accepted").await, Some((202, text)) if accepted(&text) == EACH) {
        assert!(back.elapsed() < ANSWERED, "it accepts again");
        sleep(Duration::from_millis(200)).await;
    }
    let sent = async {
        while written(&nodes).await.1 < EACH {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(ANSWERED, sent).await.expect("what was accepted is sent");
    assert_eq!(written(&nodes).await, (BTreeSet::from(["accepted".to_owned()]), EACH));

    relay.set_mode(LinkMode::Gone);
    // With this the log cannot be written, however early everything else was.
    let refused = post(&nodes, "late").await;
    assert!(refused.as_ref().is_none_or(|(_, text)| !text.contains("\"id\"")), "{refused:?}");
    let stopping = Instant::now();
    let said = nodes.stop_within(0, DRAIN + GOODBYE).await;
    println!("stopped after {:?}", stopping.elapsed());
    assert!(said.contains("the engine stops"), "it says what was left: {said}");
    for warning in ["lease was not renewed", "the log could not be written"] {
        let count = said.matches(warning).count();
        assert!(count <= LINES_MAX, "{warning:?} was logged {count} times for two outages");
    }
    assert!(said.contains("the log could not be written"), "{said}");
}

/// OPS-8: on both stores side by side.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_a_node_without_its_store_sends_nothing_it_refused_and_stops_in_time() {
    let _alone = ALONE.lock().await;
    for day in [Store::redis(), Store::postgres()].map(|store| tokio::spawn(store_out_of_reach(store))) {
        day.await.unwrap();
    }
}
