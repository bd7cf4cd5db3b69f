//! The queue's executor of bulk operations, one attempt at a time: what it holds, reports and
//! counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::{OnUnknown, ServerErrors, Time, Verdict};
use tidegate_shopify::executor::BulkUpstreams;
use tidegate_upstream::http::{TokenHeader, UpstreamConfig};
use tidegate_upstream::{Call, Outcome, Secret, Upstream};

use crate::bulk::PRODUCTS;
use crate::scripted::{ScriptedReply, ScriptedServer};
use crate::world::{TOKEN, at, ms, sim, until};

fn shop(url: &str) -> BulkUpstreams {
    let config = UpstreamConfig::new("acme", url)
        .with_token(Secret::new(TOKEN))
        .with_token_header(TokenHeader::parse("x-shopify-access-token"));
    BulkUpstreams::new(&[config]).unwrap()
}

fn payload(request: &Value) -> Vec<u8> {
    json!({ "upstream": "acme", "request": request }).to_string().into_bytes()
}

fn query() -> Vec<u8> {
    payload(&json!({ "query": PRODUCTS }))
}

async fn attempt(shop: &BulkUpstreams, payload: &[u8], attempt: u16) -> Outcome {
    let on_unknown = shop.check(payload, &BTreeMap::new()).unwrap().on_unknown;
    let call = Call::new("op-1", payload, Time::from_millis(1_000));
    let call = call.with_attempt(attempt).with_on_unknown(on_unknown);
    shop.carry(call).await
}

fn started() -> ScriptedReply {
    let operation = json!({ "id": "gid://shopify/BulkOperation/7", "status": "CREATED" });
    ScriptedReply::json(
        &json!({ "data": { "bulkOperationRunQuery": { "bulkOperation": operation, "userErrors": [] } } }),
    )
}

/// LIM-13, LIM-11: bulk operations hold no more workers than they may: one more waits, spends no
/// attempt and takes nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lim_13_bulk_operations_leave_workers_for_others() {
    let sim = sim(ms(60_000), 7).await;
    let shop = Arc::new(shop(&at(&sim, "acme")).with_max_at_once(1));
    let (holder, first) = (Arc::clone(&shop), query());
    let holding = tokio::spawn(async move { attempt(&holder, &first, 1).await });
    until("it has started", || sim.stats().shops.get("acme").is_some_and(|shop| shop.bulk_started == 1))
        .await;
    let second = attempt(&shop, &query(), 1).await;
    let Verdict::Throttled { after: Some(_), scope: Some(scope), fault } = second.verdict else {
        panic!("{second:?}")
    };
    assert_eq!((&*scope, second.hints[0].spent), ("acme/bulk", Some(0)));
    assert!(fault.message.starts_with("1 bulk operations hold a worker on this node"), "{}", fault.message);
    holding.abort();
    let _ = holding.await;
    let third = attempt(&shop, &payload(&json!({ "query": "{ shop { name } }" })), 1).await;
    assert!(matches!(third.verdict, Verdict::Rejected(_)), "its slot is free again: {third:?}");
    let said: Value = serde_json::from_slice(&third.body).unwrap();
    let sentence = said["user_errors"][0]["message"].as_str().unwrap();
    assert!(!sentence.is_empty(), "OPS-10: the result has Shopify's reason for the refusal: {said}");
}

/// OPS-23: a bulk query only reads, so it is repeated; a second attempt adopts one that is still
/// running. A mutation is looked for.
#[tokio::test]
async fn ops_23_a_bulk_query_is_repeated() {
    let server = ScriptedServer::start(|_, asked| {
        let text = asked.body["query"].as_str().unwrap_or_default().to_owned();
        if text.contains("bulkOperations(") {
            return ScriptedReply::json(&json!({ "data": { "bulkOperations": { "nodes": [] } } }));
        }
        if text.contains("bulkOperationRunQuery") { started() } else { ScriptedReply::status(502) }
    })
    .await;
    let shop = shop(&server.url());
    let on_unknown = |payload: &[u8]| shop.check(payload, &BTreeMap::new()).unwrap().on_unknown;
    assert_eq!(on_unknown(&query()), OnUnknown::Repeat);
    let mutation = json!({ "mutation": "mutation { a { id } }", "staged_upload_path": "x" });
    assert_eq!(on_unknown(&payload(&mutation)), OnUnknown::Reconcile);
    let cost = |name: &str| shop.check(&query(), &BTreeMap::from([(name.to_owned(), 3)]));
    assert!(cost("bulk").is_ok() && cost("points").is_ok() && cost("requests").is_err());
    let asked = |from: usize| server.requests()[from].body["query"].as_str().unwrap().to_owned();
    let call = async |nth, before| {
        let payload = query();
        tokio::select! {
            _ = attempt(&shop, &payload, nth) => {}
            () = until("it asks", || server.calls() > before) => {}
        }
    };
    call(1, 0).await;
    assert!(asked(0).contains("bulkOperationRunQuery"), "nothing to look for: {}", asked(0));
    let before = server.calls();
    call(2, before).await;
    assert!(asked(before).contains("bulkOperations("), "it looks first: {}", asked(before));
}

/// OPS-23: a start that was not processed is sent again; after a server error it is looked for,
/// unless the upstream is configured otherwise.
#[tokio::test]
async fn ops_23_a_start_that_failed_follows_the_rule() {
    for (status, server_errors, is_unknown) in [
        (503, None, false),
        (500, None, true),
        (500, Some(ServerErrors::Unknown), true),
        (500, Some(ServerErrors::Retry), false),
    ] {
        let server = ScriptedServer::start(move |_, _| ScriptedReply::status(status)).await;
        let mut config = UpstreamConfig::new("acme", server.url());
        config.server_errors = server_errors;
        let outcome = attempt(&BulkUpstreams::new(&[config]).unwrap(), &query(), 1).await;
        let is_expected = match is_unknown {
            true => matches!(outcome.verdict, Verdict::Unknown(_)),
            false => matches!(outcome.verdict, Verdict::Retry { .. }),
        };
        assert!(is_expected, "{status} {server_errors:?}: {outcome:?}");
    }
}

/// LIM-23: a start whose response was lost counts with its requested cost, not as nothing.
#[tokio::test]
async fn lim_23_a_lost_start_counts_as_what_it_asked_for() {
    let server = ScriptedServer::start(|_, _| ScriptedReply::Cut).await;
    let outcome = attempt(&shop(&server.url()), &query(), 1).await;
    assert!(matches!(outcome.verdict, Verdict::Unknown(_)), "{outcome:?}");
    assert!(outcome.hints[0].spent.unwrap() >= 10_000_000, "{:?}", outcome.hints);
}
