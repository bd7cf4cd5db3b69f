//! Each provider's own shapes: the submit, the poll, the result and the picture.

use reqwest::Method;
use serde_json::{Value, json};
use tidegate_sim::Provider;

use crate::rig::{Rig, fast};

async fn assert_picture(rig: &Rig, url: &str) {
    let response = rig.request(Method::GET, url).send().await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["content-type"] == "image/png"), (200, true));
    assert!(response.bytes().await.unwrap().starts_with(b"\x89PNG"));
}

/// DSP-26: a prediction of Replicate, from the submit to the picture, and the list by time.
#[tokio::test]
async fn dsp_26_replicate_runs_a_prediction() {
    let rig = Rig::start(fast(Provider::Replicate)).await;
    let (status, made) = rig.submit("a cat").await;
    assert_eq!((status, &made["input"], &made["output"]), (201, &json!({ "prompt": "a cat" }), &Value::Null));
    let done = rig.poll(made["urls"]["get"].as_str().unwrap(), |body| body["status"] == "succeeded").await;
    assert_eq!((done["id"] == made["id"], done["error"].is_null()), (true, true));
    assert!(done["metrics"]["predict_time"].as_f64().unwrap() >= 0.02);
    assert_picture(&rig, done["output"][0].as_str().unwrap()).await;
    let created = made["created_at"].as_str().unwrap();
    let (_, found) = rig.get("/v1/predictions?created_after=2026-01-01T00:00:00Z").await;
    assert_eq!(found["results"][0]["id"], made["id"]);
    let (_, none) = rig.get(&format!("/v1/predictions?created_before={created}")).await;
    assert_eq!(none["results"], json!([]));
    let body = json!({ "input": { "prompt": "waits" } }).to_string();
    let waited =
        rig.request(Method::POST, "/v1/models/acme/flux/predictions").header("prefer", "wait=5").body(body);
    let waited: Value = serde_json::from_slice(&waited.send().await.unwrap().bytes().await.unwrap()).unwrap();
    assert_eq!(waited["status"], "succeeded");
}

/// DSP-26: a request in fal's queue; COMPLETED is not a success, and the paths drop what follows
/// the alias.
#[tokio::test]
async fn dsp_26_fal_runs_a_request() {
    let rig = Rig::start(fast(Provider::Fal)).await;
    let (status, made) = rig.submit("a cat").await;
    assert_eq!((status, &made["status"]), (200, &json!("IN_QUEUE")));
    let id = made["request_id"].as_str().unwrap();
    assert_eq!(made["status_url"], json!(format!("{}/acme/flux/requests/{id}/status", rig.url)));
    let is_done = |body: &Value| body["status"] == "COMPLETED";
    rig.poll(made["status_url"].as_str().unwrap(), is_done).await;
    let (_, result) = rig.get(made["response_url"].as_str().unwrap()).await;
    assert_picture(&rig, result["images"][0]["url"].as_str().unwrap()).await;
    for (prompt, status) in [("x [nsfw]", 422), ("x [fail]", 500), ("", 422)] {
        let (accepted, made) = rig.submit(prompt).await;
        rig.poll(made["status_url"].as_str().unwrap(), is_done).await;
        let (result, body) = rig.get(made["response_url"].as_str().unwrap()).await;
        assert_eq!((accepted, result), (200, status), "{prompt}: {body}");
    }
    assert_eq!(rig.get("/acme/flux/requests/none").await.0, 404);
}

/// DSP-26: Google returns an image in the response, a refusal as a success without one, and a video
/// as an operation.
#[tokio::test]
async fn dsp_26_google_runs_models() {
    let rig = Rig::start(fast(Provider::Google)).await;
    let image = |text: &str| json!({ "contents": [{ "parts": [{ "text": text }] }] });
    let path = "/v1beta/models/gemini-2.5-flash-image:generateContent";
    let (_, made) = rig.call(Method::POST, path, Some(image("a cat"))).await;
    let data = made["candidates"][0]["content"]["parts"][0]["inlineData"]["data"].as_str().unwrap();
    assert!(data.starts_with("iVBORw0KGgo"), "a PNG in Base64");
    let (status, refused) = rig.call(Method::POST, path, Some(image("a cat [nsfw]"))).await;
    assert_eq!((status, &refused["promptFeedback"]["blockReason"]), (200, &json!("PROHIBITED_CONTENT")));
    assert_eq!(rig.call(Method::POST, path, Some(image("[fail]"))).await.0, 503);
    let (_, operation) = rig.submit("a film").await;
    let path = format!("/v1beta/{}", operation["name"].as_str().unwrap());
    let done = rig.poll(&path, |body| body["done"] == true).await;
    let video = &done["response"]["generateVideoResponse"]["generatedSamples"][0]["video"]["uri"];
    assert_picture(&rig, video.as_str().unwrap()).await;
}

/// DSP-26: a request of Higgsfield; only a queued one can be canceled.
#[tokio::test]
async fn dsp_26_higgsfield_runs_a_request() {
    let rig = Rig::start(fast(Provider::Higgsfield)).await;
    let (_, made) = rig.submit("a cat").await;
    assert_eq!((&made["status"], &made["images"]), (&json!("queued"), &Value::Null));
    let done = rig.poll(made["status_url"].as_str().unwrap(), |body| body["status"] == "completed").await;
    assert_picture(&rig, done["images"][0]["url"].as_str().unwrap()).await;
    let cancel = rig.call(Method::POST, made["cancel_url"].as_str().unwrap(), None).await;
    assert_eq!(cancel.0, 400);
    let (_, refused) = rig.submit("x [nsfw]").await;
    rig.poll(refused["status_url"].as_str().unwrap(), |body| body["status"] == "nsfw").await;
}

/// DSP-26: what has no credential or no prompt is refused, in the provider's words, and bills
/// nothing.
#[tokio::test]
async fn dsp_26_bad_requests_are_refused() {
    let refusals = [
        (Provider::Replicate, "/v1/models/a/b/predictions", 401, 422),
        (Provider::Google, "/v1beta/models/m:generateContent", 403, 400),
        (Provider::Higgsfield, "/acme/soul", 401, 422),
    ];
    for (provider, path, without_key, without_prompt) in refusals {
        let rig = Rig::start(fast(provider)).await;
        let bare = reqwest::Client::builder().no_proxy().build().unwrap();
        let refused = bare.post(format!("{}{path}", rig.url)).body("{}").send().await.unwrap();
        assert_eq!(refused.status().as_u16(), without_key, "{provider:?}");
        let body = json!({ "input": {}, "contents": [] });
        assert_eq!(rig.call(Method::POST, path, Some(body)).await.0, without_prompt, "{provider:?}");
        assert_eq!((rig.sim.stats().all.calls, rig.sim.stats().all.billed), (2, 0), "{provider:?}");
    }
}
