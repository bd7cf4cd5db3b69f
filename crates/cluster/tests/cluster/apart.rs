//! Nodes that take no part, and what it needs for them to go on by themselves.

use std::sync::Arc;
use std::time::Duration;

use tidegate_cluster::Answered;
use tidegate_contract::Plan;

use crate::world::{Lines, Member, Odd, owned, store, until};

/// Longer than it takes to join, to look again, and to be forgotten.
const LONG: Duration = Duration::from_secs(8);

fn placing(placing: &'static str) -> Odd {
    Odd { placing, ..Odd::default() }
}

#[track_caller]
fn is_apart(node: &Member, words: &str) {
    let view = node.cluster.view();
    let trouble = view.trouble.unwrap_or_default();
    assert!(!view.joined && trouble.contains(words), "{trouble:?} instead of {words:?}");
    assert_eq!(node.serves(), 0);
}

/// A node that is not reached where it says it is takes nothing, and goes on by itself once it is.
#[tokio::test(start_paused = true)]
async fn a_node_at_a_wrong_address_takes_nothing() {
    let store = store();
    let ann = Member::join(&store, "ann", Plan::none()).await;
    until(&store, &[("ann", 16)]).await;
    let lines = Lines::default();
    for wrong in [
        Answered::Nobody("nobody answers there".into()),
        Answered::Node { name: "ann".into(), differs: None },
        Answered::Refused,
    ] {
        lines.lock().unwrap().insert("ben:7400".into(), wrong);
        let ben = Member::join_odd(&store, "ben", Odd { lines: Arc::clone(&lines), ..Odd::default() }).await;
        ben.cluster.settled(LONG).await;
        tokio::time::sleep(LONG).await;
        is_apart(&ben, "ben:7400");
        assert_eq!(owned(&store).await["ann"], 16);
        assert_eq!(ann.cluster.view().nodes.len(), 1, "nobody is sent there");
        lines.lock().unwrap().clear();
        until(&store, &[("ann", 8), ("ben", 8)]).await;
        assert_eq!(ben.cluster.view().trouble, None);
        ben.cluster.leave().await;
        until(&store, &[("ann", 16)]).await;
    }
}

/// Two processes of one name at one address: the second leaves what the first has put up alone, also when it ends.
#[tokio::test(start_paused = true)]
async fn the_second_of_one_name_touches_nothing() {
    let store = store();
    let first = Member::join(&store, "ann", Plan::none()).await;
    until(&store, &[("ann", 16)]).await;
    let lines = Lines::default();
    lines.lock().unwrap().insert("ann:7400".into(), Answered::Node { name: "ann".into(), differs: None });
    let second = Member::join_odd(&store, "ann", Odd { lines, ..Odd::default() }).await;
    tokio::time::sleep(LONG).await;
    is_apart(&second, "another process of the same name");
    second.cluster.leave().await;
    assert_eq!(store.list_nodes().await.unwrap().len(), 1);
    tokio::time::sleep(LONG).await;
    assert_eq!(first.serves(), 16);
}

/// A node whose secret is refused stays away while those who refuse it are there; one that is dead keeps nobody out.
#[tokio::test(start_paused = true)]
async fn a_refused_node_waits_and_a_dead_one_keeps_nobody_out() {
    let store = store();
    let ann = Member::join(&store, "ann", Plan::none()).await;
    until(&store, &[("ann", 16)]).await;
    let lines = Lines::default();
    lines.lock().unwrap().insert("ann:7400".into(), Answered::Refused);
    let ben = Member::join_odd(&store, "ben", Odd { lines, ..Odd::default() }).await;
    tokio::time::sleep(LONG).await;
    is_apart(&ben, "ann at ann:7400 refuses the secret of ben");
    ann.cluster.leave().await;
    until(&store, &[("ben", 16)]).await;
    let lines = Lines::default();
    lines.lock().unwrap().insert("ben:7400".into(), Answered::Nobody("nobody answers there".into()));
    let cleo = Member::join_odd(&store, "cleo", Odd { lines, ..Odd::default() }).await;
    until(&store, &[("ben", 8), ("cleo", 8)]).await;
    assert_eq!(cleo.cluster.view().trouble, None);
}

/// OPS-7: nodes that place operations differently do not share work: the later one waits until the others are gone.
#[tokio::test(start_paused = true)]
async fn ops_7_nodes_that_place_differently_do_not_share() {
    let store = store();
    let ann = Member::join_odd(&store, "ann", placing("aa")).await;
    let ben = Member::join_odd(&store, "ben", placing("aa")).await;
    until(&store, &[("ann", 8), ("ben", 8)]).await;
    let cleo = Member::join_odd(&store, "cleo", placing("bb")).await;
    tokio::time::sleep(LONG).await;
    is_apart(&cleo, "place operations differently");
    ann.cluster.leave().await;
    until(&store, &[("ben", 16)]).await;
    tokio::time::sleep(LONG).await;
    is_apart(&cleo, "cleo and ben place operations differently");
    ben.cluster.leave().await;
    until(&store, &[("cleo", 16)]).await;
    assert!(cleo.cluster.view().joined);
}

/// OPS-7: of several that start at the same moment and place differently one kind wins, and never do both own something.
#[tokio::test(start_paused = true)]
async fn ops_7_of_several_at_once_one_kind_wins() {
    for kinds in [["aa", "bb", "aa"], ["bb", "bb", "aa"], ["aa", "bb", "cc"]] {
        let store = store();
        let (ann, ben, cleo) = tokio::join!(
            Member::join_odd(&store, "ann", placing(kinds[0])),
            Member::join_odd(&store, "ben", placing(kinds[1])),
            Member::join_odd(&store, "cleo", placing(kinds[2])),
        );
        let nodes = [("ann", &ann), ("ben", &ben), ("cleo", &cleo)];
        for _ in 0..1_000 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let joined: Vec<_> = (0..3).filter(|place| nodes[*place].1.cluster.has_joined()).collect();
            assert!(joined.windows(2).all(|two| kinds[two[0]] == kinds[two[1]]), "{kinds:?}: {joined:?}");
        }
        assert_eq!(owned(&store).await.values().sum::<usize>(), 16, "{kinds:?}");
        let kind = nodes.iter().zip(kinds).find(|((_, node), _)| node.cluster.has_joined()).unwrap().1;
        for ((name, node), its) in nodes.iter().zip(kinds) {
            assert_eq!(node.cluster.has_joined(), its == kind, "{name} in {kinds:?}");
        }
    }
}

/// A node that was forgotten and finds others there who place differently steps back.
#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_to_others_steps_back() {
    let store = store();
    let ann = Member::join_odd(&store, "ann", placing("aa")).await;
    until(&store, &[("ann", 16)]).await;
    ann.way.set_down(true);
    let ben = Member::join_odd(&store, "ben", placing("bb")).await;
    until(&store, &[("ben", 16)]).await;
    ann.way.set_down(false);
    tokio::time::sleep(LONG).await;
    is_apart(&ann, "ann and ben place operations differently");
    assert_eq!(ben.serves(), 16);
}
