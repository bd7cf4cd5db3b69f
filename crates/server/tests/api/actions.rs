//! What an operator does from the page: plain forms with a confirm step, and an audit log.

mod cluster;
mod decisions;
mod dismissals;
mod operator;

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_sim::HttpSimOptions;

use self::operator::{Operator, encoded, unproven, value_of, value_of_input};
use crate::support::{World, answer, operation, within};

async fn unknown_operation(world: &World, group: &str) -> String {
    let id = world.submit(operation(group)).await;
    while world.get(&format!("/v1/operations/{id}")).await.json["state"] != "unknown" {
        tokio::task::yield_now().await;
    }
    id
}

async fn failed_operation(world: &World, group: &str) -> String {
    let mut failing = operation(group);
    failing["max_attempts"] = 1.into();
    let id = world.submit(failing).await;
    assert_eq!(world.wait_until_ended(&id).await["state"], "failed");
    id
}

fn failing() -> HttpSimOptions {
    HttpSimOptions { fail_rate: 1.0, ..HttpSimOptions::default() }
}

/// OPS-23: an operator sees which call it was, decides, and it is recorded who did, and why.
#[tokio::test]
async fn ops_23_an_unknown_outcome_is_decided_on_the_page() {
    within(async {
        let world = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let operator = Operator::at(&world.server);
        let ids = [unknown_operation(&world, "a").await, unknown_operation(&world, "b").await];
        let (_, overview) = operator.page("/").await;
        for id in &ids {
            assert!(overview.contains(&format!("/actions/happened?subject={}", encoded(id))), "{overview}");
        }
        let (_, html) = operator.page(&format!("/actions/happened?subject={}", ids[0])).await;
        assert!(html.contains("POST /x") && html.contains("echo"), "the call is shown: {html}");
        assert!(html.contains("<h1>It happened: ") && html.contains(">It happened</button>"), "{html}");
        let target = operator.act("happened", &ids[0], &[("reason", "seen in the shop")]).await;
        assert_eq!(unproven(&target), format!("/operations/{}?done=happened", encoded(&ids[0])));
        assert_eq!(world.get(&format!("/v1/operations/{}", ids[0])).await.json["state"], "succeeded");
        let (status, html) = operator.page(&target).await;
        assert!(status == 200 && html.contains("Done: It happened"), "{html}");
        operator.act("did-not-happen", &ids[1], &[]).await;
        assert_eq!(world.get(&format!("/v1/operations/{}", ids[1])).await.json["state"], "failed");
        let log = operator.audit().await;
        assert_eq!((log.len(), &log[0]["detail"], &log[0]["reason"]), (2, &json!("as failed"), &Value::Null));
        let first = &log[1];
        assert_eq!(
            json!([
                first["by"],
                first["action"],
                first["kind"],
                first["subject"],
                first["reason"],
                first["status"]
            ]),
            json!(["operator", "resolve", "operations", ids[0], "seen in the shop", 200])
        );
        let (_, html) = operator.page("/audit").await;
        assert!(html.contains("seen in the shop") && html.contains("as succeeded"), "{html}");
        assert!(html.contains(">It happened <") && html.contains(">It did not happen <"), "{html}");
    })
    .await;
}

/// OPS-23: a form that is sent twice at once, as with a double click, is carried out once, and both
/// lead to what was done. What is not possible any more is not offered.
#[tokio::test]
async fn ops_23_a_double_click_is_one_action() {
    within(async {
        let world = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let operator = Operator::at(&world.server);
        let id = unknown_operation(&world, "a").await;
        let token = operator.confirm("did-not-happen", &id).await;
        let form = [("subject", &*id), ("token", &*token), ("seen", "1"), ("reason", "not in the shop")];
        let clicks =
            tokio::join!(operator.post("did-not-happen", &form), operator.post("did-not-happen", &form));
        for done in [clicks.0, clicks.1] {
            assert_eq!(done.status(), 303);
            let target = done.headers()["location"].to_str().unwrap();
            assert!(unproven(target).ends_with("?done=did-not-happen"));
        }
        assert_eq!(operator.audit().await.len(), 1);
        let (status, html) = operator.page(&format!("/actions/send-again?subject={id}")).await;
        assert!(status == 200 && html.contains("Its state is failed now"), "{html}");
        assert!(html.contains("failed") && !html.contains("name=\"token\""), "{html}");
        let other = [("subject", &*id), ("token", &*token), ("seen", "1"), ("reason", "really not")];
        let refused = operator.post("did-not-happen", &other).await;
        let (status, html) = (refused.status().as_u16(), refused.text().await.unwrap());
        assert!(status == 409 && html.contains("TG0013") && html.contains(&id), "another form: {html}");
    })
    .await;
}

