//! REST calls: their own bucket, in calls; a 429 obeyed; what is retried and what is not.

use serde_json::{Value, json};
use tidegate_shopify::ShopifyErrorKind;
use tidegate_upstream::Method;
use tokio::time::Instant;

use crate::scripted::{ScriptedReply, ScriptedServer};
use crate::world::{builder, client, memory, ms};

fn products() -> ScriptedReply {
    ScriptedReply::json(&json!({ "products": [] }))
        .with_header("x-shopify-shop-api-call-limit", "32/80")
        .with_header("link", "<x>; rel=next")
}

/// LIM-4, LIM-8: REST has a bucket of its own, in calls, that follows
/// `X-Shopify-Shop-Api-Call-Limit`.
#[tokio::test]
async fn lim_4_rest_has_a_bucket_of_its_own() {
    let store = memory();
    let server = ScriptedServer::answering(vec![products()]).await;
    let client = client(&store, &server.url());
    let answer = client.rest(Method::Get, "products.json?limit=5", None).await.unwrap();
    assert_eq!((answer.status, answer.link.as_deref()), (200, Some("<x>; rel=next")));
    assert!(server.requests()[0].line.starts_with("GET /admin/api/2026-04/products.json?limit=5 "));
    let requests = store.observe_bucket("shopify/acme/requests").await.unwrap().unwrap();
    let left = requests.tokens;
    assert!(
        (39_000_000..40_000_000).contains(&left),
        "bootstrap 40 less one, though Shopify has more: {left}"
    );
    assert_eq!(store.observe_bucket("shopify/acme/points").await.unwrap(), None);
    client.rest(Method::Get, "/admin/oauth/access_scopes.json", None).await.unwrap();
    assert!(server.requests()[1].line.starts_with("GET /admin/oauth/access_scopes.json "));
    let requests = store.observe_bucket("shopify/acme/requests").await.unwrap().unwrap();
    assert_eq!((requests.capacity, requests.refill_per_s), (80_000_000, 4_000_000));
}

/// LIM-2: a 429 is obeyed, whatever was called; and everyone who shares the bucket knows that it is
/// empty.
#[tokio::test]
async fn lim_2_a_429_is_obeyed() {
    let store = memory();
    let many = ScriptedReply::status(429).with_header("retry-after", "0.4");
    let server = ScriptedServer::answering(vec![many, products()]).await;
    let client = client(&store, &server.url());
    let start = Instant::now();
    client.rest(Method::Post, "products.json", Some(&json!({ "product": {} }))).await.unwrap();
    assert!(start.elapsed() >= ms(400), "{:?}", start.elapsed());
    assert_eq!((server.calls(), &server.requests()[1].body), (2, &json!({ "product": {} })));
    let left = store.observe_bucket("shopify/acme/requests").await.unwrap().unwrap().tokens;
    assert!(left < 10_000_000, "a 429 says that nothing is left: {left}");
}

/// LIM-17: REST calls pass the limiter too: with nothing left in the shop's bucket nothing is sent
/// but what is restored meanwhile.
#[tokio::test]
async fn lim_17_no_rest_call_is_sent_that_the_limits_do_not_allow() {
    let server = ScriptedServer::answering(vec![ScriptedReply::status(429)]).await;
    let client = builder(&memory(), &server.url()).patience(ms(0)).build().unwrap();
    let start = Instant::now();
    for _ in 0..50 {
        let error = client.rest(Method::Get, "products.json", None).await.unwrap_err();
        assert!(matches!(error.kind(), ShopifyErrorKind::Throttled { .. }), "{error}");
    }
    let restored = start.elapsed().as_millis() / 500;
    assert!(server.calls() as u128 <= 1 + restored, "{} calls, {restored} restored", server.calls());
}

/// LIM-17, OPS-23: methods that HTTP calls idempotent are retried; a POST that may have taken
/// effect is not, and one that Shopify was not there for is.
#[tokio::test]
async fn lim_17_a_post_that_may_have_happened_is_not_repeated() {
    let failed = ScriptedReply::status;
    for (method, failure, calls) in [
        (Method::Get, ScriptedReply::Cut, 2),
        (Method::Put, ScriptedReply::Cut, 2),
        (Method::Delete, failed(500), 2),
        (Method::Post, ScriptedReply::Cut, 1),
        (Method::Post, failed(500), 1),
        (Method::Post, failed(503), 2),
    ] {
        let server = ScriptedServer::answering(vec![failure.clone(), products()]).await;
        let came = client(&memory(), &server.url()).rest(method, "products/7.json", None).await;
        assert_eq!((came.is_ok(), server.calls()), (calls == 2, calls), "{method} {failure:?}");
        assert!(came.err().is_none_or(|error| error.is_unknown()));
    }
}

/// A refusal is reported with its status, once; a path that leads elsewhere is not called at all.
#[tokio::test]
async fn a_refusal_is_told_and_not_repeated() {
    for status in [400, 401, 402, 403, 404, 422, 423, 430] {
        let server = ScriptedServer::answering(vec![ScriptedReply::status(status)]).await;
        let error = client(&memory(), &server.url()).rest(Method::Get, "shop.json", None).await.unwrap_err();
        let told = matches!(error.kind(), ShopifyErrorKind::Refused { status: told, body } if *told == status && body["errors"] == "hunter3");
        assert!(told && !error.to_string().contains("hunter3"), "{error}");
        assert_eq!(server.calls(), 1);
    }
    let server = ScriptedServer::answering(vec![products()]).await;
    let client = client(&memory(), &server.url());
    for path in ["../../../x.json", "/admin/../../x"] {
        let error = client.rest(Method::Get, path, None).await.unwrap_err();
        assert!(matches!(error.kind(), ShopifyErrorKind::Invalid(_)), "{error}");
    }
    let empty = ScriptedServer::answering(vec![ScriptedReply::Answer {
        status: 204,
        headers: Vec::new(),
        body: String::new(),
    }])
    .await;
    let answer =
        self::client(&memory(), &empty.url()).rest(Method::Delete, "products/7.json", None).await.unwrap();
    assert_eq!((answer.status, answer.body, server.calls()), (204, Value::Null, 0));
}
