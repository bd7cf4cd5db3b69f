//! GraphQL calls: what is waited for, what is retried, and what is not.

use serde_json::{Value, json};
use tidegate_shopify::{Error, Shopify, ShopifyErrorKind};
use tokio::time::Instant;

use crate::scripted::{ScriptedReply, ScriptedServer, cost, data, throttled};
use crate::world::{TOKEN, builder, builder_for, memory, ms};

const QUERY: &str = "query Shop { shop { id } }";
const MUTATION: &str = "mutation { tagsAdd(id: \"1\", tags: \"a\") { node { id } } }";
const ONCE: &str = "mutation { refundCreate(input: {}) @idempotent(key: \"7\") { refund { id } } }";

fn shop() -> ScriptedReply {
    data(&json!({ "shop": { "id": "7" } }), 5, 3, 1_900)
}

async fn points(client: &Shopify, store: &std::sync::Arc<dyn tidegate_store::Store>) -> f64 {
    let level = store.observe_bucket(&format!("shopify/{}/points", client.shop())).await.unwrap().unwrap();
    level.tokens as f64 / 1e6
}

/// LIM-17, LIM-1: `THROTTLED` inside a 200 is recognized, and the call is made again after the
/// computed wait.
#[tokio::test]
async fn lim_17_throttled_inside_a_200_is_waited_out() {
    let server = ScriptedServer::answering(vec![throttled(752, 666, 200), shop()]).await;
    let client = client(&server);
    let start = Instant::now();
    let answer = client.graphql(QUERY, Value::Null).await.unwrap();
    assert_eq!(answer.data["shop"]["id"], "7");
    // (752 - 666) / 200
    assert!(start.elapsed() >= ms(430), "{:?}", start.elapsed());
    assert_eq!(server.calls(), 2);
    assert!(server.requests()[0].line.starts_with("POST /admin/api/2026-04/graphql.json "));
    assert!(server.requests()[0].head.contains(&format!("x-shopify-access-token: {TOKEN}")));
}

/// LIM-17, LIM-12: the caller sets the patience: a longer wait is reported at once, with the
/// duration that follows from the response.
#[tokio::test]
async fn lim_17_patience_ends_a_wait_before_it_begins() {
    let server = ScriptedServer::answering(vec![throttled(1_000, 0, 10)]).await;
    let client = client(&server).with_patience(ms(5_000));
    let start = Instant::now();
    let error = client.graphql(QUERY, Value::Null).await.unwrap_err();
    let ShopifyErrorKind::Throttled { wait } = error.kind() else { panic!("{error}") };
    assert!(*wait >= ms(100_000) && error.is_retryable() && start.elapsed() < ms(4_000));
    assert_eq!(server.calls(), 1);
}

/// LIM-17, LIM-1: every call passes the limiter: with nothing left in the shop's bucket nothing is
/// sent.
#[tokio::test]
async fn lim_17_nothing_is_sent_that_the_limits_do_not_allow() {
    let store = memory();
    let server = ScriptedServer::answering(vec![data(&json!({ "a": 1 }), 5, 3, 0)]).await;
    let client = builder(&store, &server.url()).build().unwrap();
    client.graphql(QUERY, Value::Null).await.unwrap();
    // Another client of the same shop on the same store, however the shop is written.
    let other =
        builder_for("https://ACME.myshopify.com/", &store, &server.url()).patience(ms(0)).build().unwrap();
    let big = "query { products(first: 200) { nodes { id } } }";
    let error = other.graphql(big, Value::Null).await.unwrap_err();
    assert!(matches!(error.kind(), ShopifyErrorKind::Throttled { .. }), "{error}");
    assert_eq!(server.calls(), 1);
}

/// LIM-8, LIM-23: the bucket follows the throttle status, and the unused part is returned.
#[tokio::test]
async fn lim_8_the_bucket_follows_the_throttle_status() {
    let store = memory();
    let server = ScriptedServer::answering(vec![
        data(&json!({ "a": 1 }), 101, 46, 1_954),
        data(&json!({ "a": 1 }), 101, 46, 300),
    ])
    .await;
    let client = builder(&store, &server.url()).build().unwrap();
    let answer = client.graphql(QUERY, Value::Null).await.unwrap();
    assert_eq!(answer.meta.cost.actual, Some(46_000_000));
    let left = points(&client, &store).await;
    assert!((954.0..960.0).contains(&left), "bootstrap 1,000 less 46, and not more than it had: {left}");
    client.graphql(QUERY, Value::Null).await.unwrap();
    let level = store.observe_bucket("shopify/acme/points").await.unwrap().unwrap();
    assert_eq!((level.capacity, level.refill_per_s), (2_000_000_000, 100_000_000));
    let left = points(&client, &store).await;
    assert!((300.0..340.0).contains(&left), "another client uses it too: {left}");
}

