//! Nodes that are not admitted, and how they recover by themselves.

use std::sync::Arc;
use std::time::Duration;

use tidegate_cluster::HandshakeOutcome;
use tidegate_contract::FaultPlan;

use crate::world::{AnswersByAddress, NodeOptions, TestNode, owned, store, wait_until_owned};

/// Longer than it takes to join, to look again, and to be removed.
const LONG: Duration = Duration::from_secs(8);

fn placing(placing: &'static str) -> NodeOptions {
    NodeOptions { placing, ..NodeOptions::default() }
}

#[track_caller]
fn is_apart(node: &TestNode, words: &str) {
    let view = node.cluster.view();
    let trouble = view.problem.unwrap_or_default();
    assert!(!view.joined && trouble.contains(words), "{trouble:?} instead of {words:?}");
    assert_eq!(node.serves(), 0);
}

/// A node that cannot be reached at its own address acquires nothing, and joins by itself once it
/// can.
#[tokio::test(start_paused = true)]
async fn a_node_at_a_wrong_address_takes_nothing() {
    let store = store();
    let ann = TestNode::join(&store, "ann", FaultPlan::none()).await;
    wait_until_owned(&store, &[("ann", 16)]).await;
    let answers = AnswersByAddress::default();
    for wrong in [
        HandshakeOutcome::Nobody("nobody answers there".into()),
        HandshakeOutcome::Node { name: "ann".into(), differs: None },
        HandshakeOutcome::Refused,
    ] {
        answers.lock().unwrap().insert("ben:7400".into(), wrong);
        let ben = TestNode::join_with(
            &store,
            "ben",
            NodeOptions { answers: Arc::clone(&answers), ..NodeOptions::default() },
        )
        .await;
        ben.cluster.wait_until_decided(LONG).await;
        tokio::time::sleep(LONG).await;
        is_apart(&ben, "ben:7400");
        assert_eq!(owned(&store).await["ann"], 16);
        assert_eq!(ann.cluster.view().nodes.len(), 1, "nobody is sent there");
        answers.lock().unwrap().clear();
        wait_until_owned(&store, &[("ann", 8), ("ben", 8)]).await;
        assert_eq!(ben.cluster.view().problem, None);
        ben.cluster.leave().await;
        wait_until_owned(&store, &[("ann", 16)]).await;
    }
}

/// Two processes of one name at one address: the second leaves the record of the first alone, even
/// when it ends.
#[tokio::test(start_paused = true)]
async fn the_second_of_one_name_touches_nothing() {
    let store = store();
    let first = TestNode::join(&store, "ann", FaultPlan::none()).await;
    wait_until_owned(&store, &[("ann", 16)]).await;
    let answers = AnswersByAddress::default();
    answers
        .lock()
        .unwrap()
        .insert("ann:7400".into(), HandshakeOutcome::Node { name: "ann".into(), differs: None });
    let second = TestNode::join_with(&store, "ann", NodeOptions { answers, ..NodeOptions::default() }).await;
    tokio::time::sleep(LONG).await;
    is_apart(&second, "another process of the same name");
    second.cluster.leave().await;
    assert_eq!(store.list_nodes().await.unwrap().len(), 1);
    tokio::time::sleep(LONG).await;
    assert_eq!(first.serves(), 16);
}

/// A node whose secret is refused stays out while those who refuse it are alive; a dead one
/// excludes no one.
#[tokio::test(start_paused = true)]
async fn a_refused_node_waits_and_a_dead_one_keeps_nobody_out() {
    let store = store();
    let ann = TestNode::join(&store, "ann", FaultPlan::none()).await;
    wait_until_owned(&store, &[("ann", 16)]).await;
    let answers = AnswersByAddress::default();
    answers.lock().unwrap().insert("ann:7400".into(), HandshakeOutcome::Refused);
    let ben = TestNode::join_with(&store, "ben", NodeOptions { answers, ..NodeOptions::default() }).await;
    tokio::time::sleep(LONG).await;
    is_apart(&ben, "ann at ann:7400 refuses the secret of ben");
    ann.cluster.leave().await;
    wait_until_owned(&store, &[("ben", 16)]).await;
    let answers = AnswersByAddress::default();
    answers
        .lock()
        .unwrap()
        .insert("ben:7400".into(), HandshakeOutcome::Nobody("nobody answers there".into()));
    let cleo = TestNode::join_with(&store, "cleo", NodeOptions { answers, ..NodeOptions::default() }).await;
    wait_until_owned(&store, &[("ben", 8), ("cleo", 8)]).await;
    assert_eq!(cleo.cluster.view().problem, None);
}

/// OPS-7: nodes that place operations differently do not share work: the later one waits until the
/// others are gone.
#[tokio::test(start_paused = true)]
async fn ops_7_nodes_that_place_differently_do_not_share() {
    let store = store();
    let ann = TestNode::join_with(&store, "ann", placing("aa")).await;
    let ben = TestNode::join_with(&store, "ben", placing("aa")).await;
    wait_until_owned(&store, &[("ann", 8), ("ben", 8)]).await;
    let cleo = TestNode::join_with(&store, "cleo", placing("bb")).await;
    tokio::time::sleep(LONG).await;
    is_apart(&cleo, "place operations differently");
    ann.cluster.leave().await;
    wait_until_owned(&store, &[("ben", 16)]).await;
    tokio::time::sleep(LONG).await;
    is_apart(&cleo, "cleo and ben place operations differently");
    ben.cluster.leave().await;
    wait_until_owned(&store, &[("cleo", 16)]).await;
    assert!(cleo.cluster.view().joined);
}

/// OPS-7: of several that start at the same moment and place differently one kind wins, and never
/// do both own something.
#[tokio::test(start_paused = true)]
async fn ops_7_of_several_at_once_one_kind_wins() {
    for kinds in [["aa", "bb", "aa"], ["bb", "bb", "aa"], ["aa", "bb", "cc"]] {
        let store = store();
        let (ann, ben, cleo) = tokio::join!(
            TestNode::join_with(&store, "ann", placing(kinds[0])),
            TestNode::join_with(&store, "ben", placing(kinds[1])),
            TestNode::join_with(&store, "cleo", placing(kinds[2])),
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

/// A node that was removed and finds others that place differently steps back.
#[tokio::test(start_paused = true)]
async fn a_node_that_comes_back_to_others_steps_back() {
    let store = store();
    let ann = TestNode::join_with(&store, "ann", placing("aa")).await;
    wait_until_owned(&store, &[("ann", 16)]).await;
    ann.store.set_down(true);
    let ben = TestNode::join_with(&store, "ben", placing("bb")).await;
    wait_until_owned(&store, &[("ben", 16)]).await;
    ann.store.set_down(false);
    tokio::time::sleep(LONG).await;
    is_apart(&ann, "ann and ben place operations differently");
    assert_eq!(ben.serves(), 16);
}
