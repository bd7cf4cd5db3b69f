//! Bulk operations: started, waited for, canceled; and Shopify's responses about them.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tidegate_shopify::ShopifyErrorKind;
use tokio::time::{Instant, timeout};

use crate::scripted::{ScriptedReply, ScriptedServer, data};
use crate::world::{at, builder, client, memory, ms, sim, until};

pub(crate) const PRODUCTS: &str = "{ products { edges { node { id title } } } }";
const ID: &str = "gid://shopify/BulkOperation/81";

/// LIM-17: run, wait, and read the result line by line.
#[tokio::test]
async fn lim_17_a_bulk_query_is_run_to_its_end() {
    let sim = sim(ms(200), 50).await;
    let client = client(&memory(), &at(&sim, "acme"));
    let running = client.bulk().query(PRODUCTS).await.unwrap();
    assert!(!running.is_adopted() && running.id().starts_with("gid://shopify/BulkOperation/"));
    let finished = running.wait().await.unwrap();
    let mut lines = client.bulk().lines(finished.url.as_ref().unwrap()).await.unwrap();
    let mut count = 0;
    while let Some(row) = lines.next_row::<Value>().await.unwrap() {
        assert!(row["id"].is_string(), "{row}");
        count += 1;
    }
    assert_eq!((count, finished.objects), (50, 50));
    assert_eq!(sim.stats().shops["acme"].overstepped, 0);
}

/// LIM-17: a bulk mutation, with a previously uploaded file; the same file never runs twice.
#[tokio::test]
async fn lim_17_a_bulk_mutation_runs_once_for_its_file() {
    let sim = sim(ms(100), 5).await;
    let client = client(&memory(), &at(&sim, "acme"));
    let mutation = "mutation call($input: ProductInput!) { productCreate(input: $input) { product { id } } }";
    let first = client.bulk().mutation(mutation, "tmp/1/rows.jsonl").await.unwrap();
    let id = first.id().to_owned();
    first.wait().await.unwrap();
    let again = client.bulk().mutation(mutation, "tmp/1/rows.jsonl").await.unwrap();
    assert_eq!((again.id(), again.is_adopted()), (id.as_str(), true));
    again.wait().await.unwrap();
    client.bulk().mutation(mutation, "tmp/2/rows.jsonl").await.unwrap().wait().await.unwrap();
    assert_eq!(sim.stats().shops["acme"].bulk_started, 2);
}

/// LIM-3: one bulk operation of a shop at a time. An operation of another owner is reported as
/// busy, with its id.
#[tokio::test]
async fn lim_3_what_others_run_is_told_as_busy() {
    let sim = sim(ms(60_000), 5).await;
    let url = at(&sim, "acme");
    // Another program, on a store of its own: Shopify decides. An older version has one slot.
    let old = "2025-10".parse().unwrap();
    let (mine, theirs) = (memory(), memory());
    let running = builder(&theirs, &url).version(old).build().unwrap().bulk().query(PRODUCTS).await.unwrap();
    let client = builder(&mine, &url).version(old).build().unwrap();
    let error = client.bulk().query("{ orders { edges { node { id } } } }").await.unwrap_err();
    assert_eq!(error.kind(), &ShopifyErrorKind::Busy { running: vec![running.id().to_owned()] });
    // Nothing is held after that: the next one gets the same error, not that the lease is taken.
    let error = client.bulk().query("{ orders { edges { node { id } } } }").await.unwrap_err();
    assert_eq!(error.kind(), &ShopifyErrorKind::Busy { running: vec![running.id().to_owned()] });
    let ended = running.cancel().await;
    assert!(ended.is_err() || ended.unwrap().status.as_str() == "CANCELED");
}

/// LIM-17: a webhook ends the wait at once, however far away the next poll is.
#[tokio::test]
async fn lim_17_a_webhook_ends_the_wait() {
    let sim = sim(ms(100), 5).await;
    let store = memory();
    let client =
        builder(&store, &at(&sim, "acme")).bulk_poll_intervals(ms(600_000), ms(600_000)).build().unwrap();
    let bulk = client.bulk();
    let running = bulk.query(PRODUCTS).await.unwrap();
    let id = running.id().to_owned();
    let waiting = tokio::spawn(running.wait());
    until("it has completed", || sim.stats().shops["acme"].bulk_running == 0).await;
    assert!(!waiting.is_finished());
    let webhook = json!({ "admin_graphql_api_id": id, "status": "completed", "type": "query" }).to_string();
    assert_eq!(bulk.notify_finished(webhook.as_bytes()).unwrap(), id);
    let finished = timeout(ms(30_000), waiting).await.expect("it is woken").unwrap().unwrap();
    assert_eq!(finished.id, id);
    assert!(matches!(bulk.notify_finished(b"{}").unwrap_err().kind(), ShopifyErrorKind::Unreadable(_)));
}

