//! Operations submitted with SQL are executed like those submitted over HTTP, and refused ones are
//! shown.

use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tidegate_fixture::postgres::PostgresServer;
use tidegate_server::Server;
use tidegate_sim::{HttpSim, HttpSimOptions};
use tidegate_store_postgres::outbox::enqueue;

use crate::support::{World, config_on, operation, with, within};

/// A server on its own PostgreSQL, and another connection to the same database.
async fn world() -> (World, PgConnection, PostgresServer) {
    let database = PostgresServer::start();
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let server = Server::start(config_on(&database.url(), &sim, "")).await.unwrap();
    let sql = PgConnection::connect(&database.url()).await.unwrap();
    (World { server, sim, client: Client::new() }, sql, database)
}

/// Waits until the outbox is empty; returns what the API shows then.
async fn wait_until_empty(world: &World) -> Value {
    loop {
        let seen = world.get("/v1/outbox").await;
        if seen.status == 200 && seen.json["waiting"] == 0 {
            return seen.json;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// OPS-4: operations of a transaction reach the upstream in its order, group by group; an invalid
/// row is moved aside, is shown without its content, and stops nothing.
#[tokio::test(flavor = "multi_thread")]
async fn ops_4_a_transaction_is_carried_in_its_order() {
    within(async {
        let (world, mut sql, _database) = world().await;
        let mut transaction = sql.begin().await.unwrap();
        let mut ids = Vec::new();
        for n in 0..12 {
            let mut one = operation(&format!("g{}", n % 3));
            one["request"]["path"] = json!(format!("/g{}", n % 3));
            one["request"]["body"] = json!({ "id": n });
            if n == 4 || n == 7 {
                one["max_attempts"] = json!(0);
                one["request"]["body"] = json!("hunter2");
            }
            ids.push(enqueue(&mut transaction, "tidegate", &one.to_string()).await.unwrap().0);
        }
        transaction.commit().await.unwrap();
        let seen = wait_until_empty(&world).await;
        let refused: Vec<_> = seen["refused"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
        assert_eq!(refused, [ids[7], ids[4]], "{seen}");
        assert_eq!(seen["refused"][0]["code"], "TG0002");
        assert!(seen["refused"][0]["problem"].as_str().unwrap().contains("max_attempts"), "{seen}");
        assert!(!seen.to_string().contains("hunter2"));
        let page = world.get("/v1/outbox?limit=1").await.json;
        assert_eq!((&page["refused"][0]["id"], &page["next"]), (&json!(ids[7]), &json!(ids[7])));
        let page = world.get(&format!("/v1/outbox?limit=1&below={}", ids[7])).await.json;
        assert_eq!(page["refused"][0]["id"], ids[4]);
        let response = world.get("/v1/operations?limit=200").await;
        let listed = response.json["operations"].as_array();
        let listed = listed.unwrap_or_else(|| panic!("no list: {response:?}"));
        assert_eq!(listed.len(), 10);
        for one in listed {
            assert_eq!(world.wait_until_ended(one["id"].as_str().unwrap()).await["state"], "succeeded");
        }
        let written = world.client.get(format!("http://{}/_sim/log", world.sim.addr())).send().await.unwrap();
        let written: Value = serde_json::from_str(&written.text().await.unwrap()).unwrap();
        for group in 0..3 {
            let path = json!(format!("/g{group}"));
            let writes = written["writes"].as_array().unwrap().iter().filter(|write| write["path"] == path);
            let arrived: Vec<usize> =
                writes.map(|write| write["id"].as_str().unwrap().parse().unwrap()).collect();
            let wanted: Vec<usize> = (0..12).filter(|n| n % 3 == group && *n != 4 && *n != 7).collect();
            assert_eq!(arrived, wanted, "group {group}");
        }
        let metrics = world.client.get(world.url("/metrics")).send().await.unwrap().text().await.unwrap();
        assert!(metrics.contains("tidegate_outbox_refused_total{code=\"TG0002\"} 2"), "{metrics}");
        assert!(metrics.contains("tidegate_outbox_waiting 0"), "{metrics}");
        world.server.shutdown().await;
    })
    .await;
}

/// OPS-7: the same operation over HTTP and over SQL is one operation.
#[tokio::test(flavor = "multi_thread")]
async fn ops_7_http_and_sql_share_their_keys() {
    within(async {
        let (world, mut sql, _database) = world().await;
        let keyed = with("dedupe_key", "order-7");
        let id = loop {
            let answer = world.post("/v1/operations", &keyed).await;
            if answer.status == 202 {
                break answer.text("id");
            }
            assert_eq!(answer.status, 503, "{answer:?}");
        };
        enqueue(&mut sql, "tidegate", &keyed.to_string()).await.unwrap();
        let seen = wait_until_empty(&world).await;
        assert_eq!(seen["refused"], json!([]), "{seen}");
        assert_eq!(world.count().await, 1);
        assert_eq!(world.wait_until_ended(&id).await["state"], "succeeded");
        world.server.shutdown().await;
    })
    .await;
}

#[tokio::test]
async fn a_store_without_an_outbox_says_so() {
    within(async {
        let world = World::new().await;
        world.get("/v1/outbox").await.refused(404, "TG0021", None);
        world.get("/v1/outbox?limit=0").await.refused(400, "TG0001", Some("limit"));
        world.get("/v1/outbox?page=2").await.refused(400, "TG0001", Some("page"));
    })
    .await;
}
