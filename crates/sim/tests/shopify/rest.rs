//! REST over HTTP: the leaky bucket, which GraphQL does not share.

use serde_json::{Value, json};

use crate::caller::{Caller, read};

/// LIM-4: REST has a bucket of its own, reported in each response; a call that does not fit has no
/// effect.
#[tokio::test]
async fn lim_4_rest_has_its_own_bucket() {
    let caller = Caller::dry(0, 3).await;
    let url = format!("{}/shops/acme/admin/api/2026-04/products.json", caller.url);
    let post = |title: &str| {
        let body = json!({ "product": {"title": title} }).to_string();
        caller.client.post(&url).header("x-shopify-access-token", "t").body(body)
    };
    let mut told = Vec::new();
    for title in ["Lamp", "Table", "Lamp", "Chair", "Chair"] {
        let response = post(title).send().await.unwrap();
        let limit = response.headers()["x-shopify-shop-api-call-limit"].to_str().unwrap().to_owned();
        told.push((response.status().as_u16(), limit));
    }
    let expected = [(201, "1/3"), (201, "2/3"), (201, "3/3"), (429, "3/3"), (429, "3/3")];
    assert_eq!(told, expected.map(|(status, limit)| (status, limit.to_owned())));
    let stats = caller.stats().await;
    let counts =
        ["calls", "writes", "throttled", "overstepped", "duplicates"].map(|name| stats[name].as_u64());
    assert_eq!(counts, [5, 3, 2, 2, 1].map(Some));
    assert_eq!(stats["shops"]["acme"]["rest_calls"], 5);
}

/// The path decides the response to a read, which needs a token as well.
#[tokio::test]
async fn reads_are_answered_by_path() {
    let caller = Caller::dry(0, 40).await;
    let get = |path: &str| caller.client.get(format!("{}/shops/acme/admin/api/2026-04/{path}", caller.url));
    let body: Value =
        read(get("orders/7.json").header("x-shopify-access-token", "t").send().await.unwrap()).await;
    assert_eq!(body, json!({"order": {"id": 7}}));
    assert_eq!(get("orders/7.json").send().await.unwrap().status(), 401);
    assert_eq!(get("orders/7").header("x-shopify-access-token", "t").send().await.unwrap().status(), 404);
}
