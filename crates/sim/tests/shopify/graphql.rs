//! Points over HTTP: separate shops, versions, limits that change while calls run.

use serde_json::{Value, json};
use tidegate_sim::ShopifySimOptions;
use tidegate_sim::shopify::plan::ShopPlan;

use crate::caller::{Caller, read};

fn cost(body: &Value) -> &Value {
    &body["extensions"]["cost"]
}

fn is_throttled(body: &Value) -> bool {
    body["errors"][0]["extensions"]["code"] == "THROTTLED"
}

/// LIM-6: many concurrent calls get no more than the bucket holds, and each call beyond it is
/// counted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_6_many_at_once_get_no_more_than_there_is() {
    let caller = Caller::dry(100, 40).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let call = caller.client.post(format!("{}/shops/acme/admin/api/2026-04/graphql.json", caller.url));
        let call = call.header("x-shopify-access-token", "t");
        let call =
            call.body(r#"{"query":"mutation { productUpdate(product: {}) { userErrors { message } } }"}"#);
        calls.spawn(async move { read(call.send().await.unwrap()).await });
    }
    let answers = calls.join_all().await;
    assert_eq!(answers.iter().filter(|answer| is_throttled(answer)).count(), 20);
    let stats = caller.stats().await;
    let counts = ["calls", "writes", "throttled", "overstepped", "billed"].map(|name| stats[name].as_u64());
    assert_eq!(counts, [30, 10, 20, 20, 100].map(Some));
    let shop = &stats["shops"]["acme"];
    let counts = ["calls", "throttled", "overstepped", "points_granted", "points_restorable_since_first"];
    assert_eq!(counts.map(|name| shop[name].as_u64()), [30, 20, 20, 100, 0].map(Some));
    for (name, count) in serde_json::to_value(caller.sim.stats().all).unwrap().as_object().unwrap() {
        assert_eq!(&stats[name], count, "{name}: the form of every simulator");
    }
}

/// LIM-8, LIM-23: a connection returns less than it may and uses less than it requested; the rest
/// is returned.
#[tokio::test]
async fn lim_8_lim_23_what_is_not_used_is_given_back() {
    let caller = Caller::dry(1_000, 40).await;
    let (mut left, mut fewer) = (1_000, 0);
    for _ in 0..5 {
        let body = caller.ask("{ products(first: 100) { nodes { id } } }").await;
        let returned = body["data"]["products"]["nodes"].as_array().unwrap().len() as u64;
        assert_eq!(cost(&body)["requestedQueryCost"], 102);
        assert_eq!(cost(&body)["actualQueryCost"], 2 + returned);
        fewer += u64::from(returned < 100);
        left -= 2 + returned;
        assert_eq!(cost(&body)["throttleStatus"]["currentlyAvailable"].as_f64(), Some(left as f64));
    }
    assert!(fewer > 0);
}

/// LIM-13: shops are separate: by host, by path and by token.
#[tokio::test]
async fn lim_13_one_shop_takes_nothing_from_another() {
    let caller = Caller::dry(10, 40).await;
    let write = "mutation { productUpdate(product: {}) { userErrors { message } } }";
    assert!(!is_throttled(&caller.ask(write).await) && is_throttled(&caller.ask(write).await));
    for (host, token) in
        [("acme.myshopify.com", "t"), ("bolt.myshopify.com", "t"), ("localhost", "secret-token")]
    {
        let call = caller.client.post(format!("{}/admin/api/2026-04/graphql.json", caller.url));
        let call = call.header("host", host).header("x-shopify-access-token", token);
        let body = read(call.body(json!({ "query": write }).to_string()).send().await.unwrap()).await;
        assert_eq!(is_throttled(&body), host.starts_with("acme"), "{host}");
    }
    let stats = caller.stats().await;
    let shops: Vec<_> = stats["shops"].as_object().unwrap().keys().cloned().collect();
    assert_eq!((shops.len(), &shops[..2]), (3, &["acme".to_owned(), "bolt".to_owned()][..]));
    assert!(!stats.to_string().contains("secret-token"));
}

/// LIM-8: a limit that is lowered while calls run is enforced and reported from the next call on.
#[tokio::test]
async fn lim_8_limits_change_while_calls_run() {
    let caller =
        Caller::start(ShopifySimOptions { plan: ShopPlan::Plus, ..ShopifySimOptions::default() }).await;
    let body = caller.ask("{ shop { name } }").await;
    let status = &cost(&body)["throttleStatus"];
    assert_eq!(
        (status["maximumAvailable"].as_f64(), status["restoreRate"].as_f64()),
        (Some(20_000.0), Some(1_000.0))
    );
    let changed = caller.change("acme", &json!({"restore_per_s": 50, "maximum": 1000})).await;
    let figures = json!({"restore_per_s": 50, "maximum": 1000, "rest_per_s": 20, "rest_bucket": 400, "bulk_at_once": null});
    assert_eq!(read(changed).await, figures);
    let body = caller.ask("{ shop { name } }").await;
    let status = &cost(&body)["throttleStatus"];
    assert_eq!(
        (status["maximumAvailable"].as_f64(), status["restoreRate"].as_f64()),
        (Some(1_000.0), Some(50.0))
    );
    for wrong in [json!({"maximun": 1}), json!({"maximum": -1}), json!({"maximum": 2_000_000_000})] {
        assert_eq!(caller.change("acme", &wrong).await.status(), 400, "{wrong}");
    }
    assert_eq!(caller.change("a_b", &json!({})).await.status(), 404);
}

/// A version that is too old falls forward, and the response says to which.
#[tokio::test]
async fn versions_fall_forward() {
    let caller = Caller::dry(1_000, 40).await;
    let body = json!({"query": "{ shop { name } }"});
    for (asked, served) in [("2023-01", "2025-01"), ("2026-04", "2026-04"), ("unstable", "unstable")] {
        let response = caller.send(asked, &body).await.unwrap();
        assert_eq!(response.headers()["x-shopify-api-version"], served);
        assert!(!response.headers()["x-request-id"].is_empty());
    }
    assert_eq!(caller.send("2026-05", &body).await.unwrap().status(), 404);
}

/// A call that cannot run costs nothing.
#[tokio::test]
async fn what_makes_no_sense_costs_nothing() {
    let caller = Caller::dry(1_000, 40).await;
    for query in
        ["{", "{ products { nodes { id } } }", "query A { a } query B { b }", "{ shop @nope { id } }"]
    {
        let body = caller.ask(query).await;
        assert!(body["errors"][0]["message"].is_string() && body.get("data").is_none(), "{body}");
    }
    assert_eq!(caller.send("2026-04", &json!({"no": "query"})).await.unwrap().status(), 400);
    assert_eq!(caller.stats().await["shops"]["acme"]["points_granted"], 0);
}
