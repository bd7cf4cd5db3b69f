//! Generations over HTTP, against simulated providers: what a caller sees from the creation to the
//! picture.

mod alike;
mod board;
mod described;
mod languages;
mod limits;
mod nodes;
mod remote;
mod reports;
mod studio;
mod webhooks;

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_sim::Provider;

use crate::support::within;
use studio::{Studio, StudioPlan, generation, slow};

/// A kind that callers do not submit is not offered, and the error for it says what to do.
#[tokio::test]
async fn kinds_that_are_not_submitted_are_not_offered() {
    within(async {
        let generations = "notify_secret_env = \"NOTIFY_SECRET\"".to_owned();
        let more = "[[upstream]]\nname = \"api\"\nbase_url = \"http://127.0.0.1:9\"\n\
                    [[kind]]\nname = \"resize\"\nworker = \"remote\"\n";
        let studio =
            Studio::start(StudioPlan { generations, more: more.to_owned(), ..StudioPlan::default() }).await;
        let submit = async |kind: &str, with_payload: bool| {
            let mut body = json!({ "kind": kind, "group": "g" });
            if with_payload {
                body["payload"] = json!({});
            } else {
                (body["upstream"], body["request"]) = (json!("api"), json!({ "method": "GET", "path": "/" }));
            }
            let refused = studio.post("/v1/operations", &body).await;
            refused.refused(422, "TG0004", Some("kind"));
            refused.json["error"]["message"].as_str().unwrap().to_owned()
        };
        let unknown = submit("zip", false).await;
        assert!(unknown.contains("known kinds: http, resize."), "{unknown}");
        for with_payload in [false, true] {
            let other = submit("generation", with_payload).await;
            assert!(other.contains("POST /api/generations/create"), "{other}");
            submit("notification", with_payload).await;
        }
    })
    .await;
}

/// DSP-1: a generation is created, queued and answered with its id; it can be shown, its picture
/// got, and a list pages through a user's own.
#[tokio::test]
async fn dsp_1_a_generation_is_created_and_becomes_a_picture() {
    within(async {
        let studio = Studio::start(StudioPlan::default()).await;
        let body = json!({ "model_id": "flux", "input": { "prompt": "a cat" }, "user_id": "anna" });
        let created = studio.request(Method::POST, "/api/generations/create").body(body.to_string());
        let created = created.send().await.unwrap();
        assert_eq!(created.status(), 202);
        let location = created.headers()["location"].to_str().unwrap().to_owned();
        let created: Value = serde_json::from_str(&created.text().await.unwrap()).unwrap();
        let id = created["id"].as_str().unwrap();
        assert_eq!(
            (created["status"].as_str(), location),
            (Some("queued"), format!("/api/generations/{id}"))
        );
        assert_eq!((&created["provider"], &created["processing_since"]), (&Value::Null, &Value::Null));
        let done = studio.wait_until_ended(id).await;
        assert_eq!(done["status"], "completed", "{done}");
        let why = studio.get(&format!("/api/generations/{id}/why")).await.json;
        assert_eq!(why["because"], "It has ended: completed.", "{why}");
        let ended = studio.post(&format!("/api/generations/{id}/cancel"), &json!({})).await;
        assert_eq!(ended.json["error"]["message"], format!("{id} is completed: it has ended."));
        assert_eq!((&done["user_id"], &done["model_id"]), (&json!("anna"), &json!("flux")));
        assert_eq!(done["input"]["prompt"], "a cat");
        assert_eq!(done["provider"], "replicate");
        let file = &done["results"][0];
        assert_eq!(file["content_type"], "image/png", "{done}");
        let picture = studio.request(Method::GET, file["url"].as_str().unwrap()).send().await.unwrap();
        assert_eq!(picture.headers()["content-type"], "image/png");
        let bytes = picture.bytes().await.unwrap();
        assert!(bytes.starts_with(b"\x89PNG") && bytes.len() as u64 == file["bytes"].as_u64().unwrap());
        studio.get(&format!("/api/generations/{id}/result/7")).await.refused(404, "TG0034", None);
        studio.get(&format!("/api/generations/{id}/result/x")).await.refused(404, "TG0034", None);
        studio.get("/api/generations/op_00000000000000000000000001").await.refused(404, "TG0010", None);
        let unreadable = studio.get("/api/generations/op_nope").await.json["error"]["message"].to_string();
        assert!(unreadable.contains(": a generation id"), "{unreadable}");
        assert_eq!(studio.stats(Provider::Replicate).all.billed, 1);
    })
    .await;
}

