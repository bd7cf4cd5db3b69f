//! The package of Standard Webhooks from PyPI, as it comes: it verifies what is signed here, and
//! what it signs verifies here.

mod foreign;

use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tidegate_core::Time;
use tidegate_images::webhook::standard::{self, StandardSecret};
use tidegate_images::{Webhook, WebhookError, WebhookKeys};
use tidegate_store::{Clock, WallClock};

use crate::languages::{python, run};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLDER: &str = "whsec_b2xkZXJvbGRlcm9sZGVyb2xkZXJvbGRlcg==";
/// Everything that a signature must not stumble over.
const BODY: &str =
    r#"{"type":"generation.completed","data":{"prompt":"a \"lighthouse\" – маяк\n.","cost":0.10}}"#;
const ID: &str = "msg_op_7_generation_completed";

fn package(command: &str, body: &str, rest: &str) -> Value {
    run(python("webhooks/client.py").args([command, SECRET, body, rest]))
}

fn signed_at(at: Time) -> Value {
    let secrets = [OLDER, SECRET].map(|text| StandardSecret::parse(text).unwrap());
    let headers = standard::sign(&secrets, ID, at, BODY.as_bytes()).unwrap();
    headers.iter().map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap()))).collect()
}

/// DSP-11: a message that is signed here, with two secrets during a rotation, is accepted by the
/// package; changed or stale it is not.
#[test]
fn dsp_11_the_package_of_standard_webhooks_verifies_ours() {
    let now = WallClock.now();
    let headers = signed_at(now);
    let accepted = package("verify", BODY, &headers.to_string());
    assert_eq!(accepted["read"], serde_json::from_str::<Value>(BODY).unwrap());
    let changed = package("verify", &BODY.replace("0.10", "0.1"), &headers.to_string());
    assert_eq!(changed["error"], "No matching signature found");
    let stale = signed_at(now.before(Duration::from_secs(330)));
    assert_eq!(package("verify", BODY, &stale.to_string())["error"], "Message timestamp too old");
}

/// DSP-11: a message that the package signs is accepted here; changed, with another secret or stale
/// it is not.
#[test]
fn dsp_11_what_the_package_of_standard_webhooks_signs_is_verified() {
    let signed = package("sign", BODY, ID);
    let headers: HeaderMap = signed.as_object().unwrap().iter().map(header).collect();
    let verify = |body: &str, secret: &str, at: Time| {
        let keys = WebhookKeys::Standard(vec![StandardSecret::parse(secret).unwrap()]);
        let webhook = Webhook { headers: &headers, body: body.as_bytes(), token: None, received_at: at };
        standard::verify(&webhook, &keys).map(str::to_owned)
    };
    let now = WallClock.now();
    assert_eq!(verify(BODY, SECRET, now), Ok(ID.to_owned()));
    assert_eq!(verify(&BODY.replace("0.10", "0.1"), SECRET, now), Err(WebhookError::Forged));
    assert_eq!(verify(BODY, OLDER, now), Err(WebhookError::Forged));
    assert_eq!(verify(BODY, SECRET, now.after(Duration::from_secs(330))), Err(WebhookError::Stale));
}

fn header((name, value): (&String, &Value)) -> (HeaderName, HeaderValue) {
    (name.parse().unwrap(), value.as_str().unwrap().parse().unwrap())
}
