//! What adapters send: addresses, credentials, bodies, and where the webhook goes; and the limits
//! they start with.

use http::Method;
use serde_json::{Value, json};
use tidegate_images::generic::GenericConfig;
use tidegate_images::{
    Generic, Google, JobRequest, PollStep, Provider, ProviderJob, ProviderRequest, RequestError, Secret,
    google,
};

use crate::documented::{fixture, providers, time};

const HOOK: &str = "https://app.test/api/webhooks/x/t0k?a=1&b";

fn body(request: &ProviderRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

/// Method, address, and the header with the credential.
fn head(request: &ProviderRequest) -> (String, Option<String>) {
    let sensitive = request.headers.iter().find(|(_, value)| value.is_sensitive());
    let credential = sensitive.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
    (format!("{} {}", request.method, request.url), credential)
}

/// DSP-13: each provider gets its documented submit, poll and cancel, with its own kind of
/// credential and the webhook where it belongs.
#[test]
fn dsp_13_each_provider_gets_its_documented_requests() {
    let encoded = "https%3A%2F%2Fapp.test%2Fapi%2Fwebhooks%2Fx%2Ft0k%3Fa%3D1%26b";
    let table = [
        (
            "POST https://api.replicate.com/v1/models/black-forest-labs/flux-schnell/predictions".to_owned(),
            json!({ "input": { "prompt": "a cat" }, "webhook": HOOK, "webhook_events_filter": ["completed"] }),
            "authorization: Bearer k3y",
            "GET https://api.replicate.com/v1/predictions/models%2Fa%2Foperations%2Fb",
            Some("POST https://api.replicate.com/v1/predictions/models%2Fa%2Foperations%2Fb/cancel"),
        ),
        (
            "POST https://generativelanguage.googleapis.com/v1beta/models/veo-3.1-generate-preview:predictLongRunning".to_owned(),
            json!({ "instances": [{ "prompt": "a cat" }], "webhookConfig": { "uris": [HOOK], "userMetadata": { "attempt": "att-1" } } }),
            "x-goog-api-key: k3y",
            "GET https://generativelanguage.googleapis.com/v1beta/models/a/operations/b",
            None,
        ),
        (
            format!("POST https://queue.fal.run/fal-ai/flux/dev?fal_webhook={encoded}"),
            json!({ "prompt": "a cat" }),
            "authorization: Key k3y",
            "GET https://queue.fal.run/fal-ai/flux/requests/models%2Fa%2Foperations%2Fb/status",
            Some("PUT https://queue.fal.run/fal-ai/flux/requests/models%2Fa%2Foperations%2Fb/cancel"),
        ),
        (
            format!("POST https://platform.higgsfield.ai/higgsfield-ai/soul/standard?hf_webhook={encoded}"),
            json!({ "prompt": "a cat" }),
            "authorization: Key k3y",
            "GET https://platform.higgsfield.ai/requests/models%2Fa%2Foperations%2Fb/status",
            Some("POST https://platform.higgsfield.ai/requests/models%2Fa%2Foperations%2Fb/cancel"),
        ),
        (
            "POST https://api.acme.test/v2/flux/jobs".to_owned(),
            json!({ "params": { "prompt": "a cat" }, "notify": { "url": HOOK } }),
            "x-api-key: k3y",
            "GET https://api.acme.test/v2/jobs/models%2Fa%2Foperations%2Fb",
            Some("DELETE https://api.acme.test/v2/jobs/models%2Fa%2Foperations%2Fb"),
        ),
    ];
    let (key, input) = (Secret::new("k3y"), json!({ "prompt": "a cat" }));
    for ((provider, model), (submit, sent, credential, poll, cancel)) in providers().into_iter().zip(table) {
        let job = JobRequest { model, input: &input, webhook: Some(HOOK), attempt: "att-1" };
        let request = provider.submit(&job, &key).unwrap();
        assert_eq!(head(&request), (submit, Some(credential.to_owned())));
        assert_eq!(body(&request), sent, "{}", provider.name());
        assert_eq!(request.headers["content-type"], "application/json");
        let attempt = request.headers.get("idempotency-key").map(|value| value.to_str().unwrap());
        assert_eq!(attempt, (provider.name() == "acme").then_some("att-1"));
        let known = ProviderJob::new("models/a/operations/b", model);
        assert_eq!(head(&provider.poll(&known, PollStep::Status, &key).unwrap()).0, poll);
        let canceled = provider.cancel(&known, &key).unwrap().map(|request| head(&request).0);
        assert_eq!(canceled.as_deref(), cancel);
        let unset = JobRequest { webhook: None, ..job };
        let text = format!("{:?}", provider.submit(&unset, &key).unwrap());
        assert!(!text.contains("webhook") && !text.contains("notify"), "{text}");
    }
}

/// DSP-13: Replicate's versions and deployments have addresses of their own.
#[test]
fn dsp_13_replicate_runs_models_versions_and_deployments() {
    let (provider, _) = providers().remove(0);
    let (key, input) = (Secret::new("k"), json!({ "prompt": "a cat" }));
    let hash = "0123456789abcdef".repeat(4);
    let named = format!("a/b:{hash}");
    let job = |model| JobRequest { model, input: &input, webhook: None, attempt: "1" };
    for (model, path, version) in [
        ("a/b", "/models/a/b/predictions", None),
        ("deployments/a/b", "/deployments/a/b/predictions", None),
        (hash.as_str(), "/predictions", Some(hash.as_str())),
        (named.as_str(), "/predictions", Some(named.as_str())),
    ] {
        let request = provider.submit(&job(model), &key).unwrap();
        assert_eq!(request.url, format!("https://api.replicate.com/v1{path}"));
        assert_eq!(body(&request).get("version").and_then(Value::as_str), version);
    }
    for wrong in ["a", "a/b/c", "../b", "a/b?x", "a/b:c/d", "deployments/a", ""] {
        let refused = provider.submit(&job(wrong), &key);
        assert_eq!(refused, Err(RequestError::Model(wrong.into(), "Replicate")), "{wrong}");
    }
    let list = provider.look_up(time("2026-01-15T12:00:00Z"), time("2026-01-15T12:05:00Z"), &key).unwrap();
    let expected = "https://api.replicate.com/v1/predictions?created_after=2026-01-15T12%3A00%3A00.000Z&created_before=2026-01-15T12%3A05%3A00.000Z";
    assert_eq!(list.map(|request| (request.method, request.url)), Some((Method::GET, expected.to_owned())));
}

/// DSP-13: a flat input becomes the body of each of Google's methods; one in Google's own shape is
/// sent as it is; one without a prompt is refused by its field.
#[test]
fn dsp_13_google_gets_the_body_of_each_method() {
    let provider = Google::new(google::BASE_URL, google::JWKS_URL);
    let key = Secret::new("k");
    let submit = |model: &str, input: &Value| {
        provider.submit(&JobRequest { model, input, webhook: Some(HOOK), attempt: "1" }, &key)
    };
    let gemini = submit(
        "gemini-2.5-flash-image",
        &json!({ "prompt": "p", "imageConfig": { "aspectRatio": "1:1" }, "safetySettings": [] }),
    );
    let gemini = gemini.unwrap();
    assert!(gemini.url.ends_with("/models/gemini-2.5-flash-image:generateContent"));
    assert_eq!(
        body(&gemini),
        json!({ "contents": [{ "parts": [{ "text": "p" }] }], "safetySettings": [],
            "generationConfig": { "responseModalities": ["IMAGE"], "imageConfig": { "aspectRatio": "1:1" } } })
    );
    let imagen = submit("imagen-4.0-generate-001", &json!({ "prompt": "p", "sampleCount": 1 })).unwrap();
    assert!(imagen.url.ends_with("/models/imagen-4.0-generate-001:predict"));
    assert_eq!(
        body(&imagen),
        json!({ "instances": [{ "prompt": "p" }], "parameters": { "sampleCount": 1 } })
    );
    for own in [json!({ "contents": [] }), json!({ "contents": [], "generationConfig": {} })] {
        assert_eq!(body(&submit("gemini-x", &own).unwrap()), own);
    }
    let named = submit("nano:generateContent", &json!({ "prompt": "p" })).unwrap();
    assert!(named.url.ends_with("/models/nano:generateContent"));
    for (model, input, problem) in [
        ("gemini-x", json!({}), "prompt: it is required"),
        ("imagen-x", json!({ "prompt": "" }), "prompt: it is required"),
        ("veo-x", json!([]), "input: it must be an object"),
        (
            "gemini-x",
            json!({ "prompt": "p", "generationConfig": 5, "seed": 1 }),
            "generationConfig: it must be an object",
        ),
        ("flux", json!({ "prompt": "p" }), "\"flux\" is no model of Google"),
        ("gemini-x/../y", json!({ "prompt": "p" }), "\"gemini-x/../y\" is no model of Google"),
        ("x:delete", json!({ "prompt": "p" }), "\"x:delete\" is no model of Google"),
    ] {
        assert_eq!(submit(model, &input).unwrap_err().to_string(), problem);
    }
}

/// DSP-13: a configuration that cannot work is refused by its field.
#[test]
fn dsp_13_a_wrong_configuration_names_its_field() {
    let valid: Value = fixture("generic/provider.json");
    for (pointer, value, field) in [
        ("/name", json!(""), "name"),
        ("/base_url", json!("ftp://x"), "base_url"),
        ("/base_url", json!("https://user@x"), "base_url"),
        ("/auth/header", json!("a b"), "auth.header"),
        ("/submit/path", json!("jobs"), "submit.path"),
        ("/submit/path", json!("/jobs"), "submit"),
        ("/submit/attempt_header", json!("a b"), "submit.attempt_header"),
        ("/poll/path", json!("/jobs"), "poll.path"),
        ("/cancel/path", json!("/jobs"), "cancel.path"),
        ("/cancel/method", json!("DE LETE"), "cancel.method"),
        ("/fields/id", json!("id"), "fields"),
        ("/fields/files", json!([]), "fields.files"),
        ("/states/succeeded", json!([]), "states.succeeded"),
    ] {
        let mut wrong = valid.clone();
        *wrong.pointer_mut(pointer).unwrap() = value;
        let config: GenericConfig = serde_json::from_value(wrong).unwrap();
        assert_eq!(Generic::new(config).unwrap_err().field, field, "{pointer}");
    }
    let mut unknown = valid;
    unknown["submit"]["pth"] = json!("/x");
    assert!(serde_json::from_value::<GenericConfig>(unknown).is_err());
}

/// DSP-14: the limits that the providers document, and no others; each says where it is from.
#[test]
fn dsp_14_defaults_are_documented_or_unknown() {
    let figures: Vec<_> = providers()
        .iter()
        .map(|(provider, model)| {
            let defaults = provider.defaults(model);
            assert!(defaults.max_concurrent.source.len() > 20 && defaults.rpm.source.len() > 20);
            assert_eq!(defaults.cooldown.map(|step| step.as_secs()), [10, 30, 60, 120]);
            assert!(defaults.poll_first <= defaults.poll_max && !defaults.poll_first.is_zero());
            let hours = defaults.keeps_results.map(|keeps| keeps.as_secs() / 3_600);
            (provider.name().to_owned(), defaults.max_concurrent.value, defaults.rpm.value, hours)
        })
        .collect();
    let row = |name: &str, concurrent, rpm, hours| (name.to_owned(), concurrent, rpm, hours);
    assert_eq!(
        figures,
        [
            row("replicate", None, Some(600), Some(1)),
            row("google", None, None, None),
            row("fal", Some(2), None, Some(168)),
            row("higgsfield", None, None, Some(168)),
            row("acme", None, Some(30), None),
        ]
    );
    let google = Google::new(google::BASE_URL, google::JWKS_URL);
    assert_eq!(google.defaults("gemini-2.5-flash-image").rpm.value, Some(10));
    assert_eq!(google.defaults("imagen-4.0-generate-001").rpm.value, None);
}
