//! A node that is killed under load.

use std::collections::BTreeSet;
use std::time::Duration;

use tidegate_sim::rng::SeededRng;
use tokio::time::sleep;

use super::load::{self, Load, RetryMode};
use super::nodes::Nodes;
use super::store::Store;

const ALL: [usize; 4] = [0, 1, 2, 3];
/// How long the load goes on before a kill, in milliseconds.
const LOAD_MS: std::ops::Range<u64> = 400..900;

/// Kills a node, which stays in rotation: its callers find out by themselves. Answers what it
/// owned.
async fn kill(nodes: &mut Nodes, node: usize) -> BTreeSet<u16> {
    let owned = nodes.partitions_of(node, node).await;
    assert!(!owned.is_empty(), "node {node} owns nothing");
    nodes.kill(node);
    owned
}

/// How long the load goes on before a kill.
fn draw(chance: &mut SeededRng) -> Duration {
    Duration::from_millis(LOAD_MS.start + chance.next() % (LOAD_MS.end - LOAD_MS.start))
}

/// OPS-8, OPS-4, LIM-6, LIM-24: of four nodes any one is killed and comes back at once. Then the
/// one that keeps the limit is killed and stays away until the others have its work; it comes back
/// to its share. Nothing that was accepted is lost, a group goes on in its order, at most what the
/// dead node had under way is repeated, and no limit is overstepped.
pub(super) async fn killed_and_back(store: Store) {
    let mut chance = super::chance(&store.url());
    let mut nodes = Nodes::start(ALL.len(), store).await;
    let load = Load::start(&nodes, RetryMode::Patient);
    sleep(draw(&mut chance)).await;
    let node = (chance.next() % ALL.len() as u64) as usize;
    let first = kill(&mut nodes, node).await;
    nodes.start_again(node);
    nodes.wait_until_shared_by(&ALL).await;
    sleep(draw(&mut chance)).await;
    let probe = nodes.doors.submit(&load::operation("limited", "probe", 0)).await;
    let node = nodes.owner_of(&probe, 0).await;
    let second = kill(&mut nodes, node).await;
    let others: Vec<_> = ALL.into_iter().filter(|other| *other != node).collect();
    nodes.wait_until_shared_by(&others).await;
    nodes.start_again(node);
    nodes.wait_until_shared_by(&ALL).await;
    let groups = load.end().await;
    let was_in = |owned: &BTreeSet<u16>, partition| usize::from(owned.contains(&partition));
    load::check(&nodes, &groups, |partition| was_in(&first, partition) + was_in(&second, partition)).await;
    load::check_no_step_back(&nodes).await;
    // What was acknowledged before the first kill is still known by its key.
    for group in &groups {
        let again = load::operation(group.upstream, &group.name, 0);
        assert_eq!(nodes.doors.submit(&again).await, group.ids[0], "{}", group.name);
    }
}
