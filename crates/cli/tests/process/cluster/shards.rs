//! A Redis Cluster that loses one of its three servers for a while: partitions on the others
//! continue.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::load::{self, Load, RetryMode};
use super::node_clients::partition_of;
use super::nodes::{Nodes, PARTITIONS};
use super::outage::accepts_again;
use super::store::{Store, ask_redis};
use crate::ALONE;

/// How long the load goes on before and after.
const BETWEEN: Duration = Duration::from_millis(800);
/// In which time an operation is done where nothing is amiss.
const GOES_ON: Duration = Duration::from_secs(6);
/// How long an answer may take where the store is away.
const REFUSED: Duration = Duration::from_secs(14);
/// Groups that are looked at; enough to be in most partitions.
const PROBES: usize = 40;
/// Slots, and the servers that have a third of them each.
const SLOTS: u64 = 16_384;
const SERVERS: u64 = 3;
const ALL: [usize; 4] = [0, 1, 2, 3];

/// The server that keeps a key.
async fn keeper(port: u16, key: &str) -> usize {
    let slot: u64 = ask_redis(port, &format!("CLUSTER KEYSLOT {key}")).await.parse().unwrap();
    (0..SERVERS).rfind(|server| server * SLOTS / SERVERS <= slot).unwrap() as usize
}

/// One group in each partition, as far as chance finds them, with how many operations it has.
async fn probes(nodes: &Nodes) -> BTreeMap<u16, String> {
    let mut groups = BTreeMap::new();
    for n in 0..PROBES {
        let group = format!("probe{n}");
        let id = nodes.doors.submit(&load::operation("wide", &group, 0)).await;
        groups.entry(partition_of(&id)).or_insert(group);
    }
    groups
}

/// OPS-8, OPS-4, LIM-6, LIM-30: the server with the register of the nodes is killed. Partitions on
/// the other servers go on; the rest is refused with a time. When it is back everything goes on,
/// and nothing that was acknowledged is lost.
#[tokio::test(flavor = "multi_thread")]
async fn ops_8_ops_4_lim_6_lim_30_one_server_of_a_redis_cluster_goes_and_comes_back() {
    let _alone = ALONE.lock().await;
    let mut nodes = Nodes::start(ALL.len(), tokio::task::block_in_place(Store::cluster)).await;
    let port = nodes.store.port();
    let lost = keeper(port, "tg:nodes").await;
    let mut away = BTreeSet::new();
    for partition in 0..PARTITIONS as u16 {
        if keeper(port, &format!("tg:{{{partition}}}:head")).await == lost {
            away.insert(partition);
        }
    }
    let probes = probes(&nodes).await;
    let (dead, alive): (Vec<_>, Vec<_>) = probes.iter().partition(|(partition, _)| away.contains(partition));
    assert!(!dead.is_empty() && alive.len() > 3, "{away:?} of {probes:?}");
    let load = Load::start(&nodes, RetryMode::Patient);
    sleep(BETWEEN).await;
    nodes.store.as_cluster().kill(lost);
    let mut slowest = Duration::ZERO;
    for round in 1..=3 {
        for (partition, group) in &alive {
            let since = Instant::now();
            let done = async {
                let id = nodes.doors.submit(&load::operation("wide", group, round)).await;
                nodes.doors.wait_until_ended(&id).await
            };
            let done = timeout(GOES_ON, done).await;
            assert!(done.is_ok(), "partition {partition} does not go on in round {round}");
            slowest = slowest.max(since.elapsed());
        }
    }
    println!("the slowest operation of a server that is there took {slowest:?}");
    let probe = load::operation("wide", dead[0].1, 1);
    let refused = timeout(REFUSED, nodes.doors.post(&probe)).await.expect("it answers in time");
    let (status, headers, text) = refused.expect("a whole answer");
    assert!(status == 503 && headers.contains_key("retry-after"), "{status} {headers:?} {text}");
    tokio::task::block_in_place(|| nodes.store.as_cluster().restart(lost));
    println!("accepts again after {:?}", accepts_again(&nodes, &probe).await);
    nodes.wait_until_shared_by(&ALL).await;
    sleep(BETWEEN).await;
    let groups = load.end().await;
    // Its call may have ended while that could not be written down, and its node lost the lease
    // before it could be.
    load::check(&nodes, &groups, |partition| usize::from(away.contains(&partition))).await;
    load::check_no_step_back(&nodes).await;
}
