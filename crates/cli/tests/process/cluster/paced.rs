//! A limit that one node enforces for callers of all nodes.

use tokio::time::timeout;

use super::nodes::{CAPACITY, Nodes, REFILL_PER_S};
use super::store::Store;
use crate::ALONE;
use crate::pace::{RUNS, SOON, batch, is_measured, span_of};

/// Calls that are handed in at each node.
const EACH: usize = 100;
const NODES: usize = 4;

/// LIM-14, LIM-6: with more work than fits, handed in at every node at once, at least 98 % of what
/// the upstream permits is used, and not one call is refused.
#[tokio::test(flavor = "multi_thread")]
async fn lim_14_lim_6_nodes_use_nearly_all_of_a_limit_together() {
    let _alone = ALONE.lock().await;
    for run in 1..=RUNS {
        let nodes = Nodes::start(NODES, Store::redis()).await;
        let calls = EACH * NODES;
        let handed_in = async {
            let each = |node| batch(nodes.doors.at(node), "limited", 50, EACH);
            tokio::join!(each(0), each(1), each(2), each(3))
        };
        let counted = timeout(SOON, span_of(&nodes.limited, calls as u64));
        let (_, span) = tokio::join!(handed_in, counted);
        let (span, gap) = span.unwrap_or_else(|_| panic!("{:?} within {SOON:?}", nodes.limited.stats()));
        let used = calls as f64 / (CAPACITY as f64 + REFILL_PER_S * span.as_secs_f64());
        if is_measured(run, used, (&nodes.limited.stats(), calls), gap) {
            return;
        }
    }
    panic!("nothing was measured: the machine stood still in each of {RUNS} runs");
}
