//! A node that is frozen for longer than its lease without knowing it: the worst that a node can do
//! to the others.

use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};

use super::load::{self, Load, RetryMode};
use super::nodes::Nodes;
use super::store::Store;

/// How long the load goes on before and after.
const BETWEEN: Duration = Duration::from_millis(800);
/// In which time the others have taken over and carry on.
const TAKEN_OVER: Duration = Duration::from_secs(15);
/// How many operations are looked at again after the node has woken.
const LOOKED_AT: usize = 3;
const ALL: [usize; 4] = [0, 1, 2, 3];

/// OPS-4, LIM-6: the node that keeps the limit is stopped past its lease and wakes: the others have
/// taken over by then, what it had under way is settled once, and it comes back to its share.
pub(super) async fn frozen_past_its_lease(store: Store) {
    let mut nodes = Nodes::start(ALL.len(), store).await;
    let load = Load::start(&nodes, RetryMode::Patient);
    sleep(BETWEEN).await;
    let probe = load::operation("limited", "probe", 0);
    let id = nodes.doors.submit(&probe).await;
    // Else its group would wait for the frozen node's claim to run out.
    nodes.doors.wait_until_ended(&id).await;
    let node = nodes.owner_of(&id, 0).await;
    let owned = nodes.partitions_of(node, node).await;
    nodes.freeze(node, true);
    let others: Vec<_> = ALL.into_iter().filter(|other| *other != node).collect();
    let since = Instant::now();
    let ended = timeout(TAKEN_OVER, async {
        let mut ended = Vec::new();
        for n in 1..=LOOKED_AT {
            let id = nodes.doors.submit(&load::operation("limited", "probe", n)).await;
            ended.push(nodes.doors.wait_until_ended(&id).await);
        }
        ended
    });
    let ended: Vec<Value> = ended.await.expect("the others take over in time");
    nodes.wait_until_shared_by(&others).await;
    println!("taken over from node {node} after {:?}", since.elapsed());
    nodes.freeze(node, false);
    nodes.wait_until_shared_by(&ALL).await;
    sleep(BETWEEN).await;
    let groups = load.end().await;
    // It may wake with a call in its hand, which then comes late: at most the one it had for each
    // group.
    load::check_order(&nodes, &groups, |partition| usize::from(owned.contains(&partition))).await;
    for mut before in ended {
        let mut after = nodes.doors.wait_until_ended(before["id"].as_str().unwrap()).await;
        // Only the node that carried it has the times of its steps and attempts.
        for operation in [&mut before, &mut after] {
            operation["journey"].take();
            operation["attempts"].take();
        }
        assert_eq!(before, after, "it was settled once");
    }
}
