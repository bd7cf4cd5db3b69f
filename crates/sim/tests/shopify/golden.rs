//! The recorded bodies: each file of `golden` is one exact body, with its decimals.

use serde_json::{Value, json};

use crate::caller::{Caller, read};

fn recorded(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// LIM-1: a throttled call is reported inside a 200, with no data and the available points.
#[tokio::test]
async fn lim_1_a_throttled_call() {
    let caller = Caller::dry(666, 40).await;
    let query = "{ products(first: 750) { nodes { id } } }";
    let response = caller.send("2026-04", &json!({ "query": query })).await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers().get("retry-after")), (200, None));
    assert_eq!(read(response).await, recorded(include_str!("golden/throttled-decimals.json")));
    assert_eq!(caller.ask(query).await, recorded(include_str!("golden/throttled.json")));
}

/// LIM-9: a document above the highest cost is refused on every plan, and takes nothing.
#[tokio::test]
async fn lim_9_a_document_that_is_too_costly() {
    let caller = Caller::dry(2_000, 40).await;
    let body = caller.ask("{ products(first: 2001) { nodes { id } } }").await;
    assert_eq!(body, recorded(include_str!("golden/too-costly.json")));
    let shop = &caller.stats().await["shops"]["acme"];
    assert_eq!(
        (&shop["overstepped"], &shop["throttled"], &shop["points_granted"]),
        (&json!(1), &json!(0), &json!(0))
    );
}

/// LIM-8: every response reports its cost and the state of the bucket.
#[tokio::test]
async fn lim_8_an_answer() {
    let caller = Caller::dry(2_000, 40).await;
    let body = caller.ask("{ shop { name } }").await;
    assert_eq!(body, recorded(include_str!("golden/answered-decimals.json")));
    let body = caller.ask("{ shop { name } }").await;
    assert_eq!(body, recorded(include_str!("golden/answered.json")));
}

#[tokio::test]
async fn a_call_without_a_token() {
    let caller = Caller::dry(2_000, 40).await;
    let call = caller.client.post(format!("{}/admin/api/2026-04/graphql.json", caller.url));
    let response = call.body(r#"{"query":"{ shop { name } }"}"#).send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(read(response).await, recorded(include_str!("golden/unauthorized.json")));
}

/// LIM-2: a REST call that does not fit is a 429 with decimals in its `Retry-After`.
#[tokio::test]
async fn lim_2_a_rest_call_beyond_the_limit() {
    let caller = Caller::dry(2_000, 0).await;
    caller.change("acme", &json!({"rest_per_s": 2})).await;
    let call = caller.client.get(format!("{}/shops/acme/admin/api/2026-04/products.json", caller.url));
    let response = call.header("x-shopify-access-token", "t").send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["retry-after"]),
        (429, &"2.0".parse().unwrap())
    );
    assert_eq!(read(response).await, recorded(include_str!("golden/rest-limited.json")));
}

#[tokio::test]
async fn directives_that_are_wrong() {
    let caller = Caller::dry(2_000, 40).await;
    let query =
        r#"mutation { inventoryAdjustQuantities(input: {}) @idempotent(key: "k") { userErrors { code } } }"#;
    let body = caller.graphql("2025-10", query).await;
    assert_eq!(body, recorded(include_str!("golden/unknown-directive.json")));
    let bare = "mutation { inventoryAdjustQuantities(input: {}) { userErrors { code } } }";
    let body = caller.graphql("2026-04", bare).await;
    assert_eq!(body, recorded(include_str!("golden/key-required.json")));
    let misplaced =
        r#"mutation @idempotent(key: "k") { productCreate(product: {}) { userErrors { code } } }"#;
    let body = caller.graphql("2026-04", misplaced).await;
    assert_eq!(body["errors"][0]["extensions"]["code"], "directiveCannotBeApplied");
}

/// LIM-3: one bulk operation too many gets the running ones, inside a 200, and costs ten.
#[tokio::test]
async fn lim_3_a_bulk_operation_too_many() {
    let caller = Caller::dry(2_000, 40).await;
    caller.change("acme", &json!({"bulk_at_once": 1})).await;
    let query = r#"mutation { bulkOperationRunQuery(query: "{ products { nodes { id } } }") {
        bulkOperation { id status } userErrors { field code message } } }"#;
    let begun = caller.ask(query).await;
    let begun = &begun["data"]["bulkOperationRunQuery"];
    assert_eq!(begun, &recorded(include_str!("golden/bulk-begun.json")));
    let body = caller.ask(query).await;
    assert_eq!(body, recorded(include_str!("golden/bulk-in-progress.json")));
}