/// Starts a shop whose one operation goes through these states, one at each poll.
async fn server_with_states(states: Vec<Value>) -> ScriptedServer {
    let looks = AtomicU64::new(0);
    ScriptedServer::start(move |_, asked| {
        let query = asked.body["query"].as_str().unwrap_or_default();
        if query.contains("bulkOperationRunQuery") {
            let payload = json!({ "bulkOperation": { "id": ID, "status": "CREATED" }, "userErrors": [] });
            return data(&json!({ "bulkOperationRunQuery": payload }), 10, 10, 1_900);
        }
        if query.contains("bulkOperations(") {
            return data(&json!({ "bulkOperations": { "nodes": [] } }), 12, 2, 1_900);
        }
        let look = looks.fetch_add(1, Ordering::SeqCst) as usize;
        let mut state = states[look.min(states.len() - 1)].clone();
        if state == "cut" {
            return ScriptedReply::Cut;
        }
        if !state.is_null() {
            state["id"] = ID.into();
        }
        data(&json!({ "bulkOperation": state }), 1, 1, 1_900)
    })
    .await
}

/// LIM-17: each way to end without success is an error that says so, with the URL of the partial
/// result.
#[tokio::test]
async fn lim_17_failed_canceled_and_expired_are_errors() {
    for (status, code) in [("FAILED", Some("TIMEOUT")), ("CANCELED", None), ("EXPIRED", None)] {
        let ended = json!({ "status": status, "errorCode": code, "objectCount": "7", "partialDataUrl": "https://x/?s=hunter3" });
        let server = server_with_states(vec![
            json!({ "status": "RUNNING" }),
            "cut".into(),
            json!({ "status": "CANCELING" }),
            ended,
        ])
        .await;
        let running = client(&memory(), &server.url()).bulk().query(PRODUCTS).await.unwrap();
        let error = running.wait().await.unwrap_err();
        let ShopifyErrorKind::Ended { partial, error_code, .. } = error.kind() else { panic!("{error}") };
        assert_eq!(
            (partial.as_ref().unwrap().as_str(), error_code.as_deref()),
            ("https://x/?s=hunter3", code)
        );
        let because = code.map_or_else(String::new, |code| format!(" ({code})"));
        assert_eq!(error.to_string(), format!("The bulk operation {ID} ended as {status}{because}."));
        assert!(!format!("{error:?}").contains("hunter3"));
    }
    let server = server_with_states(vec![Value::Null]).await;
    let error =
        client(&memory(), &server.url()).bulk().query(PRODUCTS).await.unwrap().wait().await.unwrap_err();
    assert_eq!(error.kind(), &ShopifyErrorKind::Gone(ID.to_owned()));
    let server =
        server_with_states(vec![json!({ "status": "COMPLETED", "objectCount": "0", "url": null })]).await;
    let finished =
        client(&memory(), &server.url()).bulk().query(PRODUCTS).await.unwrap().wait().await.unwrap();
    assert_eq!((finished.objects, finished.url), (0, None), "an empty result has no URL");
}

/// LIM-29: a start whose response was lost is looked for, and adopted; nothing is started twice.
#[tokio::test]
async fn lim_29_a_start_whose_answer_was_lost_is_taken_on() {
    for is_there in [true, false] {
        let server = ScriptedServer::start(move |nth, asked| {
            let query = asked.body["query"].as_str().unwrap_or_default();
            if query.contains("bulkOperationRunQuery") {
                return ScriptedReply::Cut;
            }
            let found = json!({ "id": ID, "status": "RUNNING", "query": PRODUCTS });
            let nodes = if is_there && nth > 1 { vec![found] } else { Vec::new() };
            data(&json!({ "bulkOperations": { "nodes": nodes } }), 12, 2, 1_900)
        })
        .await;
        let came = client(&memory(), &server.url()).bulk().query(PRODUCTS).await;
        match came {
            Ok(running) => assert!(is_there && running.is_adopted() && running.id() == ID),
            Err(error) => assert!(!is_there && error.is_unknown(), "{error}"),
        }
        let starts = server
            .requests()
            .iter()
            .filter(|asked| asked.body["query"].as_str().unwrap().contains("Run"))
            .count();
        assert_eq!((starts, server.calls()), (1, 3));
    }
}

/// LIM-16: a waiter in this process gets the slot as soon as it is released.
#[tokio::test]
async fn lim_16_the_next_is_woken_at_once() {
    let sim = sim(ms(300), 5).await;
    let store = memory();
    // The lease is checked only every second; the wake-up is faster.
    let client = builder(&store, &at(&sim, "acme")).build().unwrap();
    let (first, second) = (client.bulk(), client.bulk());
    let running = first.query(PRODUCTS).await.unwrap();
    let next =
        tokio::spawn(
            async move { (second.query("{ orders { edges { node { id } } } }").await, Instant::now()) },
        );
    // It waits: nothing else of the shop is started.
    tokio::time::sleep(ms(50)).await;
    assert_eq!(sim.stats().shops["acme"].bulk_started, 1);
    running.wait().await.unwrap();
    let given_back = Instant::now();
    let (next, begun) = next.await.unwrap();
    next.unwrap().wait().await.unwrap();
    let waited = begun.saturating_duration_since(given_back);
    assert!(waited < ms(800), "woken, not at its next look: {waited:?}");
    assert_eq!((sim.stats().shops["acme"].bulk_started, sim.stats().shops["acme"].overstepped), (2, 0));
}
