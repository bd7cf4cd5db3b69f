//! The open flights over HTTP.

use std::collections::BTreeSet;

use reqwest::Client;
use serde_json::{Value, json};
use tidegate_fixture::redis::RedisServer;
use tidegate_server::Server;
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::support::{World, config_on, within};

/// HYD-15: flights are listed page after page, with how many wait, and shown on a page.
#[tokio::test]
async fn hyd_15_flights_are_paged_with_who_waits() {
    within(async {
        let world = World::new().await;
        for number in 0..5 {
            for _ in 0..12 {
                let path = format!("/v1/entities/customer/c-{number}?wait_ms=0&on_miss=defer");
                assert_eq!(world.get(&path).await.status, 202);
            }
        }
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = world.get(&format!("/v1/flights?limit=2&cursor={cursor}")).await.json;
            for flight in page["flights"].as_array().unwrap() {
                assert_eq!((&flight["waiting"], &flight["deferred"]), (&json!(0), &json!(12)), "{flight}");
                assert_eq!(flight["waiters"].as_array().unwrap().len(), 10, "the first of them: {flight}");
                assert_eq!(
                    (&flight["unanswered"], &flight["reason"]),
                    (&json!(true), &json!("source-absent"))
                );
                assert!(flight["questions"].as_u64() >= Some(1) && flight["until"].is_string(), "{flight}");
                seen.push(flight["entity_id"].as_str().unwrap().to_owned());
            }
            match page["next_cursor"].as_str() {
                Some(next) => next.clone_into(&mut cursor),
                None => break,
            }
        }
        assert_eq!(seen, ["c-0", "c-1", "c-2", "c-3", "c-4"]);
        world.get("/v1/flights?cursor=made-up").await.refused(400, "TG0014", Some("cursor"));
        let page = world.client.get(world.url("/flights")).send().await.unwrap().text().await.unwrap();
        assert!(page.contains("c-4") && page.contains("No source is registered"), "{page}");
    })
    .await;
}

async fn read(node: &Server, path: &str) -> String {
    let client = Client::builder().no_proxy().build().unwrap();
    client.get(format!("http://{}{path}", node.addr)).send().await.unwrap().text().await.unwrap()
}

/// Reads every flight of a list, page after page.
async fn flights_at(node: &Server, limit: usize) -> Vec<Value> {
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = read(node, &format!("/v1/flights?limit={limit}&cursor={cursor}")).await;
        let page: Value = serde_json::from_str(&page).unwrap();
        assert_eq!(page["unreachable"], Value::Null, "{page}");
        seen.extend(page["flights"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => return seen,
        }
    }
}

/// HYD-15: each node of a store lists the flights of all of them, with the node that asks.
#[tokio::test(flavor = "multi_thread")]
async fn hyd_15_any_node_lists_the_flights_of_all() {
    let store = RedisServer::start();
    within(async {
        let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
        let mut nodes = Vec::new();
        for _ in 0..2 {
            nodes.push(Server::start(config_on(&store.url(), &sim, "")).await.unwrap());
        }
        for node in &nodes {
            // A node that has just joined is not known to the other yet.
            let is_pair = |view: &Value| view["nodes"].as_array().is_some_and(|nodes| nodes.len() == 2);
            while !is_pair(&serde_json::from_str(&read(node, "/v1/cluster").await).unwrap()) {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
        // One entity is asked for by both.
        for (node, entities) in [(&nodes[0], ["a", "c"]), (&nodes[1], ["b", "c"])] {
            for id in entities {
                let path = format!("/v1/entities/customer/{id}?wait_ms=0&on_miss=defer");
                assert!(read(node, &path).await.contains("deferred"));
            }
        }
        for (node, limit) in [(&nodes[0], 50), (&nodes[1], 50), (&nodes[0], 1), (&nodes[1], 2)] {
            let flights = flights_at(node, limit).await;
            let ids: Vec<_> = flights.iter().map(|flight| flight["entity_id"].as_str().unwrap()).collect();
            assert_eq!(ids, ["a", "b", "c", "c"], "{flights:?}");
            let name = |index: usize| flights[index]["node"].as_str().unwrap();
            let asking: BTreeSet<_> = [name(2), name(3)].into();
            assert_eq!(asking, [name(0), name(1)].into(), "{flights:?}");
            assert_eq!(asking.len(), 2, "{flights:?}");
        }
        let page = read(&nodes[1], "/flights").await;
        assert!(page.contains(">a<") && page.contains(">b<"), "{page}");
        let shown = flights_at(&nodes[0], 50).await;
        let refused = read(&nodes[0], "/internal/flights").await;
        assert!(!refused.contains("flights\":["), "only for nodes: {refused}");
        let gone = nodes.pop().unwrap();
        gone.shutdown().await;
        let left = read(&nodes[0], "/v1/flights").await;
        let left: Value = serde_json::from_str(&left).unwrap();
        let name = shown[0]["node"].as_str().unwrap();
        let own = left["flights"].as_array().unwrap();
        assert!(own.iter().all(|flight| flight["node"] == name), "{left}");
    })
    .await;
}
