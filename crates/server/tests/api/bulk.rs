//! Shopify bulk operations through the server, on a real Redis, against the simulator.

use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};
use tidegate_fixture::redis::RedisServer;
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};
use tidegate_sim::{ShopifySim, ShopifySimOptions};

use crate::support::{Answer, read, within};

const SHOPS: [&str; 2] = ["acme", "other"];

async fn server(store: &str, sim: &ShopifySim) -> Server {
    let shop = |name: &str| {
        let url = format!("http://{}/shops/{name}", sim.addr());
        format!(
            "[[upstream]]\nname = \"{name}\"\ndialect = \"shopify\"\nbase_url = \"{url}\"\ntoken_env = \"TEST_TOKEN\"\n"
        )
    };
    let shops: String = SHOPS.into_iter().map(shop).collect();
    let text = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\ndrain_s = 1\nworkers = 1\n[store]\nurl = \"{store}\"\n{shops}"
    );
    let env = |name: &str| (name == "TEST_TOKEN").then(|| "shpat_of-the-environment".to_owned());
    Server::start(Config::parse("test.toml", &text, &env, &Overrides::default(), &[]).unwrap()).await.unwrap()
}

/// A job in an older API version, where Shopify runs one at a time and refuses others.
fn job(shop: &str, nth: u32) -> Value {
    let query = format!("{{ products(query: \"{nth}\") {{ edges {{ node {{ id }} }} }} }}");
    let request = json!({ "query": query, "api_version": "2025-10" });
    json!({ "kind": "shopify.bulk", "upstream": shop, "group": format!("bulk:{nth}"), "request": request })
}

async fn post(server: &Server, body: &Value) -> Answer {
    let url = format!("http://{}/v1/operations", server.addr);
    within(async { read(Client::new().post(url).body(body.to_string()).send().await.unwrap()).await }).await
}

async fn end(server: &Server, id: &str) -> Value {
    let url = format!("http://{}/v1/operations/{id}?wait_ms=30000", server.addr);
    within(async { read(Client::new().get(url).send().await.unwrap()).await }).await.json
}

/// LIM-21, LIM-13: two bulk jobs of one shop run one after the other, one of another shop
/// meanwhile; Shopify refuses none. None holds the only worker: a call passes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_21_bulk_jobs_over_http_on_redis() {
    let redis = RedisServer::start();
    let bulk_takes = Duration::from_millis(2_500);
    let sim = ShopifySim::start(ShopifySimOptions { bulk_takes, bulk_rows: 7, ..Default::default() })
        .await
        .unwrap();
    let server = server(&redis.url(), &sim).await;
    let mut ids = Vec::new();
    for body in [job("acme", 1), job("acme", 2), job("other", 3)] {
        let answer = post(&server, &body).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        ids.push(answer.text("id"));
    }
    let mut at_once = 0;
    for _ in 0..1_000 {
        at_once = sim.stats().shops.values().map(|shop| shop.bulk_running).sum();
        if at_once == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(at_once, 2, "those of two shops run at once");
    let request = json!({ "method": "GET", "path": "/admin/api/2026-04/shop.json" });
    let quick = json!({ "kind": "http", "upstream": "acme", "group": "quick", "request": request });
    let quick = end(&server, &post(&server, &quick).await.text("id")).await;
    assert_eq!(quick["state"], "succeeded", "{quick}");
    let running: u64 = sim.stats().shops.values().map(|shop| shop.bulk_running).sum();
    assert_eq!(running, 2, "the call passed them");
    for id in ids {
        let ended = end(&server, &id).await;
        assert_eq!((&ended["state"], &ended["attempt"]), (&"succeeded".into(), &1.into()), "{ended}");
        assert_eq!(ended["result"]["object_count"], 7, "{ended}");
        assert!(!ended.to_string().contains("shpat"), "{ended}");
    }
    let stats = sim.stats();
    assert_eq!((stats.shops["acme"].bulk_started, stats.all.overstepped), (2, 0));
    server.shutdown().await;
}

/// Problems of a job are reported by field.
#[tokio::test]
async fn mistakes_in_a_bulk_job_are_told_by_field() {
    let sim = ShopifySim::start(ShopifySimOptions::default()).await.unwrap();
    let server = server("memory:", &sim).await;
    let with = |request: Value| json!({ "kind": "shopify.bulk", "upstream": "acme", "group": "g", "request": request });
    post(&server, &with(json!({}))).await.refused(400, "TG0002", Some("request.query"));
    server.shutdown().await;
}
