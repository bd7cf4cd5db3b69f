//! Submitting: what is accepted, what is deduplicated, what is refused and leaves no trace.

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_sim::HttpSimOptions;

use crate::support::{World, answer, operation, read, with, within};

const TIGHT: &str = "[[upstream.limit]]\nname = \"points\"\ncapacity = 10\nrefill_per_s = 0.001\n";

/// OPS-1, OPS-6: an operation is accepted with an id and executed, and a client can wait for its
/// result.
#[tokio::test]
async fn ops_6_an_operation_is_accepted_and_its_result_can_be_awaited() {
    within(async {
        let world = World::new().await;
        let request = world.request(Method::POST, "/v1/operations");
        let response = request.body(operation("shop:acme").to_string()).send().await.unwrap();
        let location = response.headers()["location"].to_str().unwrap().to_owned();
        let accepted = read(response).await;
        assert_eq!((accepted.status, location), (202, format!("/v1/operations/{}", accepted.text("id"))));
        assert_eq!(accepted.json["group"], "shop:acme");
        assert_eq!(accepted.json["deduplicated"], false);
        assert!(["queued", "running"].contains(&accepted.json["state"].as_str().unwrap()), "{accepted:?}");
        let ended = world.wait_until_ended(&accepted.text("id")).await;
        assert_eq!(ended["state"], "succeeded");
        assert_eq!(ended["result"]["status"], 200);
        assert_eq!(ended["result"]["body"]["body"], json!({ "n": 1 }));
        assert_eq!(ended["fault"], Value::Null);
        for field in ["created_at", "finished_at"] {
            let time = ended[field].as_str().unwrap();
            assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
        }
        assert_eq!(world.sim.stats().writes, 1);
    })
    .await;
}

/// OPS-1: what an operation was submitted with is stored and can be read again.
#[tokio::test]
async fn ops_1_what_was_handed_in_can_be_seen_again() {
    within(async {
        let world = World::new().await;
        let mut submission = with("dedupe_key", "order-7");
        submission["deployment_id"] = json!("deploy-3");
        submission["max_attempts"] = json!(5);
        submission["priority"] = json!(3);
        submission["on_unknown"] = json!("ask");
        submission["on_failure"] = json!("hold");
        let mut waited = world.post("/v1/operations?wait_ms=30000", submission).await.json;
        let id = waited["id"].as_str().unwrap().to_owned();
        let ended = world.wait_until_ended(&id).await;
        assert_eq!(waited.as_object_mut().unwrap().remove("deduplicated"), Some(json!(false)));
        assert_eq!(waited, ended, "a submission that waits returns what GET returns");
        assert!(ended["request"]["headers"].is_object() && ended["attempts"].is_array(), "{ended}");
        assert_eq!(
            ["priority", "on_unknown", "on_failure", "cost"].map(|rule| &ended[rule]),
            [&json!(3), &json!("ask"), &json!("hold"), &Value::Null]
        );
        assert_eq!((&ended["dedupe_key"], &ended["deployment_id"]), (&json!("order-7"), &json!("deploy-3")));
        assert_eq!(
            (&ended["kind"], &ended["max_attempts"], &ended["attempt"]),
            (&json!("http"), &json!(5), &json!(1))
        );
        assert!(ended["request_id"].as_str().is_some_and(|trace| !trace.is_empty()), "{ended}");
        assert_eq!(ended["fingerprint"].as_str().map(str::len), Some(32), "{ended}");
    })
    .await;
}

/// OPS-7: one key is one operation; the same key with another request is a conflict that names the
/// first one.
#[tokio::test]
async fn ops_7_a_key_is_one_operation() {
    within(async {
        let world = World::new().await;
        let first = world.post("/v1/operations", with("dedupe_key", "k")).await;
        let again = world.post("/v1/operations", with("dedupe_key", "k")).await;
        assert_eq!((first.status, again.status), (202, 200));
        assert_eq!(again.json["deduplicated"], true);
        assert_eq!(again.text("id"), first.text("id"));
        let mut other = with("dedupe_key", "k");
        other["request"]["body"] = json!({ "n": 2 });
        let conflict = world.post("/v1/operations", other).await;
        conflict.refused(409, "TG0009", conflict.json["error"]["detail"]["field"].as_str());
        assert_eq!(conflict.json["error"]["detail"]["operation"], first.json["id"]);
        world.wait_until_ended(&first.text("id")).await;
        assert_eq!(world.sim.stats().writes, 1);
    })
    .await;
}

