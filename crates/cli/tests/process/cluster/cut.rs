//! A faulty network between the nodes and their store: connections that break in the middle of a
//! batch, and responses that are lost after the batch was written.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::load::{self, Load, RetryMode};
use super::nodes::{Nodes, Setup};
use super::relay::{LinkMode, Relay};
use super::store::Store;
use crate::ALONE;

/// How long the load runs before and after.
const BETWEEN: Duration = Duration::from_millis(600);
/// How long the network is faulty.
const BAD: Duration = Duration::from_secs(5);
/// How much longer, on a machine on which too few connections went bad.
const LONGEST: Duration = Duration::from_secs(10);
/// Fewer connections that went bad prove nothing.
const CUTS_MIN: usize = 10;
const ALL: [usize; 4] = [0, 1, 2, 3];

/// OPS-8, OPS-4, LIM-6: whatever was acknowledged is carried, in order and within the limit. A
/// batch of which nobody knows is found out about, and a call that never left is given back:
/// nothing is carried twice, because no node is away for as long as its lease.
async fn on_a_bad_line(store: Store, line: LinkMode) {
    let (port, url) = (store.port(), store.url());
    let relay = Relay::start(port, super::chance(&format!("{line:?} {url}"))).await;
    let url = url.replace(&port.to_string(), &relay.port.to_string());
    let nodes = Nodes::start_with(ALL.len(), store, Setup { url: Some(url), ..Setup::default() }).await;
    let load = Load::start(&nodes, RetryMode::Patient);
    sleep(BETWEEN).await;
    relay.set_mode(line);
    sleep(BAD).await;
    // On a busy machine there are fewer batches in that time.
    let since = Instant::now();
    while relay.cuts() < CUTS_MIN && since.elapsed() < LONGEST {
        sleep(Duration::from_millis(100)).await;
    }
    relay.set_mode(LinkMode::Good);
    println!("{line:?}: {} connections went bad", relay.cuts());
    nodes.wait_until_shared_by(&ALL).await;
    sleep(BETWEEN).await;
    let groups = load.end().await;
    load::check(&nodes, &groups, |_| 0).await;
    load::check_no_step_back(&nodes).await;
    assert!(relay.cuts() >= CUTS_MIN, "{} connections went bad", relay.cuts());
}

/// OPS-8, OPS-4, LIM-6, on both stores side by side.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_lim_6_connections_break_in_the_middle_of_a_batch() {
    let _alone = ALONE.lock().await;
    both(LinkMode::Cut).await;
}

/// OPS-8, OPS-4, LIM-6: what was written and not confirmed is not written again.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_lim_6_answers_are_lost_after_the_batch_was_written() {
    let _alone = ALONE.lock().await;
    both(LinkMode::Swallow).await;
}

async fn both(line: LinkMode) {
    for store in [Store::redis(), Store::postgres()].map(|store| tokio::spawn(on_a_bad_line(store, line))) {
        store.await.unwrap();
    }
}