/// LIM-17: a call that costs too much is reported and never sent again.
#[tokio::test]
async fn lim_17_max_cost_exceeded_is_never_repeated() {
    let error = json!({ "message": "Query cost is 2003", "extensions": { "code": "MAX_COST_EXCEEDED", "cost": 2003, "maxCost": 1000 } });
    let server = ScriptedServer::answering(vec![ScriptedReply::json(&json!({ "errors": [error] }))]).await;
    let client = client(&server);
    let error = client.graphql(QUERY, Value::Null).await.unwrap_err();
    assert_eq!(error.to_string(), "It costs 2003 points, and the maximum is 1000: ask for less at once.");
    assert_eq!((server.calls(), error.is_retryable(), error.is_unknown()), (1, false, false));
    // A budget that can never hold it is no reason to wait either.
    let server = ScriptedServer::answering(vec![throttled(3_000, 2_000, 100)]).await;
    let error = self::client(&server).graphql(QUERY, Value::Null).await.unwrap_err();
    assert!(matches!(error.kind(), ShopifyErrorKind::TooCostly { .. }), "{error}");
    assert_eq!(server.calls(), 1);
}

fn client(server: &ScriptedServer) -> Shopify {
    crate::world::client(&memory(), &server.url())
}

/// LIM-17: a lost response and a failure of Shopify's are retried only where twice is the same as
/// once; otherwise the outcome is unknown, and reported as such.
#[tokio::test]
async fn lim_17_only_what_may_happen_twice_is_repeated() {
    let internal = json!({ "message": "Internal error", "extensions": { "code": "INTERNAL_SERVER_ERROR" } });
    let failures = [
        ScriptedReply::Cut,
        ScriptedReply::status(502),
        ScriptedReply::status(200).with_body("<html>hunter3"),
        ScriptedReply::status(200).with_body(r#"{"data":{"shop":"#),
        ScriptedReply::json(
            &json!({ "data": null, "errors": [internal], "extensions": cost(10, Some(10), 1_900, 100) }),
        ),
    ];
    for failure in failures {
        for (text, calls) in [(QUERY, 2), (ONCE, 2), (MUTATION, 1)] {
            let server = ScriptedServer::answering(vec![failure.clone(), shop()]).await;
            let came = client(&server).graphql(text, Value::Null).await;
            assert_eq!((came.is_ok(), server.calls()), (calls == 2, calls), "{text} {failure:?}");
            if let Err(error) = came {
                assert!(error.is_unknown() && !error.is_retryable(), "{error}");
                assert!(
                    error.to_string().starts_with("Its outcome is unknown, and it may have happened: "),
                    "{error}"
                );
            }
        }
    }
}

/// LIM-17: a call that was not sent is retried, whatever it is, and reported as not sent in the
/// end.
#[tokio::test]
async fn lim_17_not_sent_is_not_unknown() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", nobody.local_addr().unwrap());
    drop(nobody);
    let store = memory();
    let client = builder(&store, &url).attempts(2).build().unwrap();
    let error = client.graphql(MUTATION, Value::Null).await.unwrap_err();
    assert!(matches!(error.kind(), ShopifyErrorKind::NotSent(_)) && error.is_retryable(), "{error}");
    let left = points(&client, &store).await;
    assert!(left >= 999.0, "what was not sent costs nothing: {left}");
}

/// Errors next to data leave what worked as it is; errors alone are an error with their codes.
#[tokio::test]
async fn errors_beside_data_are_told_with_it() {
    let denied = json!({ "message": "hunter3", "extensions": { "code": "ACCESS_DENIED" } });
    let both = json!({ "data": { "shop": { "id": "7" }, "orders": null }, "errors": [denied] });
    let server = ScriptedServer::answering(vec![ScriptedReply::json(&both)]).await;
    let answer = client(&server).graphql(QUERY, Value::Null).await.unwrap();
    assert_eq!((answer.errors.len(), answer.data["shop"]["id"].as_str()), (1, Some("7")));
    let server = ScriptedServer::answering(vec![ScriptedReply::json(&json!({ "errors": [denied] }))]).await;
    let error = client(&server).graphql(QUERY, Value::Null).await.unwrap_err();
    assert_eq!((error.to_string().as_str(), server.calls()), ("No part of it ran: ACCESS_DENIED.", 1));
    assert!(
        matches!(error.kind(), ShopifyErrorKind::Graphql { errors, .. } if errors[0]["message"] == "hunter3")
    );
}

/// OPS-22: nothing that is printed contains the token or what Shopify sent.
#[tokio::test]
async fn ops_22_the_token_is_in_no_message() {
    let store = memory();
    let replies = [
        ScriptedReply::status(401),
        ScriptedReply::status(500),
        ScriptedReply::Cut,
        ScriptedReply::json(&json!({ "errors": "hunter3" })),
    ];
    for reply in replies {
        let server = ScriptedServer::answering(vec![reply]).await;
        let builder = builder(&store, &server.url());
        let client = builder.clone().attempts(1).build().unwrap();
        let error: Error = client.graphql(MUTATION, json!({ "secret": "hunter4" })).await.unwrap_err();
        let printed = format!("{builder:?} {client:?} {:?} {error} {error:?} {error:#?}", client.bulk());
        for secret in ["hunter2", "hunter3", "hunter4"] {
            assert!(!printed.contains(secret), "{printed}");
        }
    }
    let refused =
        Shopify::builder("acme", "shpat\nhunter2", std::sync::Arc::clone(&store) as _).build().unwrap_err();
    assert!(
        matches!(refused.kind(), ShopifyErrorKind::Invalid(_)) && !format!("{refused:?}").contains("hunter2")
    );
}