/// OPS-1: invalid input is refused with a code, a message and the field, and nothing is accepted.
#[tokio::test]
async fn ops_1_bad_input_is_refused_by_field_and_leaves_nothing() {
    within(async {
        let world = World::with(TIGHT, HttpSimOptions::default()).await;
        let long = "x".repeat(513);
        let mut method = operation("g");
        method["request"]["method"] = "TRACE".into();
        let mut path = operation("g");
        path["request"]["path"] = "http://elsewhere/".into();
        let mut header = operation("g");
        header["request"]["headers"]["x-n"] = 7.into();
        let mut credential = operation("g");
        credential["request"]["headers"]["authorization"] = "Bearer hunter2".into();
        let table: Vec<(Value, u16, &str, &str)> = vec![
            (with("upstream", "nobody"), 422, "TG0003", "upstream"),
            (with("kind", "smoke"), 422, "TG0004", "kind"),
            (with("group", ""), 400, "TG0002", "group"),
            (with("group", "g".repeat(256)), 400, "TG0002", "group"),
            (with("group", "a\nb"), 400, "TG0002", "group"),
            (with("dedupe_key", long), 400, "TG0002", "dedupe_key"),
            (with("dedupe_key", ""), 400, "TG0002", "dedupe_key"),
            (with("max_attempts", -1), 400, "TG0002", "max_attempts"),
            (with("max_attempts", 0), 400, "TG0002", "max_attempts"),
            (with("max_attempts", 1e30), 400, "TG0002", "max_attempts"),
            (with("max_attempts", "8"), 400, "TG0001", "max_attempts"),
            (with("deadline_ms", -5), 400, "TG0002", "deadline_ms"),
            (with("delay_ms", 1_u64 << 60), 400, "TG0002", "delay_ms"),
            (with("priority", 9), 400, "TG0002", "priority"),
            (with("on_unknown", "reconcile"), 400, "TG0002", "on_unknown"),
            (with("on_unknown", 3), 400, "TG0001", "on_unknown"),
            (with("cost", json!({ "points": -1 })), 400, "TG0002", "cost.points"),
            (with("cost", json!({ "points": 1.5 })), 400, "TG0002", "cost.points"),
            (with("cost", json!({ "nothing": 1 })), 422, "TG0007", "cost.nothing"),
            (with("cost", json!({ "points": 11 })), 422, "TG0006", "cost.points"),
            (with("frobnicate", 1), 400, "TG0001", "frobnicate"),
            (with("request", json!([])), 400, "TG0001", "request"),
            (method, 400, "TG0001", "request.method"),
            (header, 400, "TG0001", "request.headers.x-n"),
            (with("deadline_ms", 0), 400, "TG0002", "deadline_ms"),
            (path, 400, "TG0002", "request.path"),
            (credential, 400, "TG0002", "request.headers.authorization"),
        ];
        for (body, status, code, field) in table {
            let answer = world.post("/v1/operations", &body).await;
            answer.refused(status, code, Some(field));
            assert!(!answer.json.to_string().contains("hunter2"), "{answer:?}");
        }
        for body in ["", "{", "nonsense", "[]", "{\"max_attempts\":NaN}", "\u{0}", "{\"a\":1}{}"] {
            assert_eq!(world.post("/v1/operations", body).await.status, 400, "{body:?}");
        }
        assert_eq!(world.count().await, 0);
        assert_eq!(world.sim.stats().calls, 0);
    })
    .await;
}

/// OPS-12: a deadline that the known limits cannot meet is refused at once, with the earliest time
/// that could be met.
#[tokio::test]
async fn ops_12_a_deadline_that_cannot_be_met_is_refused() {
    within(async {
        let world = World::with(TIGHT, HttpSimOptions::default()).await;
        let first = world.submit(with("cost", json!({ "points": 10 }))).await;
        world.wait_until_ended(&first).await;
        let mut late = with("deadline_ms", 1_000);
        late["cost"] = json!({ "points": 10 });
        let answer = world.post("/v1/operations", late).await;
        assert_eq!((answer.status, &answer.json["error"]["code"]), (422, &json!("TG0008")), "{answer:?}");
        assert!(answer.json["error"]["detail"]["earliest"].is_string(), "{answer:?}");
        assert_eq!(world.count().await, 1);
    })
    .await;
}

/// OPS-1: a body over the bound is refused before it is parsed as JSON.
#[tokio::test]
async fn ops_1_a_body_over_the_bound_is_refused() {
    within(async {
        let world = World::new().await;
        let huge = world.post("/v1/operations", "x".repeat(3 * 1024 * 1024)).await;
        huge.refused(413, "TG0005", Some("body"));
        let mut large = operation("g");
        large["request"]["body"] = "x".repeat(1024 * 1024).into();
        world.post("/v1/operations", large).await.refused(413, "TG0005", Some("request"));
        assert_eq!(world.count().await, 0);
    })
    .await;
}

