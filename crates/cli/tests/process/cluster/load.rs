//! Callers who hand operations in, one after the other for each group, and compare what was
//! acknowledged with what reached the upstreams.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::node_clients::{NodeClients, id_in, partition_of};
use super::nodes::Nodes;
use crate::arrivals::arrivals;

const UPSTREAMS: [&str; 2] = ["limited", "wide"];
/// Groups of each upstream.
const GROUPS: usize = 8;
/// What one group has waiting at the most, so that the end comes soon after the load.
const AHEAD: usize = 4;
/// Operations of each group, however slow the machine is: fewer would be no load.
const EACH_MIN: usize = 7;
/// Between two operations of a group: some hundred a second in all.
const PACE: Duration = Duration::from_millis(30);
/// How long the end of everything is waited for: what a dead node had under way is taken up when
/// its claim has run out.
const ENDED: Duration = Duration::from_secs(45);

/// How callers take a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryMode {
    /// Whatever is not accepted at once has failed. They use no keys: nothing may be handed in
    /// twice.
    Strict,
    /// Refused for now, or not answered: again with the same key, at any node.
    Patient,
}

/// What was acknowledged to one group's caller, in the order it handed it in.
pub(super) struct GroupLog {
    pub upstream: &'static str,
    pub name: String,
    pub ids: Vec<String>,
    took: Vec<Duration>,
}

/// Callers at work.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    groups: Vec<JoinHandle<GroupLog>>,
}

/// One operation of a group.
pub(super) fn operation(upstream: &str, group: &str, n: usize) -> Value {
    json!({
        "upstream": upstream, "group": group, "dedupe_key": format!("{group}:{n}"), "on_unknown": "repeat",
        "max_attempts": 100, "request": { "method": "POST", "path": format!("/{group}"), "body": { "id": n } },
    })
}

async fn work(
    doors: Arc<NodeClients>,
    mut group: GroupLog,
    temper: RetryMode,
    stop: Arc<AtomicBool>,
) -> GroupLog {
    let mut ended = 0;
    loop {
        let stopped = stop.load(Ordering::Relaxed) && group.ids.len() >= EACH_MIN;
        if !stopped && group.ids.len() < ended + AHEAD {
            let mut operation = operation(group.upstream, &group.name, group.ids.len());
            if temper == RetryMode::Strict {
                operation["dedupe_key"] = Value::Null;
            }
            let since = Instant::now();
            let id = match temper {
                RetryMode::Patient => doors.submit(&operation).await,
                RetryMode::Strict => match doors.post(&operation).await {
                    Some((202, _, answer)) => id_in(&answer),
                    refused => panic!("{}, {}: {refused:?}", group.name, group.ids.len()),
                },
            };
            group.took.push(since.elapsed());
            group.ids.push(id);
            sleep(PACE).await;
        } else if ended < group.ids.len() {
            let what = doors.wait_until_ended(&group.ids[ended]).await;
            assert_eq!(what["state"], "succeeded", "{}, {ended}: {what}", group.name);
            ended += 1;
        } else {
            return group;
        }
    }
}

impl Load {
    /// Callers of both upstreams, at all nodes that are in rotation.
    pub(super) fn start(nodes: &Nodes, temper: RetryMode) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let names = UPSTREAMS.iter().flat_map(|upstream| (0..GROUPS).map(move |n| (*upstream, n)));
        let groups = names.map(|(upstream, n)| {
            let group =
                GroupLog { upstream, name: format!("{upstream}{n}"), ids: Vec::new(), took: Vec::new() };
            tokio::spawn(work(Arc::clone(&nodes.doors), group, temper, Arc::clone(&stop)))
        });
        Self { groups: groups.collect(), stop }
    }

    /// Lets them finish: everything that was accepted has ended.
    pub(super) async fn end(self) -> Vec<GroupLog> {
        self.stop.store(true, Ordering::Relaxed);
        let mut ended = Vec::new();
        for group in self.groups {
            let name = ended.len();
            ended.push(
                timeout(ENDED, group).await.unwrap_or_else(|_| panic!("group {name} does not end")).unwrap(),
            );
        }
        ended
    }
}

/// Everything that was acknowledged reached its upstream, in order, and one at a time in each
/// group; no call was beyond the limit. A group's operations were repeated at most as often as
/// `repeats` says. Answers how many repeats there were.
pub(super) async fn check(nodes: &Nodes, groups: &[GroupLog], repeats: impl Fn(u16) -> usize) -> usize {
    for upstream in [&nodes.limited, &nodes.wide] {
        let stats = upstream.stats();
        assert_eq!(stats.overlapping, 0, "two calls of one group at once: {stats:?}");
    }
    check_order(nodes, groups, repeats).await
}

/// The same for calls that may overlap: those of a node that wakes with one in its hand.
pub(super) async fn check_order(nodes: &Nodes, groups: &[GroupLog], repeats: impl Fn(u16) -> usize) -> usize {
    let mut arrived = arrivals(&nodes.limited).await;
    arrived.extend(arrivals(&nodes.wide).await);
    let (mut accepted, mut repeated) = (0, 0);
    for group in groups {
        let arrived = &arrived[&format!("/{}", group.name)];
        let first = first_of(arrived);
        assert!(first.iter().copied().eq(0..group.ids.len()), "{}: {arrived:?}", group.name);
        let more = arrived.len() - first.len();
        let most = repeats(partition_of(&group.ids[0]));
        assert!(more <= most, "{} was repeated {more} times, {most} at the most: {arrived:?}", group.name);
        accepted += group.ids.len();
        repeated += more;
    }
    let distinct: BTreeSet<_> = groups.iter().flat_map(|group| &group.ids).collect();
    assert_eq!(distinct.len(), accepted, "one id was given to two operations");
    let (stats, p99) = (nodes.limited.stats(), p99(groups));
    println!("{accepted} accepted and done, p99 {p99:?}, {repeated} repeated, {stats:?}");
    assert!(accepted > 100, "{accepted} operations are no load");
    assert_eq!(stats.overstepped, 0, "{stats:?}");
    repeated
}

/// Which arrivals were the first of their operation, in order.
fn first_of(arrived: &[usize]) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    arrived.iter().copied().filter(|n| seen.insert(*n)).collect()
}

/// No repeat came after something that was behind it.
pub(super) async fn check_no_step_back(nodes: &Nodes) {
    let mut arrived: BTreeMap<String, Vec<usize>> = arrivals(&nodes.limited).await;
    arrived.extend(arrivals(&nodes.wide).await);
    for (group, arrived) in arrived {
        assert!(arrived.is_sorted(), "{group}: {arrived:?}");
    }
}

/// How long acceptance took at the most, but for one in a hundred.
fn p99(groups: &[GroupLog]) -> Duration {
    let mut took: Vec<_> = groups.iter().flat_map(|group| &group.took).copied().collect();
    took.sort();
    took.get(took.len() * 99 / 100).copied().unwrap_or_default()
}