/// OPS-23: a decision is about the attempt that was shown. A form that is confirmed after another
/// attempt, as with the browser's way back, changes nothing and shows what is known now.
#[tokio::test]
async fn ops_23_a_decision_is_about_the_attempt_that_was_shown() {
    within(async {
        let world = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let operator = Operator::at(&world.server);
        let id = unknown_operation(&world, "a").await;
        let path = format!("/actions/did-not-happen?subject={id}");
        let (_, html) = operator.page(&path).await;
        let (token, seen) = (value_of(&html, "token"), value_of(&html, "seen"));
        let form = [("subject", &*id), ("token", &*token), ("seen", &*seen), ("reason", "not there")];
        operator.act("send-again", &id, &[]).await;
        let operation = || async { world.get(&format!("/v1/operations/{id}")).await.json };
        while operation().await["state"] != "unknown" || operation().await["attempt"] == 1 {
            tokio::task::yield_now().await;
        }
        let refused = operator.post("did-not-happen", &form).await;
        let (status, html) = (refused.status().as_u16(), refused.text().await.unwrap());
        assert!(status == 409 && html.contains("has changed"), "{status} {html}");
        assert_eq!((operation().await["state"].as_str(), &*value_of(&html, "seen")), (Some("unknown"), "2"));
        let body = json!({ "as": "failed", "attempt": 1 });
        world.post(&format!("/v1/operations/{id}/resolve"), body).await.refused(409, "TG0013", None);
    })
    .await;
}

/// OPS-23: what becomes unknown after it was counted is left alone.
#[tokio::test]
async fn ops_23_a_decision_about_several_is_about_those_that_were_counted() {
    within(async {
        let world = World::with("", HttpSimOptions { cut_rate: 1.0, ..HttpSimOptions::default() }).await;
        let operator = Operator::at(&world.server);
        let first = unknown_operation(&world, "a").await;
        world.post("/v1/groups/b/pause", r#"{"create":true}"#).await;
        let late = world.submit(operation("b")).await;
        let (_, html) =
            operator.page("/actions/none-happened?subject=state%3Dunknown%26upstream%3Decho").await;
        assert!(html.contains("1 unknown operation"), "{html}");
        let fields =
            ["subject", "token", "seen"].map(|name| (name, value_of(&html, name).replace("&amp;", "&")));
        world.post("/v1/groups/b/resume", "{}").await;
        while world.get(&format!("/v1/operations/{late}")).await.json["state"] != "unknown" {
            tokio::task::yield_now().await;
        }
        let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, &**value)).collect();
        let done = operator.post("none-happened", &fields).await;
        let target = done.headers()["location"].to_str().unwrap().to_owned();
        assert!(unproven(&target).ends_with("&count=1"), "{target}");
        for (id, state) in [(&first, "failed"), (&late, "unknown")] {
            assert_eq!(world.get(&format!("/v1/operations/{id}")).await.json["state"], state);
        }
    })
    .await;
}

