//! Bulk operations over HTTP, from start to the last line of the result.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::ShopifySimOptions;

use crate::caller::Caller;

const RUN: &str = r#"mutation { bulkOperationRunQuery(
    query: "{ products { edges { node { id title variants { edges { node { id sku } } } } } } }"
) { bulkOperation { id status } userErrors { code message } } }"#;

fn begun(body: &Value) -> &Value {
    &body["data"]["bulkOperationRunQuery"]["bulkOperation"]["id"]
}

async fn instant(rows: u64) -> Caller {
    let options =
        ShopifySimOptions { bulk_takes: Duration::ZERO, bulk_rows: rows, ..ShopifySimOptions::default() };
    Caller::start(options).await
}

/// LIM-3, LIM-29: five at once from 2026-01 on, one before, and as many as configured.
#[tokio::test]
async fn lim_3_lim_29_places_by_version_and_by_setting() {
    let slow = || ShopifySimOptions { bulk_takes: Duration::from_secs(600), ..ShopifySimOptions::default() };
    for (version, set, expected) in [("2025-10", None, 1), ("2026-01", None, 5), ("2026-04", Some(2), 2)] {
        let caller = Caller::start(slow()).await;
        if let Some(set) = set {
            caller.change("acme", &json!({ "bulk_at_once": set })).await;
        }
        let mut ids = Vec::new();
        for _ in 0..expected {
            ids.push(begun(&caller.graphql(version, RUN).await).as_str().unwrap().to_owned());
        }
        let refused = caller.graphql(version, RUN).await;
        let error = &refused["data"]["bulkOperationRunQuery"]["userErrors"][0];
        assert_eq!(error["code"], "OPERATION_IN_PROGRESS");
        assert!(ids.iter().all(|id| error["message"].as_str().unwrap().contains(id.as_str())), "{error}");
        let shop = &caller.stats().await["shops"]["acme"];
        let counts =
            ["bulk_running", "bulk_started", "overstepped", "throttled"].map(|name| shop[name].as_u64());
        assert_eq!(counts, [expected, expected, 1, 0].map(Some));
    }
}

/// LIM-17: a completed operation has a URL with a line for each object; children refer to their
/// parent.
#[tokio::test]
async fn lim_17_a_result_is_read_line_by_line() {
    let caller = instant(1_001).await;
    let id = begun(&caller.ask(RUN).await).clone();
    let looks = [
        format!(
            "{{ it: bulkOperation(id: {id}) {{ ...B }} }} fragment B on BulkOperation {{ status url objectCount }}"
        ),
        format!("{{ it: node(id: {id}) {{ ... on BulkOperation {{ status url objectCount }} }} }}"),
        "{ it: currentBulkOperation { status url objectCount } }".to_owned(),
    ];
    let mut url = String::new();
    for look in looks {
        let body = caller.ask(&look).await;
        let it = &body["data"]["it"];
        assert_eq!((&it["status"], &it["objectCount"]), (&json!("COMPLETED"), &json!("1001")));
        it["url"].as_str().unwrap().clone_into(&mut url);
    }
    let text = caller.client.get(&url).send().await.unwrap().text().await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1_001);
    assert!(lines[0].get("__parentId").is_none() && lines[0]["title"].is_string());
    assert_eq!(lines[1]["__parentId"], lines[0]["id"]);
    let missing = caller.client.get(url.replace(".jsonl", "0.jsonl")).send().await.unwrap();
    assert_eq!(missing.status(), 404);
}

/// LIM-17: a result of any size starts at once; no one holds all of it.
#[tokio::test]
async fn lim_17_a_huge_result_is_made_while_it_is_read() {
    let caller = instant(u64::MAX).await;
    let id = begun(&caller.ask(RUN).await).clone();
    let body = caller.ask(&format!("{{ bulkOperation(id: {id}) {{ url }} }}")).await;
    let mut result =
        caller.client.get(body["data"]["bulkOperation"]["url"].as_str().unwrap()).send().await.unwrap();
    let mut read = 0;
    while read < 200_000 {
        read += result.chunk().await.unwrap().unwrap().len();
    }
}

/// LIM-29: running operations are found by search, and a canceled one frees its slot.
#[tokio::test]
async fn lim_29_running_ones_are_found_and_cancelled() {
    let options = ShopifySimOptions { bulk_takes: Duration::from_secs(600), ..ShopifySimOptions::default() };
    let caller = Caller::start(options).await;
    let id = begun(&caller.graphql("2025-10", RUN).await).clone();
    let search = |status: &str| {
        format!(
            r#"{{ bulkOperations(first: 5, query: "status:{status} operation_type:query") {{ nodes {{ id }} }} }}"#
        )
    };
    let found = caller.ask(&search("created")).await;
    assert_eq!(found["data"]["bulkOperations"]["nodes"], json!([{ "id": id }]));
    assert_eq!(caller.ask(&search("completed")).await["data"]["bulkOperations"]["nodes"], json!([]));
    let cancel = format!(
        "mutation {{ bulkOperationCancel(id: {id}) {{ bulkOperation {{ status }} userErrors {{ message }} }} }}"
    );
    let body = caller.ask(&cancel).await;
    assert_eq!(body["data"]["bulkOperationCancel"]["bulkOperation"]["status"], "CANCELING");
    let unknown = cancel.replace("BulkOperation/", "BulkOperation/9");
    let body = caller.ask(&unknown).await;
    assert_eq!(
        body["data"]["bulkOperationCancel"]["userErrors"][0]["message"],
        "Bulk operation does not exist"
    );
}

/// A bulk mutation needs its file, then returns a line for each row of it.
#[tokio::test]
async fn a_bulk_mutation_needs_its_file() {
    let caller = instant(2).await;
    let run = |path: &str| {
        let inner =
            "mutation($p: P!) { productCreate(product: $p) { product { id } userErrors { message } } }";
        format!(
            r#"mutation {{ bulkOperationRunMutation(mutation: "{inner}", stagedUploadPath: "{path}") {{
                bulkOperation {{ id type url }} userErrors {{ code }} }} }}"#
        )
    };
    let body = caller.ask(&run("")).await;
    assert_eq!(body["data"]["bulkOperationRunMutation"]["userErrors"][0]["code"], "NO_SUCH_FILE");
    let body = caller.ask(&run("tmp/rows.jsonl")).await;
    let bulk = &body["data"]["bulkOperationRunMutation"]["bulkOperation"];
    assert_eq!(bulk["type"], "MUTATION");
    let text = caller.client.get(bulk["url"].as_str().unwrap()).send().await.unwrap().text().await.unwrap();
    let last: Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!((text.lines().count(), &last["__lineNumber"]), (2, &json!(1)));
}