/// OPS-1: of a batch exactly the valid ones are accepted, each with its result in order.
#[tokio::test]
async fn ops_1_of_a_batch_exactly_the_good_are_accepted() {
    within(async {
        let world = World::new().await;
        let batch = json!({ "operations": [
            operation("a"), with("upstream", "nobody"), 7, with("frobnicate", 1), with("dedupe_key", "k"),
            with("dedupe_key", "k"), operation("b"), with("request", json!({})),
        ] });
        let answer = world.post("/v1/operations/batch", batch).await;
        assert_eq!(answer.status, 202);
        let members = answer.json["operations"].as_array().unwrap();
        let codes: Vec<_> = members.iter().map(|member| member["error"]["code"].as_str()).collect();
        assert_eq!(
            codes,
            [None, Some("TG0003"), Some("TG0001"), Some("TG0001"), None, None, None, Some("TG0001")]
        );
        assert_eq!(members[1]["error"]["detail"]["field"], "upstream");
        assert_eq!(members[7]["error"]["detail"]["field"], "request.method");
        assert_eq!(members[4]["id"], members[5]["id"]);
        assert_eq!(members[5]["deduplicated"], true);
        let (first, last) = (members[0]["id"].as_str().unwrap(), members[6]["id"].as_str().unwrap());
        assert!(first < last, "ids sort by acceptance");
        assert_eq!(world.count().await, 3);
    })
    .await;
}

/// OPS-1: a batch that is invalid as a whole leaves nothing behind.
#[tokio::test]
async fn ops_1_a_bad_batch_leaves_nothing() {
    within(async {
        let world = World::new().await;
        let one = operation("g");
        let long = json!({ "operations": vec![&one; 1_001] });
        world.post("/v1/operations/batch", long).await.refused(413, "TG0019", Some("operations"));
        let extra = json!({ "operations": [one], "atomic": true });
        world.post("/v1/operations/batch", extra).await.refused(400, "TG0001", Some("atomic"));
        world.post("/v1/operations/batch", "{}").await.refused(400, "TG0001", Some("operations"));
        let object = json!({ "operations": {} });
        world.post("/v1/operations/batch", object).await.refused(400, "TG0001", Some("operations"));
        let cut = format!("{{\"operations\":[{one},");
        world.post("/v1/operations/batch", cut).await.refused(400, "TG0001", None);
        world.post("/v1/operations/batch", format!("[{one}]")).await.refused(400, "TG0001", None);
        assert_eq!(world.count().await, 0);
        let full = json!({ "operations": vec![&one; 1_000] });
        assert_eq!(
            world.post("/v1/operations/batch", full).await.json["operations"].as_array().unwrap().len(),
            1_000
        );
    })
    .await;
}

/// OPS-1, OPS-12: a deadline may be a time. It is shown with the operation; one that is over, is
/// not a time, or comes together with `deadline_ms` is refused by its name.
#[tokio::test]
async fn ops_12_a_deadline_may_be_a_time() {
    within(async {
        let world = World::new().await;
        assert_eq!(world.post("/v1/groups/g/pause", json!({ "create": true })).await.status, 200);
        let within_an_hour = world.submit(with("deadline_ms", 3_600_000)).await;
        let soon = world.get(&format!("/v1/operations/{within_an_hour}")).await.text("deadline_at");
        let id = world.submit(with("deadline_at", soon.clone())).await;
        let path = format!("/v1/operations/{id}");
        assert_eq!(world.get(&path).await.text("deadline_at"), soon);
        world.post(&format!("{path}/cancel"), "").await;
        assert_eq!(world.get(&path).await.text("deadline_at"), soon, "also after its end");
        let over = world.post("/v1/operations", with("deadline_at", "2001-01-01T00:00:00Z")).await;
        over.refused(422, "TG0008", Some("deadline_at"));
        for wrong in ["tomorrow", "9999-01-01T00:00:00Z"] {
            let refused = world.post("/v1/operations", with("deadline_at", wrong)).await;
            refused.refused(400, "TG0002", Some("deadline_at"));
        }
        let mut both = with("deadline_at", soon);
        both["deadline_ms"] = 5.into();
        world.post("/v1/operations", both).await.refused(400, "TG0002", Some("deadline_at"));
    })
    .await;
}