/// Nothing is done without the token of the confirm step, with one that was issued for something
/// else, or for another site.
#[tokio::test]
async fn nothing_is_done_that_was_not_confirmed() {
    within(async {
        let world = World::with("", failing()).await;
        let operator = Operator::at(&world.server);
        let (id, other) = (failed_operation(&world, "a").await, failed_operation(&world, "b").await);
        let for_other = operator.confirm("rerun", &other).await;
        let for_pause = operator.confirm("pause", "a").await;
        for token in ["", "1.2", "1.2.3", &for_other, &for_pause] {
            let refused = operator.post("rerun", &[("subject", &id), ("token", token)]).await;
            let (status, html) = (refused.status().as_u16(), refused.text().await.unwrap());
            assert_eq!(status, 409, "{html}");
            assert!(html.contains("Look again") && html.contains("name=\"token\""), "{html}");
        }
        let token = operator.confirm("rerun", &id).await;
        let form = format!("subject={id}&token={}", encoded(&token));
        for (header, value) in
            [("origin", "http://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]
        {
            let request = world.request(Method::POST, "/actions/rerun").header(header, value);
            assert_eq!(request.body(form.clone()).send().await.unwrap().status(), 403, "{header}: {value}");
        }
        assert_eq!(operator.audit().await, Vec::<Value>::new());
        assert_eq!(world.get(&format!("/v1/operations/{id}")).await.json["state"], "failed");
        for (path, expected) in [
            ("/actions/rerun", 400),
            ("/actions/rerun?subject=x&x=1", 400),
            ("/actions/delete?subject=x", 404),
            ("/actions/rerun?subject=op_00000000000000000000000001", 404),
        ] {
            let (status, html) = operator.page(path).await;
            assert!(status == expected && html.contains("</html>"), "{path}: {status} {html}");
        }
        let long = "x".repeat(501);
        let mut form = operator.open("rerun", &id).await;
        form.push(("reason", long));
        assert_eq!(operator.send("rerun", &form).await.0, 400);
    })
    .await;
}

/// OPS-25: what failed in a group is rerun at once, in its order, and cannot be rerun twice.
#[tokio::test]
async fn ops_25_the_failures_of_a_group_are_rerun_from_the_page() {
    within(async {
        let world = World::with("", failing()).await;
        let operator = Operator::at(&world.server);
        let ids = [failed_operation(&world, "shop:1").await, failed_operation(&world, "shop:1").await];
        failed_operation(&world, "shop:2").await;
        world.post("/v1/groups/shop%3A1/pause", json!({ "reason": "look first" })).await;
        let (_, html) = operator.page("/").await;
        assert!(html.contains("group%3Dshop%253A1") && html.contains(">Re-run 2</a>"), "{html}");
        let (_, html) = operator.page("/actions/rerun-failed?subject=shop%3A1").await;
        assert!(html.contains("Re-run failed: 2</button>"), "{html}");
        let target = operator.act("rerun-failed", "shop:1", &[("reason", "fixed")]).await;
        let named = ids.join(",");
        assert_eq!(unproven(&target), format!("/groups/shop%3A1?ids={named}&done=rerun-failed&count=2"));
        let (_, html) = operator.page(&target).await;
        let notice = html.split("</p>").find(|part| part.contains("Done: Re-run failed (2)")).unwrap();
        assert!(ids.iter().all(|id| notice.contains(&format!("/operations/{id}"))), "{notice}");
        let other = target.replace(&named, &ids[0]);
        assert!(!operator.page(&other).await.1.contains("Done: "), "to other operations");
        let group = world.get("/v1/groups/shop%3A1").await.json;
        let line: Vec<_> =
            group["line"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap()).collect();
        assert_eq!(line, ids, "in their old order");
        let (status, html) = operator.page("/actions/rerun-failed?subject=shop%3A1").await;
        assert!(
            status == 200 && html.contains("This is not possible") && !html.contains("name=\"token\""),
            "{html}"
        );
        assert!(html.contains("Last command: <b>Re-run failed</b>, by <b>operator</b>"), "{html}");
        assert!(html.contains("</time> ago: fixed</p>"), "{html}");
        let canceled = operator.act("cancel", &ids[0], &[]).await;
        assert!(unproven(&canceled).ends_with("?done=cancel"), "{canceled}");
        operator.act("rerun", &ids[0], &[]).await;
        let log = operator.audit().await;
        let actions: Vec<_> = log.iter().map(|one| one["action"].as_str().unwrap()).collect();
        assert_eq!(actions, ["rerun", "cancel", "rerun_failed", "pause"]);
        assert_eq!(log[3]["by"], "local", "a command of another client is recorded too");
    })
    .await;
}

/// OPS-25: of two operators who run the same again the second one is refused, although it has
/// failed again meanwhile: the call is sent once more, not twice. What fails while a form is open
/// is left alone.
#[tokio::test]
async fn ops_25_what_someone_else_has_run_again_is_left_alone() {
    within(async {
        let world = World::with("", failing()).await;
        let operator = Operator::at(&world.server);
        let id = failed_operation(&world, "shop:1").await;
        let all = "state=failed&group=shop:1";
        let forms = [
            operator.open("rerun", &id).await,
            operator.open("rerun-failed", "shop:1").await,
            operator.open("rerun-all", all).await,
        ];
        operator.act("rerun", &id, &[("reason", "the upstream is back")]).await;
        world.wait_until_ended(&id).await;
        let late = failed_operation(&world, "shop:1").await;
        let [one, group, several] = forms;
        let (status, html) = operator.send("rerun", &one).await;
        assert!(status == 409 && html.contains("has run again since then"), "{status} {html}");
        assert!(html.contains("Last command: <b>Re-run</b>, by <b>operator</b>"), "{html}");
        for (name, form) in [("rerun-failed", group), ("rerun-all", several)] {
            let (status, target) = operator.send(name, &form).await;
            assert!(status == 303 && target.contains("&count=0"), "{name}: {status} {target}");
        }
        for id in [&id, &late] {
            assert_eq!(world.get(&format!("/v1/operations/{id}")).await.json["state"], "failed");
        }
        let before = json!({ "finished_before": "2001-01-01T00:00:00Z" });
        world.post(&format!("/v1/operations/{id}/rerun"), &before).await.refused(409, "TG0013", None);
    })
    .await;
}

/// OPS-9: what a list shows is canceled with one form, which says how many that are; what arrives
/// while it is open is left alone.
#[tokio::test]
async fn ops_9_a_list_is_canceled_from_the_page() {
    within(async {
        let world = World::new().await;
        let operator = Operator::at(&world.server);
        world.post("/v1/groups/shop%3A1/pause", r#"{"create":true}"#).await;
        let ids = [world.submit(operation("shop:1")).await, world.submit(operation("shop:1")).await];
        let (_, html) = operator.page("/operations?state=queued&group=shop%3A1&error=").await;
        let href = "/actions/cancel-all?subject=state%3Dqueued%26group%3Dshop%253A1";
        assert!(html.contains(href), "{html}");
        let (_, html) = operator.page("/operations?group=shop%3A1").await;
        assert!(!html.contains("cancel-all"), "only for one state: {html}");
        let (_, html) = operator.page(href).await;
        assert!(html.contains("Cancel 1 queued operation of group shop:1?</h1>"), "{html}");
        let (_, html) = operator.page(&href.replace("queued", "queued%2Cwaiting")).await;
        assert!(html.contains("2 queued,waiting operations of group shop:1</button>"), "{html}");
        let (token, subject) = (value_of(&html, "token"), value_of(&html, "subject").replace("&amp;", "&"));
        assert!(subject.contains("created_before="), "{subject}");
        let wider = subject.replace("group=shop%3A1", "kind=http");
        let refused = operator.post("cancel-all", &[("subject", &wider), ("token", &token)]).await;
        assert_eq!(refused.status(), 409, "a token is for one filter");
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        let late = world.submit(operation("shop:1")).await;
        let form = [("subject", &*subject), ("token", &*token), ("reason", "wrong price")];
        let done = operator.post("cancel-all", &form).await;
        let target = done.headers()["location"].to_str().unwrap().to_owned();
        assert!(
            unproven(&target).ends_with("&done=cancel-all&count=2") && !target.contains("created_before"),
            "{target}"
        );
        let (status, html) = operator.page(&target).await;
        assert!(status == 200 && html.contains("Done: Cancel all (2)"), "{html}");
        for (id, is_canceled) in [(&ids[0], true), (&ids[1], true), (&late, false)] {
            let state = world.get(&format!("/v1/operations/{id}")).await.json["state"].clone();
            assert_eq!(state == "canceled", is_canceled, "{id}: {state}");
        }
        let log = operator.audit().await;
        assert_eq!(json!([log[0]["action"], log[0]["reason"]]), json!(["cancel_all", "wrong price"]));
        let (_, html) = operator.page("/actions/cancel-all?subject=x%3D1").await;
        assert!(html.contains("&quot;x&quot; is not known"), "{html}");
        let (status, _) = operator.page("/actions/rerun-all?subject=state%3Dsucceeded").await;
        assert_eq!((status, operator.audit().await), (400, log), "a question is no command");
    })
    .await;
}

/// OPS-9: a pause keeps its first reason, and a group that does not exist is not paused.
#[tokio::test]
async fn ops_9_a_pause_keeps_its_reason() {
    within(async {
        let world = World::new().await;
        let operator = Operator::at(&world.server);
        let id = world.submit(operation("g")).await;
        world.wait_until_ended(&id).await;
        let older = operator.confirm("pause", "g").await;
        operator.act("pause", "g", &[("reason", "template fix")]).await;
        let form = [("subject", "g"), ("token", &older), ("reason", "from an older page")];
        let refused = operator.post("pause", &form).await;
        assert_eq!(refused.status(), 409);
        let html = refused.text().await.unwrap();
        assert!(html.contains("The group is paused already, by operator since 20"), "{html}");
        assert!(html.contains(": template fix."), "{html}");
        assert!(!html.contains("name=\"token\""), "it is paused: {html}");
        world.post("/v1/groups/g/pause", json!({ "by": "ben" })).await;
        let paused = world.get("/v1/groups/g").await.json["paused"].clone();
        assert_eq!(json!([paused["by"], paused["reason"]]), json!(["operator", "template fix"]));
        world.post("/v1/groups/g/pause", json!({ "by": "ben", "reason": "another" })).await;
        assert_eq!(world.get("/v1/groups/g").await.json["paused"]["reason"], "another");
        let (_, html) = operator.page("/groups/g").await;
        assert!(html.contains("another") && html.contains("/actions/resume?subject=g"), "{html}");
        assert_eq!(unproven(&operator.act("resume", "g", &[]).await), "/groups/g?done=resume");
        for action in ["pause", "resume", "rerun-failed"] {
            let (status, html) = operator.page(&format!("/actions/{action}?subject=g-misspelled")).await;
            assert!(status == 200 && html.contains("check the spelling"), "{status} {html}");
            assert!(!html.contains("name=\"token\""), "there is nothing to confirm: {html}");
        }
        let turned = "price\u{202e}fix";
        let body = json!({ "by": "ben", "reason": turned });
        world.post("/v1/groups/g/pause", body).await.refused(400, "TG0002", Some("reason"));
        let token = operator.confirm("pause", "g").await;
        let refused =
            operator.post("pause", &[("subject", "g"), ("token", &token), ("reason", turned)]).await;
        assert_eq!(refused.status(), 400);
        assert_eq!(value_of_input(&refused.text().await.unwrap(), "reason"), turned, "nothing is lost");
    })
    .await;
}

/// OPS-9: a form that is older than what someone else did changes nothing and says so; the audit
/// log has it as refused.
#[tokio::test]
async fn ops_9_a_stale_form_is_refused_and_recorded() {
    within(async {
        let world = World::new().await;
        let operator = Operator::at(&world.server);
        let id = world.submit(operation("g")).await;
        world.wait_until_ended(&id).await;
        let late_pause = operator.confirm("pause", "g").await;
        operator.act("pause", "g", &[]).await;
        let late_resume = operator.confirm("resume", "g").await;
        let refused = operator.post("pause", &[("subject", "g"), ("token", &late_pause)]).await;
        assert_eq!(refused.status(), 409);
        operator.act("resume", "g", &[]).await;
        let refused = operator.post("resume", &[("subject", "g"), ("token", &late_resume)]).await;
        assert_eq!(refused.status(), 409);
        let html = refused.text().await.unwrap();
        assert!(html.contains("is neither paused nor held any more"), "{html}");
        let log = world.get("/v1/audit").await.json;
        let told = |entry: &Value| format!("{} {}", entry["action"], entry["status"]).replace('"', "");
        let told: Vec<String> = log["entries"].as_array().unwrap().iter().map(told).collect();
        assert_eq!(told, ["resume 409", "resume 200", "pause 409", "pause 200"]);
        world.post("/v1/groups/g/resume", "").await;
        let strict = world.post("/v1/groups/g/resume", json!({ "strict": true })).await;
        strict.refused(409, "TG0013", Some("group"));
        let strict = world.put("/v1/limits/echo", json!({ "open": true, "strict": true })).await;
        strict.refused(409, "TG0013", None);
        assert_eq!(world.put("/v1/limits/echo", json!({ "open": true })).await.status, 200);
        let (_, html) = operator.page("/actions/open-limit?subject=echo").await;
        assert!(html.contains("not possible in its present state"), "it is open: {html}");
    })
    .await;
}

/// IDM-22: limits are changed and keys are expired with forms.
#[tokio::test]
async fn idm_22_limits_and_keys_have_forms() {
    within(async {
        let limit = "[[upstream.limit]]\nname = \"points\"\ncapacity = 10\nrefill_per_s = 1\n";
        let world = World::with(limit, HttpSimOptions::default()).await;
        let operator = Operator::at(&world.server);
        let (_, html) = operator.page("/limits").await;
        assert!(html.contains("/actions/set-limit?subject=echo%2Fpoints"), "{html}");
        let (_, html) = operator.page("/actions/set-limit?subject=echo%2Fpoints").await;
        assert!(html.contains("name=\"capacity\"") && !html.contains("name=\"at_once\""), "{html}");
        let token = operator.confirm("set-limit", "echo/points").await;
        let wrong = [("capacity", "0"), ("refill_per_s", "0.5"), ("reason", "slower")];
        let named = [("subject", "echo/points"), ("token", &*token)];
        let refused = operator.post("set-limit", &[&named[..], &wrong[..]].concat()).await;
        let (status, html) = (refused.status().as_u16(), refused.text().await.unwrap());
        assert!(status == 400 && html.contains("must be 1 to"), "{status} {html}");
        for (name, value) in wrong {
            assert_eq!(value_of_input(&html, name), value, "what was filled in is kept: {html}");
        }
        let target =
            operator.act("set-limit", "echo/points", &[("capacity", "4"), ("refill_per_s", "0.5")]).await;
        let (status, html) = operator.page(&target).await;
        let said = "Done: Change. Limit echo/points is now: capacity 4, refill_per_s 0.5, open.";
        assert!(status == 200 && html.contains(said), "{html}");
        let set = world.get("/v1/limits/echo/points").await.json;
        assert_eq!(json!([set["capacity"], set["refill_per_s"], set["source"]]), json!([4, 0.5, "operator"]));
        operator.act("reset-limit", "echo/points", &[]).await;
        assert_eq!(world.get("/v1/limits/echo/points").await.json["capacity"], 10);
        let keyed = world.request(Method::POST, "/v1/operations").header("idempotency-key", "order1");
        assert_eq!(keyed.body(operation("g").to_string()).send().await.unwrap().status(), 202);
        let (_, html) = operator.page("/keys").await;
        assert!(html.contains("/actions/expire-key?subject=order1&amp;scope=-&amp;method=POST"), "{html}");
        let target = operator.act("expire-key", "order1", &[]).await;
        assert_eq!(unproven(&target), "/keys?done=expire-key");
        let (status, html) = operator.page(&target).await;
        assert!(status == 200 && html.contains("Done: Expire") && html.contains("role=\"status\""), "{html}");
        assert!(!operator.page("/keys").await.1.contains("Done: "), "only after an action");
        assert!(!operator.page("/keys?done=expire-key").await.1.contains("Done: "), "whoever writes that");
        let other = target.replace("done=expire-key", "done=release-key");
        assert!(!operator.page(&other).await.1.contains("Done: "), "of another action");
        let (status, html) = operator.page("/actions/expire-key?subject=order1").await;
        let late = html.contains("no such key any more") && !html.contains("<form class=\"confirm\"");
        assert!(status == 200 && late, "{html}");
        assert!(html.contains("Last command: <b>Expire</b>, by <b>operator</b>"), "{html}");
        world.get("/v1/keys/order1").await.refused(404, "TG0024", Some("key"));
        let subjects: Vec<_> = operator.audit().await.iter().map(|one| one["subject"].clone()).collect();
        let points = "echo/points";
        assert_eq!(subjects, ["ffb0e4fd0a24", points, points, points], "a key is named by its hash");
    })
    .await;
}

/// An action is done under the name of the token, and only with its scope.
#[tokio::test]
async fn an_action_has_the_name_of_its_token() {
    within(async {
        let tokens = "[[token]]\nname = \"anna\"\nvalue_env = \"TEST_TOKEN\"\nscopes = [\"read\", \"write\", \"operate\"]\n";
        let world = World::with(tokens, HttpSimOptions::default()).await;
        let mut operator = Operator::at(&world.server);
        operator.token = Some("a-token-from-the-environment");
        let body = operation("g").to_string();
        answer(operator.request(Method::POST, "/v1/operations").body(body)).await;
        operator.act("pause", "g", &[("reason", "why not")]).await;
        let log = operator.audit().await;
        assert_eq!(json!([log[0]["by"], log[0]["reason"]]), json!(["anna", "why not"]));
        let weak = tokens.replace(", \"operate\"", "");
        let world = World::with(&weak, HttpSimOptions::default()).await;
        let mut reader = Operator::at(&world.server);
        reader.token = operator.token;
        let (status, _) = reader.page("/actions/pause?subject=g").await;
        assert_eq!(status, 403);
        assert_eq!(reader.post("pause", &[("subject", "g")]).await.status(), 403);
    })
    .await;
}
