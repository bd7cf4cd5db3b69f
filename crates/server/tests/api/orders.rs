//! Commands of an operator: cancel, rerun, resolve.

use serde_json::{Value, json};
use tidegate_sim::HttpSimOptions;

use crate::support::{World, operation, with, within};

/// OPS-9: a waiting operation can be canceled, a canceled one can be rerun, and each only then.
#[tokio::test]
async fn ops_9_cancel_and_rerun() {
    within(async {
        let world = World::new().await;
        world.post("/v1/groups/g/pause", r#"{"create":true}"#).await;
        let id = world.submit(operation("g")).await;
        // A body that cannot be meant is refused: it may hold a misspelled order.
        for (command, body, field) in [
            ("cancel", r#"{"reson":"typo""#, None),
            ("cancel", r#"{"reason":7}"#, Some("reason")),
            ("rerun", r#"{"x":1}"#, Some("x")),
        ] {
            let refused = world.post(&format!("/v1/operations/{id}/{command}"), body).await;
            refused.refused(400, "TG0001", field);
        }
        world.post("/v1/groups/g/resume", r#"{"x":1}"#).await.refused(400, "TG0001", Some("x"));
        let canceled = world.post(&format!("/v1/operations/{id}/cancel"), "{}").await;
        assert_eq!(
            (canceled.status, canceled.text("state"), canceled.text("id")),
            (200, "canceled".into(), id.clone())
        );
        let again = world.post(&format!("/v1/operations/{id}/cancel"), "").await;
        assert_eq!((again.status, &again.json["error"]["code"]), (409, &json!("TG0013")), "{again:?}");
        let rerun = world.post(&format!("/v1/operations/{id}/rerun"), "").await;
        assert_eq!(rerun.status, 200, "{rerun:?}");
        world.post("/v1/groups/g/resume", "").await;
        assert_eq!(world.wait_until_ended(&id).await["state"], "succeeded");
        let done = world.post(&format!("/v1/operations/{id}/rerun"), "").await;
        assert_eq!(done.status, 409, "{done:?}");
        let unknown = world.post("/v1/operations/op_00000000000000000000000001/cancel", "").await;
        assert_eq!(unknown.status, 404);
    })
    .await;
}

/// OPS-23: a call that was cut has an unknown outcome and holds its group until an operator
/// resolves it.
#[tokio::test]
async fn ops_23_an_unknown_outcome_is_resolved_by_a_person() {
    within(async {
        let world = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let id = world.submit(operation("g")).await;
        let held = loop {
            let held = world.get("/v1/groups?state=held").await;
            if held.json["groups"][0].is_object() {
                break held;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(held.json["groups"][0]["held"]["unknown"], true);
        assert_eq!(held.json["groups"][0]["held"]["operation"], id.as_str());
        assert_eq!(world.get(&format!("/v1/operations/{id}")).await.json["state"], "unknown");
        let page = world.request(reqwest::Method::GET, &format!("/operations/{id}")).send().await.unwrap();
        assert!(page.text().await.unwrap().contains(&format!("tidegate op resolve {id} --as succeeded")));
        let path = format!("/v1/operations/{id}/resolve");
        world.post(&path, json!({ "as": "maybe" })).await.refused(400, "TG0001", Some("as"));
        world.post(&path, json!({})).await.refused(400, "TG0001", Some("as"));
        world.post(&path, "").await.refused(400, "TG0001", None);
        let guess = json!({ "as": "failed", "result": {} });
        world.post(&path, guess).await.refused(400, "TG0002", Some("result"));
        let resolved = world.post(&path, json!({ "as": "succeeded", "result": { "charge": "ch_7" } })).await;
        assert_eq!((resolved.status, resolved.text("state")), (200, "succeeded".into()));
        assert_eq!(resolved.json["result"]["body"], json!({ "charge": "ch_7" }));
        let again = world.post(&path, json!({ "as": "failed" })).await;
        assert_eq!(again.status, 409, "{again:?}");
        assert_eq!(world.get("/v1/groups?state=held").await.json["groups"], Value::Array(vec![]));
        assert_eq!(world.sim.stats().writes, 1);
    })
    .await;
}

/// OPS-23: a call whose response was lost, and that is canceled while it waits for a retry, still
/// reports that it may have happened.
#[tokio::test]
async fn ops_23_a_canceled_operation_keeps_its_fault() {
    within(async {
        let world = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let id = world.submit(with("on_unknown", "repeat")).await;
        let path = format!("/v1/operations/{id}");
        let lost = loop {
            let seen = world.get(&path).await.json;
            if seen["state"] == "waiting" {
                break seen["fault"].clone();
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(lost["class"], "transient");
        assert_eq!(lost["may_have_happened"], true);
        let canceled = world.post(&format!("{path}/cancel"), "").await;
        assert_eq!(
            (canceled.text("state"), &canceled.json["fault"]),
            ("canceled".into(), &lost),
            "{canceled:?}"
        );
        assert_eq!(world.get(&path).await.json["fault"], lost);
    })
    .await;
}

/// OPS-25: a group that a failure holds names the operation that failed, and shows what waits
/// behind it as lists do.
#[tokio::test]
async fn ops_25_a_held_group_names_the_failed_operation() {
    within(async {
        let world = World::with("", HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }).await;
        let mut failing = with("on_failure", "hold");
        failing["max_attempts"] = 1.into();
        let group = failing["group"].as_str().unwrap().to_owned();
        let id = world.submit(failing).await;
        world.wait_until_ended(&id).await;
        let next = world.submit(operation(&group)).await;
        let shown = world.get(&format!("/v1/groups/{group}")).await.json;
        assert_eq!(shown["held"]["operation"], id.as_str(), "{shown}");
        let listed = world.get(&format!("/v1/operations?group={group}&limit=1")).await.json;
        let listed = &listed["operations"][0];
        assert_eq!(listed["id"], next.as_str());
        for place in [&shown["head"], &shown["line"][0]] {
            assert_eq!(place["id"], next.as_str());
            assert!(place["upstream"].is_string() && place["request"]["path"].is_string(), "{place}");
            assert_eq!((&place["upstream"], &place["request"]), (&listed["upstream"], &listed["request"]));
        }
        let held = world.get("/v1/groups?state=held").await.json;
        assert_eq!(held["groups"][0]["held"]["operation"], id.as_str(), "{held}");
    })
    .await;
}

/// OPS-25: the configuration decides which groups wait for an operator after a failure.
#[tokio::test]
async fn ops_25_the_configuration_holds_groups() {
    let by_group = "[[on_failure]]\ngroup = \"shop:*\"\nthen = \"hold\"\n";
    let by_kind = "[[on_failure]]\nkind = \"shopify.bulk\"\nthen = \"skip\"\n\
                   [[on_failure]]\nkind = \"http\"\nthen = \"hold\"\n";
    let by_both = "[[on_failure]]\ngroup = \"shop:*\"\nkind = \"shopify.bulk\"\nthen = \"hold\"\n\
                   [[on_failure]]\ngroup = \"guild:1\"\nkind = \"http\"\nthen = \"hold\"\n";
    let rules = [
        ("", &[] as &[&str]),
        (by_group, &["shop:acme"]),
        (by_kind, &["guild:1", "shop:acme"]),
        (by_both, &["guild:1"]),
    ];
    for (rules, held) in rules {
        within(check_held(rules, held)).await;
    }
}

/// With these rules, of the groups `shop:acme` and `guild:1`, whose calls fail for good, those are
/// held.
async fn check_held(rules: &str, expected: &[&str]) {
    let world = World::with(rules, HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }).await;
    for group in ["shop:acme", "guild:1"] {
        let mut failing = operation(group);
        failing["max_attempts"] = 1.into();
        let id = world.submit(failing).await;
        assert_eq!(world.wait_until_ended(&id).await["state"], "failed");
    }
    let passed =
        world.request(reqwest::Method::POST, "/proxy/echo/x").header("x-tidegate-group", "shop:passed");
    assert_eq!(passed.send().await.unwrap().status(), 500, "a client is told, and holds nobody up");
    let held = world.get("/v1/groups?state=held").await.json;
    let names: Vec<_> = held["groups"].as_array().unwrap().iter().map(|one| &one["group"]).collect();
    assert_eq!(names, expected, "{rules}: {held}");
}