/// OPS-6: a submission may wait for its end, by its query or by the standard header. An operation
/// that has not ended by then is accepted all the same.
#[tokio::test]
async fn ops_6_a_submission_waits_for_its_end() {
    within(async {
        let world = World::new().await;
        let ended = world.post("/v1/operations?wait_ms=30000", with("dedupe_key", "k")).await;
        assert_eq!((ended.status, ended.text("state")), (200, "succeeded".into()), "{ended:?}");
        assert_eq!(
            (&ended.json["result"]["status"], &ended.json["deduplicated"]),
            (&200.into(), &false.into())
        );
        let again = world.post("/v1/operations?wait_ms=30000", with("dedupe_key", "k")).await;
        assert_eq!((again.status, again.text("id")), (200, ended.text("id")));
        assert_eq!(again.json["deduplicated"], true);

        let preferred =
            world.request(Method::POST, "/v1/operations").header("prefer", "respond-async, wait=900");
        let response = preferred.body(operation("g").to_string()).send().await.unwrap();
        assert_eq!(response.headers()["preference-applied"], "wait=60");
        assert!(response.headers().contains_key("location"));
        let preferred = read(response).await;
        assert_eq!((preferred.status, preferred.text("state")), (200, "succeeded".into()));

        world.post("/v1/groups/g/pause", "").await;
        let waiting = world.post("/v1/operations?wait_ms=30", operation("g")).await;
        assert_eq!((waiting.status, waiting.text("state")), (202, "waiting".into()), "{waiting:?}");
        for deduplicated in [false, true] {
            let waiting = world.post("/v1/operations?wait_ms=1", with("dedupe_key", "later")).await;
            assert_eq!(
                (waiting.status, &waiting.json["deduplicated"]),
                (202, &deduplicated.into()),
                "{waiting:?}"
            );
        }
        let accepted = world.post("/v1/operations", operation("g")).await;
        assert_eq!((accepted.status, accepted.text("state")), (202, "queued".into()));
        let count = world.count().await;
        for (query, field) in [("wait_ms=60001", "wait_ms"), ("wait_ms=x", "wait_ms"), ("wait=5", "wait")] {
            let refused = world.post(&format!("/v1/operations?{query}"), operation("g")).await;
            refused.refused(400, "TG0001", Some(field));
        }
        assert_eq!(world.count().await, count, "what is refused is not accepted");
    })
    .await;
}

/// A body that is a form, or compressed, is refused with what its headers say that it is; JSON is
/// read under any type.
#[tokio::test]
async fn a_form_is_refused_as_one() {
    within(async {
        let world = World::new().await;
        let send = async |header: &str, kind: &str, body: String| {
            let request = world.request(Method::POST, "/v1/operations").header(header, kind).body(body);
            answer(request).await
        };
        for (header, kind) in
            [("content-type", "application/x-www-form-urlencoded"), ("content-encoding", "gzip")]
        {
            let refused = send(header, kind, "upstream=echo&group=g".into()).await;
            refused.refused(400, "TG0001", None);
            assert!(refused.json["error"]["message"].as_str().unwrap().contains(kind), "{refused:?}");
            assert_eq!(send(header, kind, operation("g").to_string()).await.status, 202);
        }
    })
    .await;
}

/// OPS-7: the same request with fields in another order, or with numbers and letters spelled
/// differently, is the same request.
#[tokio::test]
async fn ops_7_a_request_is_compared_by_its_value() {
    within(async {
        let world = World::new().await;
        let one = |request: &str| {
            format!(r#"{{"upstream":"echo","group":"g","dedupe_key":"k","request":{request}}}"#)
        };
        let first = r#"{"method":"POST","path":"/x","headers":{"x-a":"1","x-b":"2"},"body":{"n":10,"t":"é"}}"#;
        let first = world.post("/v1/operations", one(first)).await;
        let same = r#"{"body": {"t": "\u00e9", "n": 1e1}, "headers": {"x-b": "2", "x-a": "1"}, "path": "/x", "method": "POST"}"#;
        let same = world.post("/v1/operations", one(same)).await;
        assert_eq!((same.status, same.text("id")), (200, first.text("id")), "{same:?}");
        let same = r#"{"method":"POST","path":"/x","headers":{"X-A":"1","X-B":"2"},"body":{"n":10,"t":"é"}}"#;
        let same = world.post("/v1/operations", one(same)).await;
        assert_eq!((same.status, same.text("id")), (200, first.text("id")), "{same:?}");
        for (other, differs) in [
            (r#"{"method":"POST","path":"/x","headers":{"x-a":"1","x-b":"2"},"body":{"n":11,"t":"é"}}"#, "request.body"),
            (r#"{"method":"POST","path":"/y","headers":{"x-a":"1","x-b":"2"},"body":{"n":10,"t":"é"}}"#, "request.path"),
            (r#"{"method":"POST","path":"/x","headers":null,"body":{"n":10,"t":"é"}}"#, "request.headers"),
        ] {
            let conflict = world.post("/v1/operations", one(other)).await;
            conflict.refused(409, "TG0009", Some("dedupe_key"));
            let message = conflict.json["error"]["message"].as_str().unwrap();
            assert!(message.contains(&format!("another {differs}, by op_")), "{message}");
        }
        world.wait_until_ended(&first.text("id")).await;
        assert_eq!(world.sim.stats().writes, 1);
    })
    .await;
}
