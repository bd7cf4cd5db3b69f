//! What an operator does at any node of a cluster: the same as at one that owns it.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;
use tidegate_server::Server;
use tidegate_sim::HttpSim;

use super::failing;
use super::operator::Operator;
use crate::support::{answer, config_on, operation, within};

/// OPS-9: a group may have operations in any partition; a strict command about it is still decided
/// once, at whichever node.
#[tokio::test(flavor = "multi_thread")]
async fn ops_9_a_strict_command_is_one_for_all_partitions() {
    let store = tidegate_fixture::redis::RedisServer::start();
    within(async {
        let sim = HttpSim::start(failing()).await.unwrap();
        let mut servers = Vec::new();
        for _ in 0..2 {
            servers.push(Server::start(config_on(&store.url(), &sim, "")).await.unwrap());
        }
        let operators: Vec<_> = servers.iter().map(Operator::at).collect();
        let mut holding = operation("g");
        (holding["max_attempts"], holding["on_failure"]) = (1.into(), "hold".into());
        let submit = operators[0].request(Method::POST, "/v1/operations").body(holding.to_string());
        let id = answer(submit).await.text("id");
        let path = format!("/v1/operations/{id}?wait_ms=30000");
        assert_eq!(answer(operators[0].request(Method::GET, &path)).await.json["state"], "failed");
        let strict = json!({ "strict": true }).to_string();
        let commands = [("resume", 200), ("resume", 409), ("pause", 200), ("pause", 409), ("resume", 200)];
        for (nth, (verb, status)) in commands.into_iter().enumerate() {
            let path = format!("/v1/groups/g/{verb}");
            let done = answer(operators[nth % 2].request(Method::POST, &path).body(strict.clone())).await;
            assert_eq!(done.status, status, "{nth} {verb}: {done:?}");
        }
    })
    .await;
}

/// OPS-23: from any node of a cluster, whichever owns the operation.
#[tokio::test(flavor = "multi_thread")]
async fn ops_23_any_node_acts_and_remembers() {
    let store = tidegate_fixture::redis::RedisServer::start();
    within(async {
        let sim = HttpSim::start(failing()).await.unwrap();
        let mut servers = Vec::new();
        for _ in 0..2 {
            servers.push(Server::start(config_on(&store.url(), &sim, "")).await.unwrap());
        }
        let operators: Vec<_> = servers.iter().map(Operator::at).collect();
        let mut failing = operation("g");
        failing["max_attempts"] = 1.into();
        let submit = operators[0].request(Method::POST, "/v1/operations").body(failing.to_string());
        let id = answer(submit).await.text("id");
        let path = format!("/v1/operations/{id}?wait_ms=30000");
        assert_eq!(answer(operators[0].request(Method::GET, &path)).await.json["state"], "failed");
        for (operator, other) in [(&operators[0], &operators[1]), (&operators[1], &operators[0])] {
            // Issued by one node, accepted by the other.
            let form = operator.open("rerun", &id).await;
            let (status, html) = other.send("rerun", &form).await;
            assert_eq!(status, 303, "{html}");
            assert_eq!(answer(operator.request(Method::GET, &path)).await.json["state"], "failed");
            let (_, html) = operator.page("/").await;
            assert!(
                html.contains("%26group%3Dg%26") && html.contains(">Re-run 1</a>") && html.contains("Nodes"),
                "{html}"
            );
            let (_, html) = operator.page("/groups/g").await;
            assert!(html.contains(&id) && html.contains("idle"), "{html}");
        }
        let again = json!({ "group": "g", "error": "500" }).to_string();
        let rerun = answer(operators[1].request(Method::POST, "/v1/operations/rerun").body(again)).await;
        assert_eq!(rerun.json["changed"], 1, "in whichever partition it is: {rerun:?}");
        let log = operators[0].audit().await;
        let nodes: BTreeSet<_> = log.iter().map(|entry| entry["node"].to_string()).collect();
        assert_eq!((log.len(), nodes.len()), (3, 2), "{log:?}");
        servers.remove(0).shutdown().await;
        assert_eq!(operators[1].audit().await, log, "one log for all nodes, also of one that is gone");
    })
    .await;
}
