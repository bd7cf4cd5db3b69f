//! What webhooks say, once they are verified; and those that nobody signed.

use http::HeaderMap;
use serde_json::{Value, json};
use tidegate_images::webhook::standard::{self, StandardSecret};
use tidegate_images::{
    Generic, Google, Higgsfield, Provider, ReceivedWebhook, Replicate, Secret, Time, Webhook, WebhookError,
    WebhookKeys, google, higgsfield, replicate,
};

use crate::documented::{Example, fixture, generic, polled};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NOW: Time = Time::from_millis(1_750_000_000_000);

/// Signs a body and lets a provider receive it.
fn signed(provider: &dyn Provider, body: &Value) -> Result<ReceivedWebhook, WebhookError> {
    let secret = || vec![StandardSecret::parse(SECRET).unwrap()];
    let body = body.to_string();
    let headers = standard::sign(&secret(), "msg_1", NOW, body.as_bytes()).unwrap();
    let webhook = Webhook { headers: &headers, body: body.as_bytes(), token: None, received_at: NOW };
    provider.receive(&webhook, &WebhookKeys::Standard(secret()))
}

/// The id of a job and what became of it.
fn said(received: Result<ReceivedWebhook, WebhookError>) -> (Option<String>, String) {
    match received.unwrap() {
        ReceivedWebhook::Signed(report) => {
            assert_eq!(report.delivery_id.as_deref(), Some("msg_1"));
            (report.job_id, polled(&Ok(report.status)))
        }
        ReceivedWebhook::Unconfirmed { job_id } => (job_id, "unconfirmed".into()),
    }
}

/// DSP-11: Replicate's webhook is the prediction, and is read like the response to a poll.
#[test]
fn dsp_11_replicate_reports_a_prediction() {
    let provider = Replicate::new(replicate::BASE_URL);
    let examples: Vec<Example> = fixture("replicate/poll.json");
    let mut count = 0;
    for example in examples.iter().filter(|one| one.status == 200 && !one.expect.starts_with("poll")) {
        let (id, said) = said(signed(&provider, &example.body));
        assert_eq!((id.as_deref(), said), (example.body["id"].as_str(), example.expect.clone()));
        count += 1;
    }
    assert!(count > 5, "it would prove little");
    for body in [json!({}), json!({ "id": "a" }), json!({ "status": "succeeded" }), json!([1])] {
        assert_eq!(signed(&provider, &body), Err(WebhookError::Unreadable), "{body}");
    }
}

/// DSP-11: Google reports a success of Veo, signed with the project's secret.
#[test]
fn dsp_11_google_reports_a_video() {
    let provider = Google::new(google::BASE_URL, google::JWKS_URL);
    let body = |data| json!({ "type": "video.generated", "data": data });
    let operation = "models/veo-3/operations/a";
    let report =
        said(signed(&provider, &body(json!({ "id": operation, "video_uri": "https://f.test/1.mp4" }))));
    assert_eq!(report, (Some(operation.into()), "succeeded https://f.test/1.mp4".into()));
    let thin = said(signed(&provider, &body(json!({}))));
    assert_eq!(thin, (None, "result ready".into()));
    let other = json!({ "type": "batch.succeeded", "data": { "id": operation } });
    assert_eq!(signed(&provider, &other), Err(WebhookError::Unreadable));
}

/// DSP-19: nobody signs Higgsfield's webhooks. One with the attempt's own token says which job to
/// poll, and nothing of what it claims; any other token changes nothing.
#[test]
fn dsp_19_an_unsigned_webhook_only_asks_for_a_poll() {
    let provider = Higgsfield::new(higgsfield::BASE_URL);
    let none = HeaderMap::new();
    let receive = |token: Option<&str>, expected: &str, body: &[u8]| {
        let webhook = Webhook { headers: &none, body, token, received_at: NOW };
        provider.receive(&webhook, &WebhookKeys::Token(Secret::new(expected)))
    };
    for status in ["completed", "failed", "nsfw"] {
        let body =
            json!({ "request_id": "r-1", "status": status, "images": [{ "url": "https://evil.test/" }] });
        let body = body.to_string();
        let unconfirmed = ReceivedWebhook::Unconfirmed { job_id: Some("r-1".into()) };
        assert_eq!(receive(Some("t0k"), "t0k", body.as_bytes()), Ok(unconfirmed));
        for wrong in ["t0", "t0k ", "T0K", "x"] {
            assert_eq!(receive(Some(wrong), "t0k", body.as_bytes()), Err(WebhookError::Forged), "{wrong}");
        }
        assert_eq!(receive(Some(""), "", body.as_bytes()), Err(WebhookError::Forged));
        assert_eq!(receive(None, "t0k", body.as_bytes()), Err(WebhookError::Missing("token")));
    }
    assert_eq!(receive(Some("t0k"), "t0k", b"{}"), Err(WebhookError::Unreadable));
}

/// DSP-13, DSP-19: a configured provider verifies by token and poll, or by Standard Webhooks.
#[test]
fn dsp_13_a_configured_provider_verifies_webhooks() {
    let body = json!({ "job": { "id": 7, "state": "ok", "preview": "https://f.test/1.png" } });
    assert_eq!(signed(&generic(), &body), Err(WebhookError::NoKey));
    let text = body.to_string();
    let none = HeaderMap::new();
    let webhook = Webhook { headers: &none, body: text.as_bytes(), token: Some("t"), received_at: NOW };
    let received = generic().receive(&webhook, &WebhookKeys::Token(Secret::new("t")));
    assert_eq!(said(received), (Some("7".into()), "unconfirmed".into()));
    let mut config: Value = fixture("generic/provider.json");
    config["webhook"] = "standard".into();
    let provider = Generic::new(serde_json::from_value(config).unwrap()).unwrap();
    assert_eq!(said(signed(&provider, &body)), (Some("7".into()), "succeeded https://f.test/1.png".into()));
    assert!(matches!(
        provider.receive(&webhook, &WebhookKeys::Token(Secret::new("t"))),
        Err(WebhookError::NoKey)
    ));
}
