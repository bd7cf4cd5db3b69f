//! The queue's executor of bulk operations, one attempt or poll at a time: what it asks, reports
//! and counts.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidegate_core::{OnUnknown, ServerErrors, Time, Verdict};
use tidegate_shopify::executor::BulkUpstreams;
use tidegate_upstream::http::{TokenHeader, UpstreamConfig};
use tidegate_upstream::{AcceptedJob, Call, JobNote, Outcome, Secret, Upstream};

use crate::bulk::PRODUCTS;
use crate::scripted::{ScriptedReply, ScriptedServer, data, throttled};
use crate::world::{TOKEN, at, ms, sim};

pub(crate) const ID: &str = "gid://shopify/BulkOperation/7";

pub(crate) fn shop(url: &str) -> BulkUpstreams {
    let config = UpstreamConfig::new("acme", url)
        .with_token(Secret::new(TOKEN))
        .with_token_header(TokenHeader::parse("x-shopify-access-token"));
    BulkUpstreams::new(&[config]).unwrap()
}

pub(crate) fn payload(request: &Value) -> Vec<u8> {
    json!({ "upstream": "acme", "request": request }).to_string().into_bytes()
}

pub(crate) fn query() -> Vec<u8> {
    payload(&json!({ "query": PRODUCTS }))
}

pub(crate) async fn attempt(shop: &BulkUpstreams, payload: &[u8], attempt: u16) -> Outcome {
    let on_unknown = shop.check(payload, &BTreeMap::new()).unwrap().on_unknown;
    let call = Call::new("op-1", payload, Time::from_millis(1_000));
    let call = call.with_attempt(attempt).with_on_unknown(on_unknown);
    shop.carry(call).await
}

/// Polls what was noted last.
pub(crate) async fn poll(shop: &BulkUpstreams, note: &JobNote, cancel_requested: bool) -> Outcome {
    let (payload, now) = (query(), Time::from_millis(2_000));
    let external_id = note.external_id.as_deref();
    let job = AcceptedJob { since: now, external_id, memo: &note.memo, cancel_requested };
    shop.poll(Call::new("op-1", &payload, now), job).await
}

/// The pause before the next poll, in milliseconds, and what is kept until then.
pub(crate) fn awaited(outcome: &Outcome) -> (u128, JobNote) {
    let Verdict::Accepted { poll_after: Some(pause), .. } = outcome.verdict else { panic!("{outcome:?}") };
    let note = outcome.job.clone().unwrap();
    assert_eq!(note.external_id.as_deref(), Some(ID));
    assert!(outcome.spending.is_empty(), "its cost is reported at its end: {outcome:?}");
    (pause.as_millis(), note)
}

pub(crate) fn started() -> ScriptedReply {
    let operation = json!({ "id": ID, "status": "CREATED" });
    data(&json!({ "bulkOperationRunQuery": { "bulkOperation": operation, "userErrors": [] } }), 10, 10, 1_900)
}

pub(crate) fn status(status: &str) -> ScriptedReply {
    data(&json!({ "bulkOperation": { "id": ID, "status": status } }), 1, 1, 1_950)
}

