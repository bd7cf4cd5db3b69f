//! Signatures that other implementations made, and everything that must not pass for one.

use http::HeaderMap;
use serde_json::Value;
use tidegate_images::webhook::jwks::JwkSet;
use tidegate_images::webhook::standard::{self, StandardSecret};
use tidegate_images::{
    Fal, Google, Provider, ReceivedWebhook, Secret, Time, Webhook, WebhookError, WebhookKeys, fal, google,
};

use crate::documented::{fixture, headers};

fn at(seconds: u64) -> Time {
    Time::from_millis(seconds * 1_000)
}

fn secrets(texts: &[&str]) -> WebhookKeys {
    WebhookKeys::Standard(texts.iter().map(|text| StandardSecret::parse(text).unwrap()).collect())
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

const OTHER: &str = "whsec_b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcg==";

/// A message of Standard Webhooks.
struct Standard<'a> {
    id: &'a str,
    timestamp: String,
    signature: String,
    body: &'a str,
}

impl Standard<'_> {
    fn verify(&self, now: u64, keys: &WebhookKeys) -> Result<String, WebhookError> {
        let headers = headers([
            ("webhook-id", self.id),
            ("webhook-timestamp", self.timestamp.as_str()),
            ("webhook-signature", self.signature.as_str()),
        ]);
        let webhook =
            Webhook { headers: &headers, body: self.body.as_bytes(), token: None, received_at: at(now) };
        standard::verify(&webhook, keys).map(str::to_owned)
    }
}

/// DSP-11: a signature of the reference implementation is accepted, its secret among others too;
/// stale, with another secret, id, time or body it is not.
#[test]
fn dsp_11_standard_webhooks_are_verified() {
    let vectors: Value = fixture("signatures/standard.json");
    for vector in vectors["cases"].as_array().unwrap() {
        let [secret, id, signature, body] =
            ["secret", "id", "signature", "body"].map(|name| text(vector, name));
        let now = vector["timestamp"].as_u64().unwrap();
        let keys = secrets(&[secret]);
        let message = |id, timestamp: u64, signature: &str, body| {
            let (timestamp, signature) = (timestamp.to_string(), signature.to_owned());
            Standard { id, timestamp, signature, body }
        };
        let valid = message(id, now, signature, body);
        let accepted = Ok(id.to_owned());
        for near in [now - 300, now, now + 300] {
            assert_eq!(valid.verify(near, &keys), accepted);
        }
        for far in [now - 301, now + 301, 0] {
            assert_eq!(valid.verify(far, &keys), Err(WebhookError::Stale), "{far}");
        }
        assert_eq!(valid.verify(now, &secrets(&[OTHER, secret])), accepted, "during a rotation");
        let several = format!("v1a,AAAA v1,AAAA {signature} v2,zzz");
        assert_eq!(message(id, now, &several, body).verify(now, &keys), accepted);
        let bare = signature.trim_start_matches("v1,");
        let forged = Err(WebhookError::Forged);
        assert_eq!(valid.verify(now, &secrets(&[OTHER])), forged);
        for wrong in [
            message("msg_other", now, signature, body),
            message(id, now + 1, signature, body),
            message(id, now, signature, "{}"),
            message(id, now, &format!("v2,{bare}"), body),
            message(id, now, bare, body),
            message(id, now, &signature[..signature.len() - 4], body),
            message(id, now, "v1,", body),
        ] {
            assert_eq!(wrong.verify(now, &keys), forged, "{} {}", wrong.id, wrong.signature);
        }
    }
}

/// DSP-11: without a header, a number or a key nothing is accepted.
#[test]
fn dsp_11_an_incomplete_standard_webhook_is_refused() {
    let full = [("webhook-id", "a"), ("webhook-timestamp", "5"), ("webhook-signature", "v1,AAAA")];
    let verify = |headers: &HeaderMap, keys: &WebhookKeys| {
        standard::verify(&Webhook { headers, body: b"", token: None, received_at: at(5) }, keys)
            .map(str::to_owned)
    };
    for (name, _) in full {
        let headers = headers(full.into_iter().filter(|(other, _)| *other != name));
        assert_eq!(verify(&headers, &secrets(&[OTHER])), Err(WebhookError::Missing(name)));
    }
    for time in ["", "five", "-5", "+5", "5.0", "99999999999999999999999", " 5"] {
        let headers = headers([full[0], ("webhook-timestamp", time), full[2]]);
        assert!(matches!(verify(&headers, &secrets(&[OTHER])), Err(WebhookError::Missing(_))), "{time}");
    }
    for keys in [WebhookKeys::Standard(Vec::new()), WebhookKeys::Token(Secret::new("t"))] {
        assert_eq!(verify(&headers(full), &keys), Err(WebhookError::NoKey));
    }
    for wrong in ["", "whsec_", "whsec_!", "whsec_c2hvcnQ=", "c2hvcnQ="] {
        assert!(StandardSecret::parse(wrong).is_err(), "{wrong}");
    }
}

/// Our own webhooks have the signature that the reference implementation makes, with each secret of
/// a rotation, and verify.
#[test]
fn our_own_webhooks_are_signed_like_the_reference() {
    let vectors: Value = fixture("signatures/standard.json");
    for vector in vectors["cases"].as_array().unwrap() {
        let [secret, id, signature, body] =
            ["secret", "id", "signature", "body"].map(|name| text(vector, name));
        let now = at(vector["timestamp"].as_u64().unwrap());
        let [current, older] = [secret, OTHER].map(|text| StandardSecret::parse(text).unwrap());
        let alone = standard::sign(std::slice::from_ref(&current), id, now, body.as_bytes()).unwrap();
        assert_eq!(alone[standard::SIGNATURE], signature);
        let signed = standard::sign(&[current, older], id, now, body.as_bytes()).unwrap();
        for known in [secret, OTHER] {
            let webhook = Webhook { headers: &signed, body: body.as_bytes(), token: None, received_at: now };
            assert_eq!(standard::verify(&webhook, &secrets(&[known])), Ok(id));
        }
    }
    let secret = [StandardSecret::parse(OTHER).unwrap()];
    for id in ["", "a.5", "a\nb"] {
        assert!(standard::sign(&secret, id, at(5), b"").is_none(), "{id:?}");
    }
    assert!(standard::sign(&[], "a", at(5), b"").is_none());
    assert_eq!(format!("{secret:?}"), "[***]");
}

