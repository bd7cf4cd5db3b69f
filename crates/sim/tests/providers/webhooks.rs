//! Webhooks: signed, and lost, early, doubled, late and forged on demand.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::{digest, hmac, signature};
use serde_json::json;
use tidegate_sim::Provider;
use tidegate_sim::providers::webhook::WebhookFaults;

use crate::rig::{Received, Rig, fast, with_faults};

/// Verifies a Standard Webhooks signature as a receiver does.
fn is_signed(message: &Received, secret: &str) -> bool {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut signed = format!("{}.{}.", message.header("webhook-id"), message.header("webhook-timestamp"));
    signed.push_str(std::str::from_utf8(&message.body).unwrap());
    let given = STANDARD.decode(message.header("webhook-signature").strip_prefix("v1,").unwrap()).unwrap();
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, &key), signed.as_bytes(), &given).is_ok()
}

/// DSP-26: Replicate reports an end with the prediction, signed with the secret it hands out; a
/// forged message does not verify, and a repeated one has the same id.
#[tokio::test]
async fn dsp_26_replicate_signs_its_webhooks() {
    let faults = WebhookFaults { doubled: 1.0, forged: 1.0, ..WebhookFaults::default() };
    let rig = Rig::start(with_faults(Provider::Replicate, faults)).await;
    let (_, made) = rig.submit("a cat").await;
    let messages = rig.messages(3).await;
    let (_, secret) = rig.get("/v1/webhooks/default/secret").await;
    let signed: Vec<bool> = messages.iter().map(|m| is_signed(m, secret["key"].as_str().unwrap())).collect();
    assert_eq!(signed, [false, true, true]);
    assert_eq!(
        (&messages[0].json()["status"], &messages[1].json()["status"]),
        (&json!("failed"), &json!("succeeded"))
    );
    assert_eq!(messages[1].json()["id"], made["id"]);
    assert_eq!(messages[1].header("webhook-id"), messages[2].header("webhook-id"));
    assert_eq!(rig.sim.stats().webhooks.forged, 1);
}

/// DSP-26: fal's signature verifies with the key of its JWKS.
#[tokio::test]
async fn dsp_26_fal_signs_its_webhooks() {
    let rig = Rig::start(fast(Provider::Fal)).await;
    rig.submit("a cat").await;
    let message = rig.messages(1).await.remove(0);
    let (_, keys) = rig.get("/.well-known/jwks.json").await;
    let key = URL_SAFE_NO_PAD.decode(keys["keys"][0]["x"].as_str().unwrap()).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let [id, user, time, given] = ["request-id", "user-id", "timestamp", "signature"]
        .map(|name| message.header(&format!("x-fal-webhook-{name}")));
    let body = hex(digest::digest(&digest::SHA256, &message.body).as_ref());
    let given: Vec<u8> =
        (0..given.len()).step_by(2).map(|n| u8::from_str_radix(&given[n..n + 2], 16).unwrap()).collect();
    let public = signature::UnparsedPublicKey::new(&signature::ED25519, key);
    assert!(public.verify(format!("{id}\n{user}\n{time}\n{body}").as_bytes(), &given).is_ok());
    assert_eq!((&message.json()["status"], &message.json()["request_id"]), (&json!("OK"), &json!(id)));
}

/// DSP-26: an early webhook comes before the submit is answered, a lost one never.
#[tokio::test]
async fn dsp_26_webhooks_come_early_or_never() {
    let early = WebhookFaults { early: 1.0, ..WebhookFaults::default() };
    for provider in [Provider::Replicate, Provider::Fal, Provider::Higgsfield, Provider::Google] {
        let rig = Rig::start(with_faults(provider, early)).await;
        rig.submit("a cat").await;
        assert_eq!(rig.received().len(), 1, "{provider:?}: it is there when the submit returns");
    }
    let lost = WebhookFaults { lost: 1.0, ..WebhookFaults::default() };
    let rig = Rig::start(with_faults(Provider::Higgsfield, lost)).await;
    let (_, made) = rig.submit("a cat").await;
    rig.poll(made["status_url"].as_str().unwrap(), |body| body["status"] == "completed").await;
    assert_eq!((rig.received().len(), rig.sim.stats().webhooks.lost), (0, 1));
}

/// DSP-26: a late webhook comes when a poll has long seen the end; Higgsfield's carry no signature,
/// and Google reports only a success, with the caller's metadata.
#[tokio::test]
async fn dsp_26_webhooks_come_late_or_unsigned() {
    let late = WebhookFaults { late: 1.0, ..WebhookFaults::default() };
    let rig = Rig::start(with_faults(Provider::Higgsfield, late)).await;
    let (_, made) = rig.submit("a cat").await;
    rig.poll(made["status_url"].as_str().unwrap(), |body| body["status"] == "completed").await;
    assert!(rig.received().is_empty(), "the poll sees the end first");
    let message = rig.messages(1).await.remove(0);
    assert!(message.headers.keys().all(|name| !name.as_str().contains("signature")));
    assert_eq!(message.json()["status"], "completed");

    let rig = Rig::start(fast(Provider::Google)).await;
    rig.submit("a film [fail]").await;
    rig.submit("a film").await;
    let messages = rig.messages(1).await;
    assert_eq!(messages[0].json()["data"]["user_metadata"], json!({ "attempt": "7" }));
    assert_eq!(messages[0].json()["type"], "video.generated");
}
