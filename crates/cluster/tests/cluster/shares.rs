//! The ownership of partitions as nodes join, leave, die and are cut off.

use std::time::Duration;

use tidegate_cluster::PartitionRoute;
use tidegate_contract::{FaultPlan, InjectedFault, StoreMethod};

use crate::world::{NodeOptions, PARTITIONS, TestNode, owned, store, wait_until_owned};

/// OPS-5: nodes that join get their even share, without communicating.
#[tokio::test(start_paused = true)]
async fn ops_5_shares_come_out_even_as_nodes_join() {
    let store = store();
    let ann = TestNode::join(&store, "ann", FaultPlan::none()).await;
    wait_until_owned(&store, &[("ann", 16)]).await;
    let ben = TestNode::join(&store, "ben", FaultPlan::none()).await;
    let took = wait_until_owned(&store, &[("ann", 8), ("ben", 8)]).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    let cleo = TestNode::join(&store, "cleo", FaultPlan::none()).await;
    wait_until_owned(&store, &[("ann", 6), ("ben", 5), ("cleo", 5)]).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(owned(&store).await.values().sum::<usize>(), 16);
    assert_eq!((ann.serves(), ben.serves(), cleo.serves()), (6, 5, 5), "and it stays so");
    for partition in 0..PARTITIONS {
        let routes = [&ann, &ben, &cleo].map(|node| node.cluster.route(partition));
        assert_eq!(
            routes.iter().filter(|route| **route == PartitionRoute::ThisNode).count(),
            1,
            "{routes:?}"
        );
        assert!(!routes.contains(&PartitionRoute::Unowned), "{routes:?}");
    }
}

/// OPS-8: the partitions of a dead node are served by the others when its lease has expired, and
/// shared again when it is back.
#[tokio::test(start_paused = true)]
async fn ops_8_a_node_that_is_cut_off_is_replaced_and_comes_back() {
    let store = store();
    let ann = TestNode::join(&store, "ann", FaultPlan::none()).await;
    let ben = TestNode::join(&store, "ben", FaultPlan::none()).await;
    wait_until_owned(&store, &[("ann", 8), ("ben", 8)]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    ben.store.set_down(true);
    let took = wait_until_owned(&store, &[("ann", 16)]).await;
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_eq!(ann.cluster.route(0), PartitionRoute::ThisNode);
    ben.store.set_down(false);
    wait_until_owned(&store, &[("ann", 8), ("ben", 8)]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((ann.serves(), ben.serves()), (8, 8), "each serves what it owns");
}

/// A node that leaves hands everything over before it goes, and can be reached until then.
#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_hands_over_first() {
    let store = store();
    let ann = TestNode::join(&store, "ann", FaultPlan::none()).await;
    let ben = TestNode::join(&store, "ben", FaultPlan::none()).await;
    wait_until_owned(&store, &[("ann", 8), ("ben", 8)]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let theirs =
        (0..PARTITIONS).find(|partition| ann.cluster.route(*partition) != PartitionRoute::ThisNode).unwrap();
    let before = ann.cluster.route(theirs);
    assert!(
        matches!(&before, PartitionRoute::OtherNode(node) if node.record.address == "ben:7400"),
        "{before:?}"
    );
    let (leaving, after) =
        tokio::join!(ben.cluster.leave(), ann.cluster.route_after(theirs, &before, Duration::from_secs(60)));
    let () = leaving;
    assert!(after != before, "{after:?}");
    let took = wait_until_owned(&store, &[("ann", 16)]).await;
    assert!(
        took < Duration::from_millis(200),
        "the others come when it goes, not when its time is up: {took:?}"
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ann.cluster.view().nodes.len(), 1, "nobody waits for it to be forgotten");
    assert_eq!(ann.serves(), 16);
}

/// All hints may be lost: it takes longer, and the result is the same.
#[tokio::test(start_paused = true)]
async fn lost_hints_cost_time_only() {
    let plan = || {
        let lost = |plan: FaultPlan, nth| plan.at(StoreMethod::Notify, nth, InjectedFault::Fail);
        (1..500).fold(FaultPlan::none().at(StoreMethod::Listen, 1, InjectedFault::Fail), lost)
    };
    let store = store();
    let ann = TestNode::join(&store, "ann", plan()).await;
    let ben = TestNode::join(&store, "ben", plan()).await;
    let took = wait_until_owned(&store, &[("ann", 8), ("ben", 8)]).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((ann.serves(), ben.serves()), (8, 8));
}

/// The store decides the number of partitions: a node with another one in its settings follows it.
#[tokio::test(start_paused = true)]
async fn the_store_knows_how_many_partitions_there_are() {
    let store = store();
    assert_eq!(store.ensure_partitions(4).await.unwrap(), 4);
    let ann = TestNode::join(&store, "ann", FaultPlan::none()).await;
    assert_eq!(ann.cluster.partitions(), 4);
    wait_until_owned(&store, &[("ann", 4)]).await;
}

/// OPS-8: a partition that a node cannot read, because a newer version wrote it, is acquired by one
/// that can; the node's other work continues.
#[tokio::test(start_paused = true)]
async fn ops_8_a_partition_that_a_node_cannot_read_is_left_to_the_others() {
    const NEWER: u16 = 3;
    let store = store();
    let old = TestNode::join_with(
        &store,
        "ann",
        NodeOptions { cannot_read: Some(NEWER), ..NodeOptions::default() },
    )
    .await;
    wait_until_owned(&store, &[("ann", 15)]).await;
    assert_eq!(old.cluster.route(NEWER), PartitionRoute::Unowned);
    let new = TestNode::join(&store, "ben", FaultPlan::none()).await;
    wait_until_owned(&store, &[("ann", 8), ("ben", 8)]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(new.cluster.route(NEWER), PartitionRoute::ThisNode);
    assert!(
        matches!(old.cluster.route(NEWER), PartitionRoute::OtherNode(node) if node.record.address == "ben:7400")
    );
    new.cluster.leave().await;
    wait_until_owned(&store, &[("ann", 15)]).await;
}