/// DSP-11: fal's signature is verified with any key of its set; stale, with another key, request,
/// user, time or body it is not accepted.
#[test]
fn dsp_11_fal_webhooks_are_verified() {
    let vector: Value = fixture("signatures/fal.json");
    let provider = Fal::new(fal::BASE_URL, fal::JWKS_URL);
    let set = vector["jwks"].to_string();
    let keys = provider.read_webhook_keys(set.as_bytes()).unwrap();
    let only = |index: usize| {
        let key = serde_json::json!({ "keys": [vector["jwks"]["keys"][index]] });
        provider.read_webhook_keys(key.to_string().as_bytes()).unwrap()
    };
    let [id, user, body] = ["request_id", "user_id", "body"].map(|name| text(&vector, name));
    let now = vector["timestamp"].as_u64().unwrap();
    let receive = |parts: [&str; 4], body: &str, received: u64, keys: &WebhookKeys| {
        let [id, user, time, signature] = parts;
        let headers = headers([
            ("x-fal-webhook-request-id", id),
            ("x-fal-webhook-user-id", user),
            ("x-fal-webhook-timestamp", time),
            ("x-fal-webhook-signature", signature),
        ]);
        let body = body.as_bytes();
        provider.receive(&Webhook { headers: &headers, body, token: None, received_at: at(received) }, keys)
    };
    let time = now.to_string();
    let later = (now + 1).to_string();
    for (index, signature) in vector["signatures"].as_array().unwrap().iter().enumerate() {
        let signature = signature.as_str().unwrap();
        let good = [id, user, &time, signature];
        for near in [now - 300, now + 300] {
            let received = receive(good, body, near, &keys).unwrap();
            let ReceivedWebhook::Signed(report) = received else { panic!("not signed") };
            assert_eq!(report.job_id.as_deref(), Some(id));
        }
        assert_eq!(receive(good, body, now + 301, &keys), Err(WebhookError::Stale));
        assert!(receive(good, body, now, &only(index)).is_ok());
        let forged = Err(WebhookError::Forged);
        assert_eq!(receive(good, body, now, &only(1 - index)), forged);
        assert_eq!(receive(good, &body.replace("OK", "KO"), now, &keys), forged);
        for wrong in
            [["x", user, &time, signature], [id, "x", &time, signature], [id, user, &later, signature]]
        {
            assert_eq!(receive(wrong, body, now, &keys), forged);
        }
        for unreadable in ["", "zz", "abc"] {
            let refused = receive([id, user, &time, unreadable], body, now, &keys);
            assert!(matches!(refused, Err(WebhookError::Missing(_))), "{unreadable}");
        }
    }
    assert_eq!(receive([id, user, &time, "00"], body, now, &secrets(&[OTHER])), Err(WebhookError::NoKey));
    for empty in [
        "",
        "{}",
        r#"{"keys":[]}"#,
        r#"{"keys":[{"kty":"OKP","x":"c2hvcnQ"}]}"#,
        r#"{"keys":[{"kty":"EC"}]}"#,
    ] {
        assert_eq!(JwkSet::parse(empty.as_bytes()), None, "{empty}");
    }
}

/// DSP-11, DSP-19: Google's token proves the sender within its times, by the key that it names and
/// no other algorithm. It is not documented to cover the body, so the job has to be confirmed.
#[test]
fn dsp_11_google_tokens_are_verified_and_confirmed() {
    let vector: Value = fixture("signatures/google.json");
    let provider = Google::new(google::BASE_URL, google::JWKS_URL);
    let keys = provider.read_webhook_keys(vector["jwks"].to_string().as_bytes()).unwrap();
    let now = vector["timestamp"].as_u64().unwrap();
    let receive = |token: &str, time: u64| {
        let time = time.to_string();
        let headers =
            headers([("webhook-id", "msg_9"), ("webhook-timestamp", &time), ("webhook-signature", token)]);
        let body = text(&vector, "body").as_bytes();
        provider.receive(&Webhook { headers: &headers, body, token: None, received_at: at(now) }, &keys)
    };
    let each = |kind: &str| vector[kind].as_object().unwrap().clone();
    for (name, token) in each("good") {
        let received = receive(token.as_str().unwrap(), now);
        let job_id = Some("models/veo-3.1/operations/abc".to_owned());
        assert_eq!(received, Ok(ReceivedWebhook::Unconfirmed { job_id }), "{name}");
        assert_eq!(receive(token.as_str().unwrap(), now - 301), Err(WebhookError::Stale), "{name}");
    }
    for (name, token) in each("forged") {
        assert_eq!(receive(token.as_str().unwrap(), now), Err(WebhookError::Forged), "{name}");
    }
    for (name, token) in each("stale") {
        assert_eq!(receive(token.as_str().unwrap(), now), Err(WebhookError::Stale), "{name}");
    }
    for unreadable in ["a", "a.b", "a.b.c", "v1,AAAA"] {
        assert!(matches!(receive(unreadable, now), Err(WebhookError::Missing(_))), "{unreadable}");
    }
}