/// LIM-23: a start returns at once, and each poll asks once. Pauses grow from poll to poll, a
/// poll that fails keeps them, and the end reports the cost of all calls together.
#[tokio::test]
async fn lim_23_a_poll_asks_once_and_the_end_counts_all() {
    let replies = [
        started(),
        status("CREATED"),
        status("RUNNING"),
        ScriptedReply::status(502),
        throttled(1, 0, 100),
        status("RUNNING"),
        status("COMPLETED"),
    ];
    let server = ScriptedServer::answering(replies.to_vec()).await;
    let shop = shop(&server.url());
    let (pause, note) = awaited(&attempt(&shop, &query(), 1).await);
    assert_eq!((pause, server.calls()), (1_000, 1));
    let first = poll(&shop, &note, false).await;
    let hint = &first.hints[0];
    assert_eq!((hint.spent, hint.remaining), (Some(1_000_000), Some(1_950_000_000)), "its own cost");
    let (pause, note) = awaited(&first);
    assert_eq!((pause, server.calls()), (1_500, 2));
    let (pause, note) = awaited(&poll(&shop, &note, false).await);
    assert_eq!(pause, 2_250);
    let failed = poll(&shop, &note, false).await;
    assert!(matches!(failed.verdict, Verdict::PollFailed { every, .. } if every == ms(2_250)), "{failed:?}");
    let note = failed.job.unwrap();
    let turned_away = poll(&shop, &note, false).await;
    let Verdict::Throttled { scope: Some(scope), .. } = turned_away.verdict else {
        panic!("{turned_away:?}")
    };
    assert_eq!((&*scope, server.calls()), ("acme/points", 5));
    let (pause, note) = awaited(&poll(&shop, &note, false).await);
    assert_eq!((pause, note.cost.unwrap() / 1_000_000), (3_375, 14), "a lost poll may have cost a point");
    let ended = poll(&shop, &note, false).await;
    assert_eq!((ended.verdict, ended.spending[0].actual), (Verdict::Done, Some(15_000_000)));
    assert_eq!(server.calls(), 7);
}

/// LIM-29: one that Shopify no longer knows has failed.
#[tokio::test]
async fn lim_29_what_is_gone_has_failed() {
    let gone = data(&json!({ "bulkOperation": null }), 1, 1, 1_900);
    let server = ScriptedServer::answering(vec![started(), gone]).await;
    let shop = shop(&server.url());
    let (_, note) = awaited(&attempt(&shop, &query(), 1).await);
    let outcome = poll(&shop, &note, false).await;
    assert!(matches!(outcome.verdict, Verdict::Rejected(_)) && outcome.spending.len() == 1, "{outcome:?}");
}

/// OPS-9: a cancel is passed on once, and its operation is awaited until Shopify has stopped it;
/// one that completes all the same has succeeded.
#[tokio::test]
async fn ops_9_a_cancel_is_passed_on_and_awaited() {
    for (end, verdict) in
        [("CANCELED", Verdict::Canceled { may_have_happened: true }), ("COMPLETED", Verdict::Done)]
    {
        let operation = json!({ "id": ID, "status": "CANCELING" });
        let canceling = json!({ "bulkOperationCancel": { "bulkOperation": operation, "userErrors": [] } });
        let replies = [
            started(),
            status("RUNNING"),
            status("RUNNING"),
            data(&canceling, 10, 10, 1_900),
            status("CANCELING"),
            status(end),
        ];
        let server = ScriptedServer::answering(replies.to_vec()).await;
        let shop = shop(&server.url());
        let (_, note) = awaited(&attempt(&shop, &query(), 1).await);
        let (_, note) = awaited(&poll(&shop, &note, false).await);
        let (pause, note) = awaited(&poll(&shop, &note, true).await);
        assert_eq!((pause, server.calls()), (1_000, 4), "canceling is quick");
        assert!(server.requests()[3].body["query"].as_str().unwrap().contains("bulkOperationCancel"));
        let (_, note) = awaited(&poll(&shop, &note, true).await);
        let ended = poll(&shop, &note, true).await;
        assert_eq!((ended.verdict, server.calls()), (verdict, 6));
        assert!(!ended.body.is_empty());
    }
}

/// OPS-10: the result of a refusal has Shopify's reason.
#[tokio::test]
async fn ops_10_a_refused_start_keeps_the_reason() {
    let sim = sim(ms(100), 7).await;
    let outcome =
        attempt(&shop(&at(&sim, "acme")), &payload(&json!({ "query": "{ shop { name } }" })), 1).await;
    assert!(matches!(outcome.verdict, Verdict::Rejected(_)), "{outcome:?}");
    let said: Value = serde_json::from_slice(&outcome.body).unwrap();
    let sentence = said["user_errors"][0]["message"].as_str().unwrap();
    assert!(!sentence.is_empty(), "{said}");
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
    attempt(&shop, &query(), 1).await;
    assert!(asked(0).contains("bulkOperationRunQuery"), "nothing to look for: {}", asked(0));
    attempt(&shop, &query(), 2).await;
    assert!(asked(1).contains("bulkOperations("), "it looks first: {}", asked(1));
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
