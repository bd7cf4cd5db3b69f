//! What the server writes while it carries: one line for each attempt, and nothing that is nobody's
//! business.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tidegate_sim::{HttpSim, HttpSimOptions};

use crate::ALONE;
use crate::caller::Caller;
use crate::child::{RunningServer, configure, upstream};

/// What every attempt that has them all is logged with.
const FIELDS: [&str; 10] = [
    "request_id",
    "deployment_id",
    "operation_id",
    "group",
    "kind",
    "key",
    "fingerprint",
    "attempt",
    "duration_ms",
    "result",
];
/// What may stand beside them.
const BESIDE: [&str; 6] = ["timestamp", "level", "target", "message", "status", "fault"];
const SECRET: &str = "kept-in-the-environment-7391";
const IN_BODY: &str = "written-in-the-body-4826";
const IN_HEADER: &str = "sent-in-a-header-5510";

fn operation(upstream: &str) -> Value {
    json!({
        "upstream": upstream, "group": "shop:acme", "dedupe_key": format!("key-{upstream}"), "max_attempts": 1,
        "deployment_id": "deploy-7",
        "request": {
            "method": "POST", "path": "/x", "headers": { "x-note": IN_HEADER },
            "body": { "id": IN_BODY, "text": IN_BODY },
        },
    })
}

/// The line of an operation's only attempt.
fn attempt(log: &str, id: &str) -> Value {
    let lines: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|line: &Value| line["target"] == "tidegate::attempt" && line["operation_id"] == id)
        .collect();
    assert_eq!(lines.len(), 1, "{log}");
    lines[0].clone()
}

/// OPS-22: an attempt is logged with exactly its traces, also when it failed; no secret and no body
/// is in the log, not even at its most talkative.
#[tokio::test(flavor = "multi_thread")]
async fn ops_22_an_attempt_is_logged_with_its_traces_and_nothing_else() {
    let _alone = ALONE.lock().await;
    let good = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let bad = HttpSim::start(HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let with_token = |name, sim| upstream(name, sim, None) + "token_env = \"UPSTREAM_TOKEN\"\n";
    configure(dir.path(), 8, &(with_token("good", &good) + &with_token("bad", &bad)));
    let server = RunningServer::start(dir.path(), "trace", Some(("UPSTREAM_TOKEN", SECRET)));
    let caller = Caller::of(&server.address);
    let mut ids = Vec::new();
    for (name, state) in [("good", "succeeded"), ("bad", "failed")] {
        let request_id = format!("request-{name}");
        let headers = [("x-request-id", request_id.as_str())];
        let accepted = caller.post("/v1/operations", &headers, &operation(name)).await;
        let id = accepted["id"].as_str().unwrap().to_owned();
        assert_eq!(caller.wait_until_ended(&id).await, state);
        ids.push((name, id));
    }
    let log = tokio::task::block_in_place(|| server.kill());
    for (name, id) in &ids {
        let line = attempt(&log, id);
        let found: BTreeSet<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
        let wanted = BTreeSet::from(FIELDS);
        let strange: Vec<_> = found.difference(&wanted).filter(|field| !BESIDE.contains(field)).collect();
        assert!(found.is_superset(&wanted) && strange.is_empty(), "{line}");
        assert_eq!(
            (&line["request_id"], &line["deployment_id"]),
            (&json!(format!("request-{name}")), &json!("deploy-7"))
        );
        assert_eq!((&line["group"], &line["kind"]), (&json!("shop:acme"), &json!("http")));
        assert_eq!((&line["key"], &line["attempt"]), (&json!(format!("key-{name}")), &json!(1)));
        assert!(line["duration_ms"].is_u64() && line["level"] == "INFO", "{line}");
        assert_eq!(line["fingerprint"].as_str().map(str::len), Some(32), "{line}");
    }
    let (good, bad) = (attempt(&log, &ids[0].1), attempt(&log, &ids[1].1));
    assert_ne!(good["fingerprint"], bad["fingerprint"]);
    assert_eq!(
        (&good["result"], &good["status"], &good["fault"]),
        (&json!("done"), &json!(200), &Value::Null)
    );
    assert_eq!((&bad["result"], &bad["status"]), (&json!("retry"), &json!(500)));
    assert!(bad["fault"].as_str().unwrap().contains("500"), "{bad}");
    for hidden in [SECRET, IN_BODY, IN_HEADER] {
        let told = log.lines().find(|line| line.contains(hidden));
        assert_eq!(told, None, "{hidden} is in the log");
    }
}

/// IDM-22, IDM-10: who changed a key by hand stands in the log, however quiet that is, and the key
/// itself does not.
#[tokio::test(flavor = "multi_thread")]
async fn idm_22_a_change_by_hand_is_in_the_log_with_who_made_it() {
    let _alone = ALONE.lock().await;
    let sim = HttpSim::start(HttpSimOptions::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let token =
        "[[token]]\nname = \"anna\"\nvalue_env = \"ANNAS_TOKEN\"\nscopes = [\"write\", \"operate\"]\n";
    configure(dir.path(), 8, &(upstream("good", &sim, None) + token));
    let server = RunningServer::start(dir.path(), "warn", Some(("ANNAS_TOKEN", SECRET)));
    let caller = Caller::of(&server.address);
    let bearer = format!("Bearer {SECRET}");
    let body = json!({ "upstream": "good", "group": "g", "request": { "method": "POST", "path": "/x" } });
    let (login, key) = (("authorization", bearer.as_str()), ("idempotency-key", "order-4711"));
    caller.post("/v1/operations", &[login, key], &body).await;
    let expired = caller.post("/v1/keys/order-4711/expire", &[login], &json!({})).await;
    assert_eq!(expired["state"], "expired", "{expired}");
    let log = tokio::task::block_in_place(|| server.kill());
    let lines: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let audit: Vec<_> = lines.iter().filter(|line| line["target"] == "audit").collect();
    assert_eq!(audit.len(), 1, "{log}");
    let told = ["who", "did", "scope", "method", "path", "message"].map(|field| audit[0][field].clone());
    let changed = "an idempotency key was changed by hand";
    assert_eq!(json!(told), json!(["anna", "expire", "anna", "POST", "/v1/operations", changed]), "{log}");
    assert!(audit[0]["key"].is_string() && !log.contains("order-4711"), "{log}");
}
