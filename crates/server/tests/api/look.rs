//! Reading: operations, pages, why, groups, limits.

use serde_json::{Value, json};
use tidegate_sim::HttpSimOptions;

use crate::support::{World, operation, with, within};

const LIMITS: &str = "[[upstream.limit]]\nname = \"requests\"\ncapacity = 5\nrefill_per_s = 0.001\n";

fn ids(page: &Value) -> Vec<String> {
    page["operations"].as_array().unwrap().iter().map(|op| op["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_go_on_where_they_ended_and_cursors_cannot_be_made_up() {
    within(async {
        let world = World::new().await;
        let mut all = Vec::new();
        for number in 0..7 {
            let id = world.submit(operation(if number % 2 == 0 { "even" } else { "odd" })).await;
            world.wait_until_ended(&id).await;
            all.insert(0, id);
        }
        let mut seen = Vec::new();
        let mut path = "/v1/operations?limit=3".to_owned();
        for _ in 0..9 {
            let page = world.get(&path).await;
            seen.extend(ids(&page.json));
            let Some(cursor) = page.json["next_cursor"].as_str() else { break };
            path = format!("/v1/operations?limit=3&cursor={cursor}");
        }
        assert_eq!(seen, all);
        assert_eq!(ids(&world.get("/v1/operations?group=odd").await.json).len(), 3);
        assert_eq!(ids(&world.get("/v1/operations?state=succeeded&kind=http").await.json).len(), 7);
        assert_eq!(ids(&world.get("/v1/operations?state=failed").await.json).len(), 0);
        let page = world.get("/v1/operations?limit=3").await;
        let cursor = page.text("next_cursor");
        world.get("/v1/operations?cursor=abc").await.refused(400, "TG0014", Some("cursor"));
        world.get(&format!("/v1/operations?cursor={cursor}0")).await.refused(400, "TG0014", Some("cursor"));
        let other = format!("/v1/operations?group=odd&cursor={cursor}");
        world.get(&other).await.refused(400, "TG0014", Some("cursor"));
    })
    .await;
}

#[tokio::test]
async fn bad_questions_are_refused_by_name() {
    within(async {
        let world = World::new().await;
        let table = [
            ("/v1/operations?limit=0", "limit"),
            ("/v1/operations?limit=201", "limit"),
            ("/v1/operations?limit=-1", "limit"),
            ("/v1/operations?limit=1&limit=2", "limit"),
            ("/v1/operations?state=happy", "state"),
            ("/v1/operations?colour=red", "colour"),
            ("/v1/groups?state=happy", "state"),
            ("/v1/groups?limit=9999", "limit"),
            ("/v1/operations/op_00000000000000000000000001?wait_ms=60001", "wait_ms"),
            ("/v1/operations/op_00000000000000000000000001?wait_ms=NaN", "wait_ms"),
            ("/v1/limits?x=1", "x"),
            ("/v1/operations?dedupe_key=", "dedupe_key"),
            ("/v1/operations?group=", "group"),
            ("/v1/operations?state=", "state"),
            ("/v1/operations?limit=", "limit"),
            ("/v1/groups?state=", "state"),
            ("/v1/events?last_event_id=x", "last_event_id"),
        ];
        for (path, field) in table {
            world.get(path).await.refused(400, "TG0001", Some(field));
        }
        for path in ["/v1/operations/nonsense", "/v1/operations/nonsense/why"] {
            world.get(path).await.refused(404, "TG0010", Some("id"));
        }
        let unknown = world.get("/v1/operations/op_00000000000000000000000001").await;
        assert_eq!((unknown.status, &unknown.json["error"]["code"]), (404, &json!("TG0010")));
        let group = world.get("/v1/groups/nobody").await;
        assert_eq!((group.status, &group.json["error"]["code"]), (404, &json!("TG0011")));
    })
    .await;
}

/// OPS-24: the reason why an operation is not running is one sentence, with the limit and until
/// when.
#[tokio::test]
async fn ops_24_why_names_the_limit_and_the_time() {
    within(async {
        let world = World::with(LIMITS, HttpSimOptions::default()).await;
        let first = world.submit(with("cost", json!({ "requests": 5 }))).await;
        world.wait_until_ended(&first).await;
        let waits = world.submit(operation("g")).await;
        let behind = world.submit(operation("g")).await;
        let why = world.get(&format!("/v1/operations/{waits}/why")).await;
        assert_eq!((why.text("waiting_for"), why.text("name")), ("bucket".into(), "echo/requests".into()));
        assert!(why.json["until"].is_string() && why.json["behind"].is_null(), "{why:?}");
        assert!(why.text("because").contains("echo/requests"), "{why:?}");
        let why = world.get(&format!("/v1/operations/{behind}/why")).await;
        assert_eq!((why.text("waiting_for"), why.text("behind")), ("turn".into(), waits.clone()));
        assert_eq!(why.text("until"), why.text("starts_at"), "its own time, not its head's: {why:?}");
        assert!(why.text("because").contains("it starts in about 33 min"), "{why:?}");
        let done = world.get(&format!("/v1/operations/{first}/why")).await;
        assert_eq!(done.text("waiting_for"), "nothing");
        let group = world.get("/v1/groups/g").await;
        assert_eq!((group.text("state"), &group.json["depth"]), ("waiting".into(), &json!(2)));
        assert_eq!(group.json["head"]["id"], waits.as_str());
        assert_eq!(ids(&json!({ "operations": group.json["line"] })), [waits, behind]);
        assert_eq!(group.json["why"]["waiting_for"], "bucket");
    })
    .await;
}

/// OPS-9: a group is paused and resumed, whatever is in its name, and listed among those that wait
/// for an operator.
#[tokio::test]
async fn ops_9_groups_are_paused_and_resumed() {
    within(async {
        let world = World::new().await;
        let name = "guild/4 2?#é%";
        let path = "/v1/groups/guild%2F4%202%3F%23%C3%A9%25";
        let body = json!({ "by": "anna", "reason": "template fix", "create": true });
        let paused = world.post(&format!("{path}/pause"), body).await;
        assert_eq!(
            (paused.status, paused.text("state"), paused.text("group")),
            (200, "paused".into(), name.into())
        );
        let id = world.submit(operation(name)).await;
        let why = world.get(&format!("/v1/operations/{id}/why")).await;
        assert_eq!((why.text("waiting_for"), why.text("name")), ("person".into(), "anna".into()));
        for state in ["paused", "stopped"] {
            let groups = world.get(&format!("/v1/groups?state={state}")).await;
            assert_eq!(groups.json["groups"][0]["group"], name, "{groups:?}");
            assert_eq!(groups.json["groups"][0]["paused"]["reason"], "template fix");
        }
        assert_eq!(world.get("/v1/groups?state=held").await.json["groups"], json!([]));
        assert_eq!(world.get(path).await.json["depth"], 1);
        assert_eq!(world.sim.stats().calls, 0);
        assert_eq!(world.post(&format!("{path}/resume"), "").await.status, 200);
        assert_eq!(world.wait_until_ended(&id).await["state"], "succeeded");
        world.post(&format!("{path}/pause"), json!({ "by": 7 })).await.refused(400, "TG0001", Some("by"));
        world.post(&format!("{path}/pause"), json!({ "why": "" })).await.refused(400, "TG0001", Some("why"));
        let long = json!({ "reason": "x".repeat(501) });
        world.post(&format!("{path}/pause"), long).await.refused(400, "TG0002", Some("reason"));
        let lines = json!({ "by": "anna\nben" });
        world.post(&format!("{path}/pause"), lines).await.refused(400, "TG0002", Some("by"));
    })
    .await;
}

/// A misspelled group that no operation has is not paused; one whose operations have all ended is.
#[tokio::test]
async fn a_misspelled_group_is_not_paused() {
    within(async {
        let world = World::new().await;
        let id = world.submit(operation("shop:acme")).await;
        world.wait_until_ended(&id).await;
        let wrong = world.post("/v1/groups/shop:amce/pause", "").await;
        wrong.refused(404, "TG0011", Some("group"));
        assert!(wrong.json["error"]["message"].as_str().unwrap().contains("create"), "{wrong:?}");
        assert_eq!(world.get("/v1/groups?state=paused").await.json["groups"], json!([]));
        assert_eq!(world.post("/v1/groups/shop:acme/pause", "").await.text("state"), "paused");
        let meant = world.post("/v1/groups/shop:new/pause", json!({ "create": true })).await;
        assert_eq!(meant.text("state"), "paused");
    })
    .await;
}

/// OPS-9: a resume can be repeated, whatever is queued in the group; a name that no operation has
/// is refused by every command.
#[tokio::test]
async fn ops_9_a_resume_is_repeated() {
    within(async {
        let world = World::with(LIMITS, HttpSimOptions::default()).await;
        world.post("/v1/groups/g/pause", r#"{"create":true}"#).await;
        let first = world.submit(with("cost", json!({ "requests": 5 }))).await;
        for _ in 0..2 {
            assert_eq!(world.post("/v1/groups/g/resume", "").await.status, 200);
        }
        world.wait_until_ended(&first).await;
        let ended = world.post("/v1/groups/g/resume", "").await;
        assert_eq!((ended.status, ended.text("state")), (200, "idle".into()), "all of it has ended");
        assert_eq!(world.post("/v1/groups/g/rerun", "").await.json["rerun"], 0);
        world.submit(operation("g")).await;
        let waiting = world.post("/v1/groups/g/resume", "").await;
        assert_eq!((waiting.status, waiting.text("state")), (200, "waiting".into()), "{waiting:?}");
        for command in ["pause", "resume", "rerun"] {
            let unknown = world.post(&format!("/v1/groups/gee/{command}"), "").await;
            unknown.refused(404, "TG0011", Some("group"));
        }
    })
    .await;
}

/// A waiting client learns at once that an outcome is unknown: without an operator it stays so.
#[tokio::test]
async fn waiting_ends_at_an_unknown_outcome() {
    within(async {
        let world = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let started = tokio::time::Instant::now();
        let submitted = world.post("/v1/operations?wait_ms=50000", with("on_unknown", "ask")).await;
        assert_eq!((submitted.status, submitted.text("state")), (200, "unknown".into()));
        let id = submitted.text("id");
        let found = world.get(&format!("/v1/operations/{id}?wait_ms=50000")).await;
        assert_eq!(found.text("state"), "unknown");
        let again = world.get(&format!("/v1/operations/{id}?wait_ms=50000")).await;
        assert_eq!(again.text("state"), "unknown");
        let submission = |key: &str| {
            json!({ "upstream": "echo", "group": key, "dedupe_key": key,
                    "request": { "method": "POST", "path": "/x?n=1" } })
        };
        for _ in 0..2 {
            let submitted = world.post("/v1/operations?wait_ms=50000", submission("k")).await;
            assert_eq!((submitted.status, submitted.text("state")), (200, "unknown".into()));
            // An operator who must resolve it sees what it is.
            let request = json!({ "method": "POST", "path": "/x", "query": "n=1", "headers": {} });
            assert_eq!(submitted.json["request"], request);
        }
        assert!(started.elapsed().as_secs() < 40, "it waited for the end of a time");
    })
    .await;
}

#[tokio::test]
async fn groups_come_in_pages_by_name() {
    within(async {
        let world = World::new().await;
        for name in ["a", "b", "c", "d", "e"] {
            world.post(&format!("/v1/groups/{name}/pause"), json!({ "create": true })).await;
        }
        // With cursors, and with the older parameter.
        for (parameter, field) in [("cursor", "next_cursor"), ("after", "next")] {
            let (mut seen, mut next) = (Vec::new(), String::new());
            for _ in 0..9 {
                let page = world.get(&format!("/v1/groups?state=paused&limit=2&{parameter}={next}")).await;
                let groups = page.json["groups"].as_array().unwrap().clone();
                seen.extend(groups.iter().map(|group| group["group"].as_str().unwrap().to_owned()));
                let Some(more) = page.json[field].as_str() else { break };
                next = more.to_owned();
            }
            assert_eq!(seen, ["a", "b", "c", "d", "e"], "{parameter}");
        }
        let cursor = world.get("/v1/groups?state=paused&limit=2").await.text("next_cursor");
        let other = world.get(&format!("/v1/groups?state=stopped&cursor={cursor}")).await;
        other.refused(400, "TG0014", Some("cursor"));
    })
    .await;
}

/// A limit is shown with its level and source, and set by name with or without encoding.
#[tokio::test]
async fn limits_are_told_and_set() {
    within(async {
        let world = World::with(LIMITS, HttpSimOptions::default()).await;
        let limits = world.get("/v1/limits").await;
        let names: Vec<_> =
            limits.json["limits"].as_array().unwrap().iter().map(|l| l["name"].clone()).collect();
        assert_eq!(names, ["echo", "echo/requests"]);
        let limit = &limits.json["limits"][1];
        assert_eq!(
            (&limit["capacity"], &limit["level"], &limit["source"]),
            (&json!(5), &json!(5), &json!("config"))
        );
        let set =
            world.put("/v1/limits/echo%2Frequests", json!({ "capacity": 40, "refill_per_s": 2.5 })).await;
        assert_eq!(
            (set.status, &set.json["capacity"], &set.json["refill_per_s"]),
            (200, &json!(40), &json!(2.5))
        );
        assert_eq!(set.json["source"], "operator");
        assert_eq!(world.put("/v1/limits/echo/requests", json!({ "open": true })).await.status, 200);
        let answer = world.put("/v1/limits/nobody", json!({ "capacity": 4, "refill_per_s": 2 })).await;
        assert_eq!((answer.status, &answer.json["error"]["code"]), (404, &json!("TG0012")));
        let bad = [
            (json!({ "capacity": -1, "refill_per_s": 1 }), "TG0002", "capacity"),
            (json!({ "capacity": 1, "refill_per_s": 0 }), "TG0002", "refill_per_s"),
            (json!({ "capacity": 1 }), "TG0001", "refill_per_s"),
            (json!({ "capacity": "1", "refill_per_s": 1 }), "TG0001", "capacity"),
            (json!({ "rate": 1 }), "TG0001", "rate"),
        ];
        for (body, code, field) in bad {
            world.put("/v1/limits/echo/requests", body).await.refused(400, code, Some(field));
        }
        let all = world.get("/v1/limits").await.json;
        assert_eq!(all["limits"][1]["capacity"], 40);
        let one = world.get("/v1/limits/echo%2Frequests").await.json;
        assert_eq!(
            (&one["name"], &one["capacity"], &one["kind"]),
            (&json!("echo/requests"), &json!(40), &json!("drip"))
        );
        assert_eq!(world.get("/v1/limits/echo").await.json, all["limits"][0]);
        let missing = world.get("/v1/limits/nobody").await;
        assert_eq!((missing.status, &missing.json["error"]["code"]), (404, &json!("TG0012")));
    })
    .await;
}

/// OPS-7: an operation is found by its key alone, and lists filter by upstream, by several states
/// and by time.
#[tokio::test]
async fn ops_7_an_operation_is_found_by_its_key() {
    within(async {
        let other = "[[upstream]]\nname = \"other\"\nbase_url = \"http://127.0.0.1:9\"\n";
        let world = World::with(other, HttpSimOptions::default()).await;
        let keyed = world.submit(with("dedupe_key", "order:7/é")).await;
        world.wait_until_ended(&keyed).await;
        assert_eq!(world.post("/v1/groups/p/pause", json!({ "create": true })).await.status, 200);
        let mut waiting = operation("p");
        waiting["upstream"] = "other".into();
        let waiting = world.submit(waiting).await;
        let canceled = world.submit(operation("p")).await;
        world.post(&format!("/v1/operations/{canceled}/cancel"), "").await;
        let list = async |query: &str| ids(&world.get(&format!("/v1/operations?{query}")).await.json);
        assert_eq!(list("dedupe_key=order:7/%C3%A9").await, [keyed.as_str()]);
        assert_eq!(list("dedupe_key=order:8").await, [""; 0]);
        assert_eq!(list("dedupe_key=order:7/%C3%A9&state=failed").await, [""; 0]);
        assert_eq!(list("upstream=other").await, [waiting.as_str()]);
        assert_eq!(list("upstream=echo").await, [canceled.clone(), keyed.clone()]);
        assert_eq!(list("state=canceled,waiting").await, [canceled.clone(), waiting.clone()]);
        assert_eq!(
            list("state=canceled,waiting,succeeded&upstream=echo").await,
            [canceled.clone(), keyed.clone()]
        );
        let first = world.get(&format!("/v1/operations/{keyed}")).await.text("created_at");
        assert_eq!(list(&format!("created_before={first}")).await, [""; 0]);
        assert_eq!(list(&format!("created_after={first}&limit=9")).await, [canceled, waiting, keyed]);
        assert_eq!(list("created_before=2001-01-01T00:00:00Z").await, [""; 0]);
        let wrong =
            [("state=failed,happy", "state"), ("state=,", "state"), ("created_after=x", "created_after")];
        for (query, field) in wrong {
            world.get(&format!("/v1/operations?{query}")).await.refused(400, "TG0001", Some(field));
        }
    })
    .await;
}
