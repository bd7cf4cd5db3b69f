//! Commands about all operations that a filter finds, over the API.

use serde_json::{Value, json};
use tidegate_sim::HttpSimOptions;

use crate::support::{World, operation, within};

/// Submits this many operations of a group that is paused.
async fn queue(world: &World, group: &str, count: usize) -> Vec<String> {
    world.post(&format!("/v1/groups/{group}/pause"), r#"{"create":true}"#).await;
    let batch = json!({ "operations": vec![operation(group); count] });
    let accepted = world.post("/v1/operations/batch", batch).await.json;
    let accepted = accepted["operations"].as_array().unwrap();
    accepted.iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

async fn state(world: &World, id: &str) -> Value {
    world.get(&format!("/v1/operations/{id}")).await.json["state"].clone()
}

/// OPS-9: what a filter finds is counted, then canceled, and nothing else; the audit log has the
/// command with its filter and its effect, and not the count before it.
#[tokio::test]
async fn ops_9_what_a_filter_finds_is_canceled() {
    within(async {
        let world = World::new().await;
        let (ids, others) = (queue(&world, "g", 3).await, queue(&world, "h", 1).await);
        let before = world.get("/v1/audit").await.json["entries"].as_array().unwrap().len();
        let counted = world.post("/v1/operations/cancel", json!({ "group": "g", "dry_run": true })).await;
        assert_eq!((counted.status, &counted.json["matched"]), (200, &json!(3)), "{counted:?}");
        assert_eq!(json!([counted.json["changed"], counted.json["dry_run"]]), json!([0, true]));
        assert_ne!(state(&world, &ids[0]).await, "canceled");
        let done = world.post("/v1/operations/cancel", json!({ "group": "g" })).await.json;
        assert_eq!(json!([done["changed"], done["refused"], done["more"]]), json!([3, 0, false]), "{done}");
        for id in &ids {
            assert_eq!(state(&world, id).await, "canceled");
        }
        assert_ne!(state(&world, &others[0]).await, "canceled");
        let names: Vec<_> = ids.iter().rev().map(String::as_str).collect();
        let log = world.get("/v1/audit").await.json;
        let (entries, first) = (log["entries"].as_array().unwrap(), &log["entries"][0]);
        assert_eq!(entries.len(), before + 1, "a count is no command: {log}");
        assert_eq!(
            json!([first["action"], first["kind"], first["subject"], first["detail"]]),
            json!(["cancel_all", "operations", "", format!("group g: 3 changed: {}", names.join(", "))])
        );
        for (body, field) in [(json!({}), "group"), (json!({ "group": "g", "state": "failed" }), "state")] {
            world.post("/v1/operations/cancel", body).await.refused(400, "TG0002", Some(field));
        }
        world.post("/v1/operations/cancel", json!({ "grup": "h" })).await.refused(
            400,
            "TG0001",
            Some("grup"),
        );
        assert_ne!(state(&world, &others[0]).await, "canceled", "a misspelled filter cancels nothing");
    })
    .await;
}

/// OPS-9: one command changes at most 1,000, and says that there are more.
#[tokio::test]
async fn ops_9_a_bulk_command_is_bounded() {
    within(async {
        let world = World::new().await;
        queue(&world, "g", 1_000).await;
        let newest = queue(&world, "g", 7).await;
        let command = json!({ "state": "queued,waiting", "kind": "http" });
        let first = world.post("/v1/operations/cancel", &command).await.json;
        assert_eq!(json!([first["matched"], first["changed"], first["more"]]), json!([1_000, 1_000, true]));
        assert_eq!(state(&world, &newest[6]).await, "canceled", "the newest first");
        let second = world.post("/v1/operations/cancel", &command).await.json;
        assert_eq!(json!([second["matched"], second["changed"], second["more"]]), json!([7, 7, false]));
    })
    .await;
}

/// The paths of the first operations in the queue of a group.
async fn queued_paths(world: &World, group: &str) -> Vec<String> {
    let shown = world.get(&format!("/v1/groups/{group}")).await.json;
    let line = shown["line"].as_array().unwrap();
    line.iter().map(|one| one["request"]["path"].as_str().unwrap().to_owned()).collect()
}

/// OPS-9: of more than 1,000 operations the oldest run again first, so that a group keeps its order
/// over several commands.
#[tokio::test]
async fn ops_9_the_oldest_are_rerun_first() {
    within(async {
        let world = World::new().await;
        world.post("/v1/groups/g/pause", r#"{"create":true}"#).await;
        let numbered = |n: usize| {
            let mut one = operation("g");
            one["request"]["path"] = format!("/{n}").into();
            one
        };
        for part in [0..700, 700..1_005] {
            let batch = json!({ "operations": part.map(numbered).collect::<Vec<_>>() });
            world.post("/v1/operations/batch", batch).await;
        }
        for _ in 0..2 {
            world.post("/v1/operations/cancel", json!({ "group": "g" })).await;
        }
        let command = json!({ "group": "g", "state": "canceled" });
        let counted = json!({ "group": "g", "state": "canceled", "dry_run": true });
        let counted = world.post("/v1/operations/rerun", counted).await.json;
        assert_eq!(json!([counted["matched"], counted["more"]]), json!([1_000, true]));
        let first = world.post("/v1/operations/rerun", &command).await.json;
        assert_eq!(json!([first["matched"], first["changed"], first["more"]]), json!([1_000, 1_000, true]));
        let ids = first["ids"].as_array().unwrap();
        assert_eq!((ids.len(), &first["ids"]), (100, &counted["ids"]), "a dry run names the same ones");
        let oldest = world.get(&format!("/v1/operations/{}", ids[0].as_str().unwrap())).await.json;
        assert_eq!(oldest["request"]["path"], "/0");
        let second = world.post("/v1/operations/rerun", &command).await.json;
        assert_eq!(json!([second["changed"], second["more"]]), json!([5, false]), "{second}");
        let paths = queued_paths(&world, "g").await;
        let expected: Vec<_> = (0..paths.len()).map(|n| format!("/{n}")).collect();
        assert_eq!(paths, expected);
        let newest = world.get("/v1/operations?group=g&limit=1").await.json;
        let why = format!("/v1/operations/{}/why", newest["operations"][0]["id"].as_str().unwrap());
        let why = world.get(&why).await.json;
        assert!(why["because"].as_str().unwrap().contains("1004 before it"), "{why}");
    })
    .await;
}

/// OPS-9: a reason is kept with every command, and what a filter finds by the text of an error can
/// be looked at first.
#[tokio::test]
async fn ops_9_a_filter_is_looked_at_and_a_command_has_a_reason() {
    within(async {
        let world = World::with("", HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }).await;
        let mut failing = operation("a");
        failing["max_attempts"] = 1.into();
        let id = world.submit(failing).await;
        world.wait_until_ended(&id).await;
        world.post("/v1/groups/b/pause", r#"{"create":true}"#).await;
        let waiting = world.submit(operation("b")).await;
        for (error, found) in [("500", 1), ("TRANSIENT", 1), ("no%20such%20text", 0)] {
            let listed = world.get(&format!("/v1/operations?error={error}")).await;
            assert_eq!(
                listed.json["operations"].as_array().map(Vec::len),
                Some(found),
                "{error}: {listed:?}"
            );
        }
        let counted = world.post("/v1/operations/rerun", json!({ "error": "500", "dry_run": true })).await;
        assert_eq!(counted.json["ids"], json!([id]));
        world.post("/v1/groups/a/pause", "").await;
        let commands = [
            ("/v1/operations/rerun".to_owned(), json!({ "error": "500", "reason": "mended" })),
            (format!("/v1/operations/{id}/cancel"), json!({ "reason": "not yet" })),
            (format!("/v1/operations/{id}/rerun"), json!({ "reason": "now" })),
            ("/v1/groups/b/resume".to_owned(), json!({ "reason": "go" })),
            ("/v1/groups/b/rerun".to_owned(), json!({ "reason": "again" })),
        ];
        for (path, body) in &commands {
            let done = world.post(path, body).await;
            assert_eq!(done.status, 200, "{path}: {done:?}");
            let log = world.get("/v1/audit?limit=1").await.json;
            assert_eq!(log["entries"][0]["reason"], body["reason"], "{path}: {log}");
        }
        for (verb, reason) in [("cancel", "x".repeat(501)), ("rerun", "two\nlines".to_owned())] {
            let path = format!("/v1/operations/{waiting}/{verb}");
            let refused = world.post(&path, json!({ "reason": reason })).await;
            refused.refused(400, "TG0002", Some("reason"));
        }
    })
    .await;
}

/// OPS-9: failed operations are rerun by the text of their fault, and only those accepted before a
/// time.
#[tokio::test]
async fn ops_9_failures_are_rerun_by_their_text() {
    within(async {
        let world = World::with("", HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }).await;
        let mut ids = Vec::new();
        for group in ["a", "b"] {
            let mut failing = operation(group);
            failing["max_attempts"] = 1.into();
            let id = world.submit(failing).await;
            let ended = world.wait_until_ended(&id).await;
            ids.push((id, ended));
            world.post(&format!("/v1/groups/{group}/pause"), r#"{"create":true}"#).await;
        }
        let fault = ids[0].1["fault"]["message"].as_str().unwrap().to_uppercase();
        let other = json!({ "error": "no such fault" });
        assert_eq!(world.post("/v1/operations/rerun", other).await.json["matched"], 0);
        let before = json!({ "error": fault, "created_before": ids[1].1["created_at"] });
        let done = world.post("/v1/operations/rerun", before).await.json;
        assert_eq!(json!([done["matched"], done["changed"]]), json!([1, 1]), "{done}");
        assert_ne!(state(&world, &ids[0].0).await, "failed");
        assert_eq!(state(&world, &ids[1].0).await, "failed");
    })
    .await;
}

/// OPS-9: a list and a command find operations by exactly their fault, and by when they ended.
#[tokio::test]
async fn ops_9_failures_are_selected_by_their_cause() {
    within(async {
        let world = World::with("", HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }).await;
        let mut failing = operation("a");
        failing["max_attempts"] = 1.into();
        let id = world.submit(failing).await;
        let ended = world.wait_until_ended(&id).await;
        let message = ended["fault"]["message"].as_str().unwrap();
        let ended_at = ended["finished_at"].as_str().unwrap();
        let table = [
            ("fault_class", "transient", 1),
            ("fault_class", "validation", 0),
            ("fault_message", message, 1),
            ("fault_message", &message[1..], 0),
            ("finished_after", ended_at, 1),
            ("finished_after", "2199-05-06T07:08:09Z", 0),
            ("finished_before", ended_at, 0),
            ("finished_before", "2199-05-06T07:08:09Z", 1),
        ];
        for (name, value, found) in table {
            let escaped = value.replace(' ', "%20");
            let listed = world.get(&format!("/v1/operations?{name}={escaped}")).await;
            let count = listed.json["operations"].as_array().map(Vec::len);
            assert_eq!(count, Some(found), "{name}={value}: {listed:?}");
            let counted = world.post("/v1/operations/rerun", json!({ name: value, "dry_run": true })).await;
            assert_eq!(counted.json["matched"], found, "{name}={value}: {counted:?}");
        }
        let refused = world.get("/v1/operations?fault_class=odd").await;
        refused.refused(400, "TG0001", Some("fault_class"));
        let both = json!({ "fault_class": "transient", "fault_message": message, "reason": "mended" });
        let done = world.post("/v1/operations/rerun", both).await.json;
        assert_eq!(json!([done["matched"], done["changed"]]), json!([1, 1]), "{done}");
        let log = world.get("/v1/audit?limit=1").await.json;
        let detail = log["entries"][0]["detail"].as_str().unwrap();
        assert!(
            detail.starts_with(&format!("fault_class transient, fault_message {message}: 1 changed")),
            "{log}"
        );
    })
    .await;
}

/// OPS-23: a filter tells calls that may have taken effect from those that surely have not, so that
/// only these run again.
#[tokio::test]
async fn ops_23_only_what_did_not_happen_is_rerun() {
    within(async {
        let world = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let ids = [world.submit(operation("a")).await, world.submit(operation("b")).await];
        for id in &ids {
            while state(&world, id).await != "unknown" {
                tokio::task::yield_now().await;
            }
        }
        let resolve = format!("/v1/operations/{}/resolve", ids[1]);
        assert_eq!(world.post(&resolve, json!({ "as": "failed" })).await.status, 200);
        for (wanted, id) in [(true, &ids[0]), (false, &ids[1])] {
            let listed = world.get(&format!("/v1/operations?may_have_happened={wanted}&limit=1")).await.json;
            assert_eq!(listed["operations"][0]["id"], **id, "{listed}");
            assert_eq!(listed["operations"].as_array().map(Vec::len), Some(1));
        }
        world.get("/v1/operations?may_have_happened=1").await.refused(
            400,
            "TG0001",
            Some("may_have_happened"),
        );
        for (wanted, matched) in [(true, 0), (false, 1)] {
            let body = json!({ "may_have_happened": wanted, "dry_run": true });
            let counted = world.post("/v1/operations/rerun", body).await.json;
            assert_eq!(counted["matched"], matched, "{wanted}: {counted}");
        }
    })
    .await;
}

/// OPS-23: what happened to all calls whose outcome is unknown is recorded at once.
#[tokio::test]
async fn ops_23_unknown_outcomes_are_resolved_at_once() {
    within(async {
        let world = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let ids = [world.submit(operation("a")).await, world.submit(operation("b")).await];
        for id in &ids {
            while state(&world, id).await != "unknown" {
                tokio::task::yield_now().await;
            }
        }
        let path = "/v1/operations/resolve";
        world.post(path, json!({ "upstream": "echo" })).await.refused(400, "TG0001", Some("as"));
        world.post(path, json!({ "as": "failed" })).await.refused(400, "TG0002", Some("group"));
        let done = world.post(path, json!({ "upstream": "echo", "as": "succeeded" })).await.json;
        assert_eq!(json!([done["matched"], done["changed"]]), json!([2, 2]), "{done}");
        for id in &ids {
            assert_eq!(state(&world, id).await, "succeeded");
        }
    })
    .await;
}
