//! Signatures that Node makes with its own cryptography, in the formats that fal and Google
//! document, with fresh keys in each run; and what is signed here in fal's format, verified by
//! Node.

use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tidegate_core::Time;
use tidegate_images::{
    Fal, Google, Provider, ReceivedWebhook, Webhook, WebhookError, WebhookKeys, fal, google,
};
use tidegate_sim::providers::signature::WebhookSigner;
use tidegate_store::{Clock, WallClock};

use crate::languages::{bare_node, run};

const REQUEST: &str = "764cabcf-b745-4b3e-ae38-1200304cf45b";
const USER: &str = "github|42";
/// Everything that a signature must not stumble over.
const FAL_BODY: &str = r#"{"request_id":"764cabcf-b745-4b3e-ae38-1200304cf45b","status":"OK","payload":{"images":[{"url":"https://files.test/маяк.png"}],"prompt":"a \"lighthouse\" \u2013\n"}}"#;
const GOOGLE_BODY: &str = r#"{"type":"video.generated","data":{"id":"models/veo-3.1/operations/abc"}}"#;

fn node(question: &Value) -> Value {
    run(bare_node("webhooks/signer.mjs").arg(question.to_string()))
}

fn headers<const N: usize>(pairs: [(&'static str, &str); N]) -> HeaderMap {
    let header = |(name, value): (&'static str, &str)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
    };
    pairs.into_iter().map(header).collect()
}

fn seconds(at: Time) -> u64 {
    at.as_millis() / 1_000
}

/// Receives a webhook of fal's at this time.
fn receive_fal(
    (signature, timestamp): (&str, u64),
    body: &str,
    keys: &WebhookKeys,
    received_at: Time,
) -> Result<ReceivedWebhook, WebhookError> {
    let headers = headers([
        ("x-fal-webhook-request-id", REQUEST),
        ("x-fal-webhook-user-id", USER),
        ("x-fal-webhook-timestamp", &timestamp.to_string()),
        ("x-fal-webhook-signature", signature),
    ]);
    let webhook = Webhook { headers: &headers, body: body.as_bytes(), token: None, received_at };
    Fal::new(fal::BASE_URL, fal::JWKS_URL).receive(&webhook, keys)
}

/// DSP-11: what Node signs with Ed25519 by fal's document is accepted with each key of the set that
/// Node exports; changed, at another time, with another key or stale it is not.
#[test]
fn dsp_11_what_node_signs_like_fal_is_verified() {
    let provider = Fal::new(fal::BASE_URL, fal::JWKS_URL);
    let (now, forged) = (WallClock.now(), Err(WebhookError::Forged));
    let timestamp = seconds(now);
    let made = node(&json!({
        "command": "fal", "requestId": REQUEST, "userId": USER, "timestamp": timestamp, "body": FAL_BODY,
    }));
    let keys =
        |keys: Value| provider.read_webhook_keys(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
    let (jwks, signatures) = (&made["jwks"]["keys"], made["signatures"].as_array().unwrap());
    assert_eq!(signatures.len(), 2);
    for (index, signature) in signatures.iter().enumerate() {
        let signature = signature.as_str().unwrap();
        for known in [jwks.clone(), json!([jwks[index]])] {
            let received = receive_fal((signature, timestamp), FAL_BODY, &keys(known), now);
            assert!(
                matches!(&received, Ok(ReceivedWebhook::Signed(report)) if report.job_id.as_deref() == Some(REQUEST)),
                "{received:?}"
            );
        }
        let other = keys(json!([jwks[1 - index]]));
        assert_eq!(receive_fal((signature, timestamp), FAL_BODY, &other, now), forged);
        let all = keys(jwks.clone());
        let changed = FAL_BODY.replace("OK", "KO");
        assert_eq!(receive_fal((signature, timestamp), &changed, &all, now), forged);
        assert_eq!(receive_fal((signature, timestamp + 1), FAL_BODY, &all, now), forged);
        let late = now.after(Duration::from_secs(302));
        assert_eq!(receive_fal((signature, timestamp), FAL_BODY, &all, late), Err(WebhookError::Stale));
    }
}

/// DSP-11: what is signed here in fal's format is accepted by Node, and is not when it is changed.
#[test]
fn dsp_11_what_is_signed_like_fal_here_is_verified_by_node() {
    let (signer, timestamp) = (WebhookSigner::new(7), seconds(WallClock.now()));
    let signature = signer.ed25519(REQUEST, USER, timestamp, FAL_BODY.as_bytes());
    for (body, is_verified) in [(FAL_BODY.to_owned(), true), (FAL_BODY.replace("OK", "KO"), false)] {
        let said = node(&json!({
            "command": "verify", "requestId": REQUEST, "userId": USER, "timestamp": timestamp, "body": body,
            "x": signer.public_key(), "signature": signature,
        }));
        assert_eq!(said["verified"], is_verified);
    }
}

/// DSP-11: a token that Node signs with RSA is accepted as one of Google's, by the key that it
/// names in the set that Node exports; with another key, other claims or an old time it is not.
#[test]
fn dsp_11_tokens_that_node_signs_like_google_are_verified() {
    let provider = Google::new(google::BASE_URL, google::JWKS_URL);
    let now = WallClock.now();
    let made = node(&json!({ "command": "google", "timestamp": seconds(now) }));
    let keys = provider.read_webhook_keys(made["jwks"].to_string().as_bytes()).unwrap();
    let receive = |token: &Value| {
        let timestamp = seconds(now).to_string();
        let headers = headers([
            ("webhook-id", "msg_9"),
            ("webhook-timestamp", &timestamp),
            ("webhook-signature", token.as_str().unwrap()),
        ]);
        let body = GOOGLE_BODY.as_bytes();
        provider.receive(&Webhook { headers: &headers, body, token: None, received_at: now }, &keys)
    };
    let job_id = Some("models/veo-3.1/operations/abc".to_owned());
    assert_eq!(receive(&made["good"]), Ok(ReceivedWebhook::Unconfirmed { job_id }));
    for (name, token) in made["forged"].as_object().unwrap() {
        assert_eq!(receive(token), Err(WebhookError::Forged), "{name}");
    }
    assert_eq!(receive(&made["stale"]), Err(WebhookError::Stale));
}
