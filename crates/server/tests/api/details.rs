//! What an operator sees of an operation: its request without secrets, and its attempts, on every
//! store and from any node.

use std::time::Duration;

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tidegate_core::Time;
use tidegate_server::Server;
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{World, answer, config_on, operation, within};

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

/// OPS-24: an operation shows how long each step of its way took, and only those that it has
/// reached.
#[tokio::test]
async fn ops_24_the_time_in_each_step_is_shown() {
    within(async {
        let world = World::new().await;
        world.post("/v1/groups/g/pause", json!({ "create": true })).await;
        let ids = [world.submit(operation("g")).await, world.submit(operation("g")).await];
        tokio::time::sleep(Duration::from_millis(30)).await;
        let waiting = world.get(&format!("/v1/operations/{}", ids[0])).await.json["journey"].clone();
        assert!(waiting["turn_ms"] == 0 && waiting["limit_ms"].as_u64() >= Some(30), "{waiting}");
        assert!(waiting["sent_ms"].is_null() && waiting["answer_ms"].is_null(), "{waiting}");
        let behind = world.get(&format!("/v1/operations/{}", ids[1])).await.json["journey"].clone();
        assert!(behind["turn_ms"].as_u64() >= Some(30) && behind["limit_ms"].is_null(), "{behind}");
        world.post("/v1/groups/g/resume", "").await;
        let first = world.wait_until_ended(&ids[0]).await["journey"].clone();
        assert!(first["turn_ms"] == 0 && first["limit_ms"].as_u64() >= Some(30), "{first}");
        let ended = world.wait_until_ended(&ids[1]).await;
        let second = &ended["journey"];
        assert!(second["turn_ms"].as_u64() >= Some(30), "it waited for the first: {second}");
        let steps =
            ["turn_ms", "limit_ms", "sent_ms", "answer_ms"].map(|step| second[step].as_u64().unwrap());
        let time = |field: &str| Time::parse_rfc_3339(ended[field].as_str().unwrap()).unwrap();
        let total = time("finished_at").since(time("created_at")).as_millis();
        assert!(u128::from(steps.iter().sum::<u64>()) <= total + 1, "{steps:?} of {total}: {ended}");
        let listed = world.get("/v1/operations").await.json;
        assert!(listed["operations"][0].get("journey").is_none(), "only where one is shown: {listed}");
    })
    .await;
}

/// OPS-22: an operation lists every attempt, with when it was granted and sent, how it ended and
/// what it was answered; so does its page. One that was of unknown outcome and sent again has one
/// row for each, and none twice.
#[tokio::test]
async fn ops_22_every_attempt_is_listed() {
    within(async {
        let world = World::with("", HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }).await;
        let mut twice = operation("g");
        twice["max_attempts"] = 2.into();
        let id = world.submit(twice).await;
        let failed = world.wait_until_ended(&id).await;
        let attempts = failed["attempts"].as_array().unwrap();
        let shown = |attempt: &Value| (attempt["attempt"].clone(), attempt["state"].clone());
        let states: Vec<_> = attempts.iter().map(shown).collect();
        assert_eq!(states, [(json!(1), json!("retried")), (json!(2), json!("failed"))], "{failed}");
        for attempt in attempts {
            assert_eq!((&attempt["status"], &attempt["fault_class"]), (&json!(500), &json!("transient")));
            let times = ["granted_at", "sent_at", "ended_at"].map(|name| attempt[name].as_str().unwrap());
            assert!(times.is_sorted() && attempt["upstream"] == "echo", "{attempt}");
        }
        world.post(&format!("/v1/operations/{id}/rerun"), "{}").await;
        let again = world.wait_until_ended(&id).await;
        let numbers: Vec<_> =
            again["attempts"].as_array().unwrap().iter().map(|one| &one["attempt"]).collect();
        assert_eq!(numbers, [1, 2, 1, 2], "those of both runs: {again}");
        let page = world.request(Method::GET, &format!("/operations/{id}")).send().await.unwrap();
        let page = page.text().await.unwrap();
        assert_eq!(page.matches("</span> transient</td>").count(), 4, "{page}");
        assert!(page.contains("run 1, attempt 2") && page.contains("run 2, attempt 1"), "{page}");

        let world = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let mut doubtful = operation("g");
        doubtful["on_unknown"] = "ask".into();
        let id = world.submit(doubtful).await;
        let path = format!("/v1/operations/{id}");
        world.get(&format!("{path}?wait_ms=30000")).await;
        world.post(&format!("{path}/resolve"), json!({ "as": "repeat" })).await;
        let again = loop {
            let shown = world.get(&path).await.json;
            if shown["attempt"] == 2 && shown["state"] == "unknown" {
                break shown;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let states: Vec<_> = again["attempts"].as_array().unwrap().iter().map(shown).collect();
        assert_eq!(states, [(json!(1), json!("unknown")), (json!(2), json!("unknown"))], "{again}");
        assert!(again["attempts"][1]["sent_at"].is_string(), "{again}");
    })
    .await;
}
