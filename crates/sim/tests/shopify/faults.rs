//! Faults over HTTP: they come from the seed, and a cut comes after the effect.

use std::time::Duration;

use serde_json::json;
use tidegate_sim::{ShopifySim, ShopifySimOptions};

use crate::caller::Caller;

const WRITE: &str = r#"mutation { productCreate(product: {title: "Lamp"}) { product { id } } }"#;

/// OPS-23: the caller of a cut call gets no response, and the write is there, once for each call.
#[tokio::test]
async fn ops_23_a_cut_comes_after_the_effect() {
    let caller = Caller::start(ShopifySimOptions { cut_rate: 1.0, ..ShopifySimOptions::default() }).await;
    for _ in 0..2 {
        let call = caller.send("2026-04", &json!({ "query": WRITE })).await;
        assert!(call.unwrap_err().status().is_none());
    }
    let stats = caller.sim.stats();
    assert_eq!((stats.all.calls, stats.all.writes, stats.all.duplicates), (2, 2, 1));
}

/// A failure has no effect, and its cost is returned.
#[tokio::test]
async fn a_failure_has_no_effect() {
    let caller = Caller::start(ShopifySimOptions { fail_rate: 1.0, ..ShopifySimOptions::default() }).await;
    caller.change("acme", &json!({"maximum": 10, "restore_per_s": 0})).await;
    for _ in 0..5 {
        let response = caller.send("2026-04", &json!({ "query": WRITE })).await.unwrap();
        assert!(response.status().is_server_error(), "{}", response.status());
    }
    let stats = caller.sim.stats();
    assert_eq!((stats.all.calls, stats.all.writes, stats.all.throttled), (5, 0, 0));
    assert_eq!(stats.shops["acme"].points_granted, 0);
}

async fn history(seed: u64) -> Vec<Option<u16>> {
    let options = ShopifySimOptions { seed, fail_rate: 0.3, cut_rate: 0.3, ..ShopifySimOptions::default() };
    let caller = Caller::start(options).await;
    let mut history = Vec::new();
    for _ in 0..40 {
        let answer = caller.send("2026-04", &json!({"query": "{ shop { name } }"})).await;
        history.push(answer.ok().map(|answer| answer.status().as_u16()));
    }
    history
}

/// The same seed gives the same faults, seen from outside.
#[tokio::test]
async fn a_seed_gives_its_faults_again() {
    let first = history(1).await;
    assert_eq!(first, history(1).await);
    assert_ne!(first, history(2).await);
    for seen in [Some(200), Some(500), Some(502), Some(503), None] {
        assert!(first.contains(&seen), "{seen:?}");
    }
}

/// The requested cost of a call is held until its response, even when its caller has disconnected.
#[tokio::test]
async fn points_are_held_while_a_call_runs() {
    let latency = Duration::from_secs(600);
    let caller = Caller::start(ShopifySimOptions { latency, ..ShopifySimOptions::default() }).await;
    caller.change("acme", &json!({"maximum": 500, "restore_per_s": 0})).await;
    let body = json!({"query": "{ products(first: 400) { nodes { id } } }"}).to_string();
    let call = caller.client.post(format!("{}/shops/acme/admin/api/2026-04/graphql.json", caller.url));
    let call = call.header("x-shopify-access-token", "t").body(body);
    let calls: Vec<_> = (0..2).map(|_| tokio::spawn(call.try_clone().unwrap().send())).collect();
    while caller.sim.stats().all.calls < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(caller.sim.stats().shops["acme"].throttled, 1, "402 of 500 are held");
    calls.iter().for_each(tokio::task::JoinHandle::abort);
}

/// Invalid options are refused.
#[tokio::test]
async fn options_are_checked() {
    for rate in [1.1, -0.1, f64::NAN] {
        let options = ShopifySimOptions { cut_rate: rate, ..ShopifySimOptions::default() };
        assert_eq!(ShopifySim::start(options).await.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
}
