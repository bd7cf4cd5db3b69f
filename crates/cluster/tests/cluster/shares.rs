//! Who owns what as nodes come, go, die and are cut off.

use std::time::Duration;

use tidegate_cluster::Route;
use tidegate_contract::{Injury, Plan, Verb};

use crate::world::{Member, Odd, PARTITIONS, owned, store, until};

/// OPS-5: nodes that join get their even share, without a word between them.
#[tokio::test(start_paused = true)]
async fn ops_5_shares_come_out_even_as_nodes_join() {
    let store = store();
    let ann = Member::join(&store, "ann", Plan::none()).await;
    until(&store, &[("ann", 16)]).await;
    let ben = Member::join(&store, "ben", Plan::none()).await;
    let took = until(&store, &[("ann", 8), ("ben", 8)]).await;
    assert!(took < Duration::from_secs(3), "{took:?}");
    let cleo = Member::join(&store, "cleo", Plan::none()).await;
    until(&store, &[("ann", 6), ("ben", 5), ("cleo", 5)]).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(owned(&store).await.values().sum::<usize>(), 16);
    assert_eq!((ann.serves(), ben.serves(), cleo.serves()), (6, 5, 5), "and it stays so");
    for partition in 0..PARTITIONS {
        let routes = [&ann, &ben, &cleo].map(|node| node.cluster.route(partition));
        assert_eq!(routes.iter().filter(|route| **route == Route::Here).count(), 1, "{routes:?}");
        assert!(!routes.contains(&Route::Nobody), "{routes:?}");
    }
}

/// OPS-8: what a dead node owned is served by the others when its lease has run out, and shared again when it is back.
#[tokio::test(start_paused = true)]
async fn ops_8_a_node_that_is_cut_off_is_replaced_and_comes_back() {
    let store = store();
    let ann = Member::join(&store, "ann", Plan::none()).await;
    let ben = Member::join(&store, "ben", Plan::none()).await;
    until(&store, &[("ann", 8), ("ben", 8)]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    ben.way.set_down(true);
    let took = until(&store, &[("ann", 16)]).await;
    assert!(took < Duration::from_secs(8), "{took:?}");
    assert_eq!(ann.cluster.route(0), Route::Here);
    ben.way.set_down(false);
    until(&store, &[("ann", 8), ("ben", 8)]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((ann.serves(), ben.serves()), (8, 8), "each serves what it owns");
}

/// A node that leaves hands everything over before it goes, and is reached until then.
#[tokio::test(start_paused = true)]
async fn a_node_that_leaves_hands_over_first() {
    let store = store();
    let ann = Member::join(&store, "ann", Plan::none()).await;
    let ben = Member::join(&store, "ben", Plan::none()).await;
    until(&store, &[("ann", 8), ("ben", 8)]).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let theirs = (0..PARTITIONS).find(|partition| ann.cluster.route(*partition) != Route::Here).unwrap();
    let before = ann.cluster.route(theirs);
    assert!(matches!(&before, Route::At(node) if node.address == "ben:7400"), "{before:?}");
    let (leaving, after) =
        tokio::join!(ben.cluster.leave(), ann.cluster.route_after(theirs, &before, Duration::from_secs(60)));
    let () = leaving;
    assert!(after != before, "{after:?}");
    let took = until(&store, &[("ann", 16)]).await;
    assert!(
        took < Duration::from_millis(200),
        "the others come when it goes, not when its time is up: {took:?}"
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(ann.cluster.view().nodes.len(), 1, "nobody waits for it to be forgotten");
    assert_eq!(ann.serves(), 16);
}

/// Hints may all be lost: it takes longer, and comes out the same.
#[tokio::test(start_paused = true)]
async fn lost_hints_cost_time_only() {
    let plan = || {
        let lost = |plan: Plan, nth| plan.at(Verb::Notify, nth, Injury::Fail);
        (1..500).fold(Plan::none().at(Verb::Listen, 1, Injury::Fail), lost)
    };
    let store = store();
    let ann = Member::join(&store, "ann", plan()).await;
    let ben = Member::join(&store, "ben", plan()).await;
    let took = until(&store, &[("ann", 8), ("ben", 8)]).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!((ann.serves(), ben.serves()), (8, 8));
}

/// The number of partitions is the store's: a node with another one in its settings goes by that.
#[tokio::test(start_paused = true)]
async fn the_store_knows_how_many_partitions_there_are() {
    let store = store();
    assert_eq!(store.partitions(4).await.unwrap(), 4);
    let ann = Member::join(&store, "ann", Plan::none()).await;
    assert_eq!(ann.cluster.partitions(), 4);
    until(&store, &[("ann", 4)]).await;
}

/// OPS-8: what a node cannot read, because a newer version wrote it, is taken on by one that can; its own work goes on.
#[tokio::test(start_paused = true)]
async fn ops_8_a_partition_that_a_node_cannot_read_is_left_to_the_others() {
    const NEWER: u16 = 3;
    let store = store();
    let old = Member::join_odd(&store, "ann", Odd { cannot_read: Some(NEWER), ..Odd::default() }).await;
    until(&store, &[("ann", 15)]).await;
    assert_eq!(old.cluster.route(NEWER), Route::Nobody);
    let new = Member::join(&store, "ben", Plan::none()).await;
    until(&store, &[("ann", 8), ("ben", 8)]).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(new.cluster.route(NEWER), Route::Here);
    assert!(matches!(old.cluster.route(NEWER), Route::At(node) if node.address == "ben:7400"));
    new.cluster.leave().await;
    until(&store, &[("ann", 15)]).await;
}