/// DSP-1: a list has a user's own generations, page by page.
#[tokio::test]
async fn dsp_1_a_list_pages_through_a_users_own() {
    within(async {
        let studio = Studio::start(StudioPlan::default()).await;
        let mut ids = Vec::new();
        for n in 0..5 {
            ids.push(studio.create(&generation("anna", &format!("cat {n}"))).await);
            studio.create(&generation("boris", "a dog")).await;
        }
        let (mut seen, mut cursor) = (Vec::new(), String::new());
        loop {
            let page =
                studio.get(&format!("/api/generations?user_id=anna&limit=2&cursor={cursor}")).await.json;
            for one in page["generations"].as_array().unwrap() {
                assert_eq!(one["user_id"], "anna");
                assert!(one.get("input").is_none(), "{one}");
                seen.push(one["id"].as_str().unwrap().to_owned());
            }
            match page["next_cursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        ids.reverse();
        assert_eq!(seen, ids, "newest first");
        let other = format!("/api/generations?user_id=boris&limit=2&cursor={cursor}");
        studio.get(&other).await.refused(400, "TG0014", Some("cursor"));
        studio.get("/api/generations?status=done").await.refused(400, "TG0001", Some("status"));
        let none = studio.get("/api/generations?user_id=chen").await.json;
        assert_eq!(none, json!({ "generations": [], "next_cursor": null }));
    })
    .await;
}

/// DSP-1: the same key and body are one generation; another body is a conflict.
#[tokio::test]
async fn dsp_1_one_key_is_one_generation() {
    within(async {
        let studio = Studio::start(StudioPlan::default()).await;
        let send = |prompt: &str| {
            let request = studio.request(Method::POST, "/api/generations/create");
            request.header("idempotency-key", "order-7").body(generation("anna", prompt).to_string()).send()
        };
        let (first, second) = (send("a cat").await.unwrap(), send("a cat").await.unwrap());
        assert_eq!(second.headers()["idempotent-replayed"], "true");
        let id = |text: String| serde_json::from_str::<Value>(&text).unwrap()["id"].clone();
        let first = id(first.text().await.unwrap());
        assert_eq!(first, id(second.text().await.unwrap()));
        assert_eq!(send("a dog").await.unwrap().status(), 409);
        studio.wait_until_ended(first.as_str().unwrap()).await;
        assert_eq!(studio.stats(Provider::Replicate).all.billed, 1);
    })
    .await;
}

/// DSP-1: what is wrong with a request is named, and nothing is created.
#[tokio::test]
async fn dsp_1_a_wrong_request_is_refused_by_its_field() {
    within(async {
        let studio = Studio::start(StudioPlan::default()).await;
        let table = [
            (json!({ "model_id": "flux", "input": {} }), 422, "TG0031", "input"),
            (json!({ "model_id": "flux", "input": { "prompt": 7 } }), 422, "TG0031", "input.prompt"),
            (json!({ "model_id": "flux", "input": { "prompt": "" } }), 422, "TG0031", "input.prompt"),
            (json!({ "model_id": "fulx", "input": { "prompt": "x" } }), 422, "TG0030", "model_id"),
            (json!({ "model_id": "flux" }), 400, "TG0001", "input"),
            (json!({ "model_id": "flux", "input": "x" }), 400, "TG0001", "input"),
            (json!({ "input": { "prompt": "x" } }), 400, "TG0001", "model_id"),
            (json!({ "model_id": "flux", "input": { "prompt": "x" }, "user": "a" }), 400, "TG0001", "user"),
            (
                json!({ "model_id": "flux", "input": { "prompt": "x" }, "user_id": "" }),
                400,
                "TG0002",
                "user_id",
            ),
            (
                json!({ "model_id": "flux", "input": { "prompt": "x" }, "notify_url": "http://a.example" }),
                400,
                "TG0002",
                "notify_url",
            ),
        ];
        for (body, status, code, field) in table {
            studio.post("/api/generations/create", &body).await.refused(status, code, Some(field));
        }
        assert_eq!(studio.get("/api/generations").await.json["generations"], json!([]));
        assert_eq!(studio.stats(Provider::Replicate).all.calls, 0);
    })
    .await;
}

/// DSP-1: two fields that do not fit are two problems, each with its field.
#[tokio::test]
async fn dsp_1_every_wrong_field_is_a_problem_of_its_own() {
    within(async {
        let studio = Studio::start(StudioPlan::default()).await;
        let body = json!({ "model_id": "flux", "input": { "prompt": 7, "seed": "x" } });
        let refused = studio.post("/api/generations/create", &body).await;
        let problems = refused.json["error"]["problems"].as_array().unwrap();
        let fields: Vec<_> = problems.iter().map(|problem| problem["field"].as_str().unwrap()).collect();
        assert_eq!(fields, ["input.prompt", "input.seed"], "{:?}", refused.json);
        assert!(problems.iter().all(|problem| problem["code"] == "TG0031"), "{problems:?}");
    })
    .await;
}

/// DSP-1: reading needs the scope `read`, creating and canceling `write`.
#[tokio::test]
async fn dsp_1_each_call_needs_its_scope() {
    within(async {
        let tokens = "[[token]]\nname = \"reader\"\nvalue_env = \"TEST_TOKEN\"\nscopes = [\"read\"]\n";
        let studio = Studio::start(StudioPlan { more: tokens.into(), ..StudioPlan::default() }).await;
        let call = |method: Method, path: &str, token: &str| {
            let request = studio.request(method, path).bearer_auth(token);
            request.body(generation("anna", "a cat").to_string()).send()
        };
        for (method, path, with, without) in [
            (Method::POST, "/api/generations/create", 403, 401),
            (Method::POST, "/api/generations/op_00000000000000000000000001/cancel", 403, 401),
            (Method::PATCH, "/v1/providers/fal", 403, 401),
            (Method::GET, "/api/generations", 200, 401),
            (Method::GET, "/v1/ledger", 200, 401),
            (Method::GET, "/v1/providers", 200, 401),
        ] {
            let status = |token: &'static str| {
                let call = call(method.clone(), path, token);
                async move { call.await.unwrap().status().as_u16() }
            };
            assert_eq!(status("a-token-from-the-environment").await, with, "{path}");
            assert_eq!(status("another-token-that-is-long").await, without, "{path}");
        }
    })
    .await;
}

/// DSP-1: a generation that waits is canceled, and so is one that a provider has.
#[tokio::test]
async fn dsp_1_a_generation_is_canceled() {
    within(async {
        let plan = StudioPlan { chain: vec![Provider::Replicate], slots: 1, ..StudioPlan::default() };
        let studio = Studio::start(StudioPlan { sim: slow, ..plan }).await;
        let running = studio.create(&generation("anna", "a cat")).await;
        studio.wait_for_status(&running, "processing").await;
        let waiting = studio.create(&generation("anna", "a dog")).await;
        let canceled = studio.post(&format!("/api/generations/{waiting}/cancel"), &json!({})).await;
        assert_eq!((canceled.status, canceled.text("status")), (200, "canceled".into()));
        let asked = studio.post(&format!("/api/generations/{running}/cancel"), &json!({})).await;
        assert_eq!(asked.status, 200, "{asked:?}");
        assert_eq!(studio.wait_until_ended(&running).await["status"], "canceled");
        assert_eq!(studio.stats(Provider::Replicate).all.billed, 1);
    })
    .await;
}

/// The `status` events in what a stream sent: id, if it has one, and data.
fn events(text: &str) -> Vec<(Option<u64>, Value)> {
    let messages = text.split("\n\n").filter(|message| message.contains("event: status"));
    let line = |message: &str, name: &str| {
        message.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    messages
        .map(|message| {
            let id = line(message, "id:").and_then(|id| id.parse().ok());
            (id, serde_json::from_str(&line(message, "data:").unwrap()).unwrap())
        })
        .collect()
}

/// DSP-2: each change is pushed to who listens, in order, to the end; a listener that comes back
/// gets what it missed.
#[tokio::test]
async fn dsp_2_changes_are_pushed_and_resumed() {
    within(async {
        let studio = Studio::start(StudioPlan { sim: slow, ..StudioPlan::default() }).await;
        let id = studio.create(&generation("anna", "a cat")).await;
        let path = format!("/api/generations/{id}/events");
        let stream = studio.request(Method::GET, &path).send().await.unwrap();
        assert_eq!(stream.headers()["content-type"], "text/event-stream");
        let seen = events(&stream.text().await.unwrap());
        let order = ["pending", "queued", "processing", "completed"];
        let place = |event: &(Option<u64>, Value)| {
            let status = event.1["status"].as_str().unwrap();
            order.iter().position(|known| *known == status).unwrap_or_else(|| panic!("{status}"))
        };
        assert!(seen.windows(2).all(|pair| place(&pair[0]) <= place(&pair[1])), "{seen:?}");
        let (_, last) = seen.last().unwrap();
        assert_eq!(
            (&last["status"], &last["provider"]),
            (&json!("completed"), &json!("replicate")),
            "{seen:?}"
        );
        assert_eq!(last["results"][0]["content_type"], "image/png");
        assert!(seen.iter().any(|(_, event)| event["status"] == "processing"), "{seen:?}");
        let first = seen.iter().find_map(|(event, _)| *event).expect("an event has an id");
        let request = studio.request(Method::GET, &path).header("last-event-id", first.to_string());
        let again = events(&request.send().await.unwrap().text().await.unwrap());
        assert!(again.iter().all(|(event, _)| event.is_none_or(|event| event > first)), "{again:?}");
        assert_eq!(again.last().unwrap().1["status"], "completed", "{again:?}");
        let nothing = studio.get("/api/generations/op_00000000000000000000000001/events").await;
        nothing.refused(404, "TG0010", None);
    })
    .await;
}

/// DSP-2: the position in the queue is shown while a generation waits, and what it became is stored
/// with its times.
#[tokio::test]
async fn dsp_2_a_position_in_the_queue_is_shown() {
    within(async {
        let plan = StudioPlan { chain: vec![Provider::Replicate], slots: 1, ..StudioPlan::default() };
        let studio = Studio::start(StudioPlan { sim: slow, ..plan }).await;
        let first = studio.create(&generation("anna", "a cat")).await;
        studio.wait_for_status(&first, "processing").await;
        let mut waiting = Vec::new();
        for n in 0..2 {
            waiting.push(studio.create(&generation("anna", &format!("{n}"))).await);
        }
        for (index, id) in waiting.iter().enumerate() {
            let shown = studio.get(&format!("/api/generations/{id}")).await.json;
            assert_eq!((&shown["status"], &shown["queue_position"]), (&json!("queued"), &json!(index + 1)));
        }
        let done = studio.wait_until_ended(&waiting[1]).await;
        let time = |name: &str| done[name].as_str().unwrap().to_owned();
        assert!(time("created_at") <= time("processing_since"), "{done}");
        assert!(time("processing_since") <= time("finished_at"), "{done}");
    })
    .await;
}

/// DSP-24: "why is it still queued?" lists each provider with its reason and time.
#[tokio::test]
async fn dsp_24_why_lists_each_provider_with_its_reason() {
    within(async {
        let chain = vec![Provider::Replicate, Provider::Fal];
        let studio = Studio::start(StudioPlan { chain, slots: 1, sim: slow, ..StudioPlan::default() }).await;
        for n in 0..2 {
            let id = studio.create(&generation("anna", &format!("cat {n}"))).await;
            studio.wait_for_status(&id, "processing").await;
        }
        let id = studio.create(&generation("anna", "a dog")).await;
        let why = studio.get(&format!("/api/generations/{id}/why")).await.json;
        assert_eq!(why["status"], "queued", "{why}");
        assert!(why["because"].as_str().unwrap().len() > 10, "{why}");
        let providers: Vec<_> = why["providers"].as_array().unwrap().iter().collect();
        let names: Vec<_> = providers.iter().map(|one| one["provider"].as_str().unwrap()).collect();
        assert_eq!(names, ["replicate", "fal"], "{why}");
        for one in providers {
            assert_eq!(one["state"], "busy", "{why}");
            assert!(one["because"].as_str().unwrap().len() > 3, "{why}");
        }
        let ended = studio.wait_until_ended(&id).await;
        assert_eq!(ended["status"], "completed", "{ended}");
    })
    .await;
}

/// DSP-18: the ledger has each attempt, with its provider, its job and its cost.
#[tokio::test]
async fn dsp_18_the_ledger_has_every_attempt() {
    within(async {
        let studio = Studio::start(StudioPlan::default()).await;
        let id = studio.create(&generation("anna", "a cat")).await;
        studio.wait_until_ended(&id).await;
        let ledger = studio.get("/v1/ledger").await.json;
        let [entry] = ledger["entries"].as_array().unwrap().as_slice() else { panic!("{ledger}") };
        assert_eq!((&entry["generation"], &entry["provider"]), (&json!(id), &json!("replicate")), "{entry}");
        assert_eq!((&entry["outcome"], &entry["may_be_billed_twice"]), (&json!("succeeded"), &json!(false)));
        assert!(entry["external_id"].is_string() && entry["cost"] == 3_000, "{entry}");
        let operation = studio.get(&format!("/v1/operations/{id}")).await.json;
        let [attempt] = operation["attempts"].as_array().unwrap().as_slice() else { panic!("{operation}") };
        assert_eq!((&attempt["job_id"], &attempt["cost"]), (&entry["external_id"], &entry["cost"]));
        assert!(attempt["granted_at"].is_string() && attempt["upstream"] == "replicate", "{attempt}");
        let doubtful = studio.get("/v1/ledger?may_be_double=true").await.json;
        assert_eq!(doubtful["entries"], json!([]));
        studio.get("/v1/ledger?may_be_double=maybe").await.refused(400, "TG0001", Some("may_be_double"));
    })
    .await;
}

/// Without a model there are no generations, and every call says so.
#[tokio::test]
async fn without_a_model_there_are_none() {
    within(async {
        let world = crate::support::World::new().await;
        world.post("/api/generations/create", generation("anna", "x")).await.refused(422, "TG0030", None);
        for path in ["/api/generations", "/v1/ledger", "/v1/providers"] {
            world.get(path).await.refused(422, "TG0030", None);
        }
        let page = world.request(Method::GET, "/generations").send().await.unwrap();
        assert_eq!(page.status(), 200);
        assert!(page.text().await.unwrap().contains("No model is configured"), "it says what to do");
        tokio::time::timeout(Duration::from_secs(5), world.server.shutdown()).await.unwrap();
    })
    .await;
}
