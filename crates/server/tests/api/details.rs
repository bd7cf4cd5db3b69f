//! What an operator sees of an operation: its request without secrets, and its attempts, on every
//! store and from any node.

use reqwest::Client;
use serde_json::{Value, json};
use tidegate_server::Server;
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{answer, config_on, within};

fn payment() -> Value {
    json!({
        "upstream": "echo", "group": "g", "on_unknown": "ask",
        "request": {
            "method": "POST", "path": "/pay/7?order=7&token=hunter2",
            "headers": { "x-tag": "a", "x-vault-token": "hunter2" },
            "body": { "amount": 12, "card": { "password": "hunter2" } },
        },
    })
}

/// Two operations, one of unknown outcome and one that was canceled: each node shows which calls
/// they are, in lists, by id and on pages, and none of their secrets.
async fn calls_are_shown(store: &str, nodes: usize) {
    let sim = HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() };
    let sim = HttpSim::start(sim).await.unwrap();
    let mut servers = Vec::new();
    for _ in 0..nodes {
        let more = "stored_headers = [\"x-vault-token\"]\n";
        servers.push(Server::start(config_on(store, &sim, more)).await.unwrap());
    }
    let client = Client::new();
    let url = |node: &Server, path: &str| format!("http://{}{path}", node.addr);
    let submit =
        |operation: Value| client.post(url(&servers[0], "/v1/operations")).body(operation.to_string());
    let unknown = answer(submit(payment())).await.text("id");
    let mut later = payment();
    (later["group"], later["delay_ms"]) = (json!("later"), json!(600_000));
    let canceled = answer(submit(later)).await.text("id");
    answer(client.post(url(&servers[0], &format!("/v1/operations/{canceled}/cancel"))).body("{}")).await;
    for node in &servers {
        let shown = answer(client.get(url(node, &format!("/v1/operations/{unknown}?wait_ms=30000")))).await;
        let expected = json!({
            "method": "POST", "path": "/pay/7", "query": "order=7&token=redacted",
            "headers": { "x-tag": "a", "x-vault-token": "redacted" },
            "body": { "amount": 12, "card": { "password": "redacted" } }, "body_bytes": 43,
        });
        assert_eq!((shown.text("state"), &shown.json["request"]), ("unknown".into(), &expected));
        let attempt = &shown.json["attempts"][0];
        assert_eq!((&attempt["attempt"], &attempt["state"]), (&json!(1), &json!("unknown")), "{shown:?}");
        assert!(attempt["ended_at"].is_string() && attempt.get("accepted_at").is_none(), "{shown:?}");
        for (filter, count) in [("", 2), ("?state=unknown", 1), ("?state=canceled", 1)] {
            let listed = answer(client.get(url(node, &format!("/v1/operations{filter}")))).await.json;
            let listed = listed["operations"].as_array().unwrap();
            assert_eq!(listed.len(), count, "{filter}");
            for one in listed {
                assert_eq!(one["upstream"], "echo", "{one}");
                assert_eq!(one["request"], json!({ "method": "POST", "path": "/pay/7" }), "{one}");
            }
        }
        for path in ["/".to_owned(), format!("/operations/{unknown}"), format!("/operations/{canceled}")] {
            let page = client.get(url(node, &path)).send().await.unwrap().text().await.unwrap();
            assert!(page.contains("POST /pay/7"), "{path}: {page}");
            assert!(!page.contains("hunter2"), "{path}: {page}");
        }
    }
}

/// OPS-22, OPS-23: on one node.
#[tokio::test]
async fn ops_22_ops_23_a_call_is_shown_without_its_secrets() {
    within(calls_are_shown("memory:", 1)).await;
}

/// OPS-22, OPS-23: from each node of a cluster on Redis.
#[tokio::test(flavor = "multi_thread")]
async fn ops_23_a_call_is_shown_by_each_node_on_redis() {
    let store = tidegate_fixture::redis::RedisServer::start();
    within(calls_are_shown(&store.url(), 2)).await;
}

/// OPS-22, OPS-23: from each node of a cluster on PostgreSQL.
#[tokio::test(flavor = "multi_thread")]
async fn ops_23_a_call_is_shown_by_each_node_on_postgresql() {
    let store = tidegate_fixture::postgres::PostgresServer::start();
    within(calls_are_shown(&store.url(), 2)).await;
}
