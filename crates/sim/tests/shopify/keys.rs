//! Writes over HTTP: duplicates are counted, and a key prevents them.

use serde_json::{Value, json};

use crate::caller::Caller;

fn adjust(key: Option<&str>, delta: i64) -> String {
    let key = key.map(|key| format!("@idempotent(key: \"{key}\")")).unwrap_or_default();
    let change = format!(
        r#"{{delta: {delta}, inventoryItemId: "gid://shopify/InventoryItem/1", locationId: "gid://shopify/Location/1"}}"#
    );
    format!(
        r#"mutation {{ inventoryAdjustQuantities(input: {{reason: "correction", name: "available", changes: [{change}]}}) {key} {{
            inventoryAdjustmentGroup {{ id changes {{ delta quantityAfterChange }} }} userErrors {{ code message }} }} }}"#
    )
}

fn level(body: &Value) -> &Value {
    &body["data"]["inventoryAdjustQuantities"]["inventoryAdjustmentGroup"]["changes"][0]["quantityAfterChange"]
}

fn code(body: &Value) -> &Value {
    &body["data"]["inventoryAdjustQuantities"]["userErrors"][0]["code"]
}

/// The same key has one effect and one response; other parameters with it are refused; each shop
/// has its own keys.
#[tokio::test]
async fn a_key_happens_once() {
    let caller = Caller::dry(2_000, 40).await;
    let first = caller.ask(&adjust(Some("k"), 5)).await;
    assert_eq!(level(&first), 5);
    let again = caller.ask(&adjust(Some("k"), 5)).await;
    assert_eq!(again["data"], first["data"]);
    let other = caller.ask(&adjust(Some("k"), 6)).await;
    assert_eq!(code(&other), "IDEMPOTENCY_KEY_PARAMETER_MISMATCH");
    let fresh = caller.ask(&adjust(Some("l"), 6)).await;
    assert_eq!(level(&fresh), 11);
    let stats = caller.stats().await;
    assert_eq!((&stats["writes"], &stats["duplicates"]), (&json!(2), &json!(0)));
}

/// By version: unknown, optional, required.
#[tokio::test]
async fn versions_say_whether_a_key_must_be_there() {
    let caller = Caller::dry(2_000, 40).await;
    let works = |body: &Value| body.get("errors").is_none();
    for (version, with, without) in
        [("2025-10", false, true), ("2026-01", true, true), ("2026-04", true, false)]
    {
        let body = caller.graphql(version, &adjust(Some(version), 1)).await;
        assert_eq!(works(&body), with, "{version}: {body}");
        let body = caller.graphql(version, &adjust(None, 1)).await;
        assert_eq!(works(&body), without, "{version}: {body}");
    }
    assert_eq!(caller.stats().await["writes"], 4);
}

/// A product that is created twice is a duplicate, and a mutation that is not remembered is a
/// write.
#[tokio::test]
async fn duplicates_are_counted() {
    let caller = Caller::dry(2_000, 40).await;
    let product = |title: &str| {
        format!(
            r#"mutation {{ productCreate(product: {{title: "{title}"}}) {{ product {{ id title }} userErrors {{ message }} }} }}"#
        )
    };
    let first = caller.ask(&product("Lamp")).await;
    assert_eq!(first["data"]["productCreate"]["product"]["title"], "Lamp");
    assert_eq!(first["data"]["productCreate"]["userErrors"], json!([]));
    let second = caller.ask(&product("Lamp")).await;
    assert_ne!(
        second["data"]["productCreate"]["product"]["id"],
        first["data"]["productCreate"]["product"]["id"]
    );
    caller.ask(&product("Table")).await;
    let blank = caller.ask(&product("")).await;
    assert_eq!(blank["data"]["productCreate"]["product"], Value::Null);
    assert_eq!(blank["data"]["productCreate"]["userErrors"][0]["message"], "Title can't be blank");
    caller.ask("mutation { tagsAdd(id: 1, tags: []) { node { id } } }").await;
    let stats = caller.stats().await;
    assert_eq!(
        (&stats["writes"], &stats["duplicates"], &stats["objects"]),
        (&json!(4), &json!(1), &json!({"products": 3}))
    );
}
