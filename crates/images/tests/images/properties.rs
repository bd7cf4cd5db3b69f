//! Random input: nothing panics, and nothing random passes for a webhook.

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_images::webhook::jwks::JwkSet;
use tidegate_images::webhook::standard::StandardSecret;
use tidegate_images::{JobRequest, PollStep, ProviderJob, Secret, Time, Webhook, WebhookKeys};

use crate::documented::{fixture, providers, reply};

const NAMES: [&str; 7] = [
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "x-fal-webhook-request-id",
    "x-fal-webhook-user-id",
    "x-fal-webhook-timestamp",
    "x-fal-webhook-signature",
];

fn values() -> impl Strategy<Value = Vec<Option<Vec<u8>>>> {
    let value = prop_oneof![
        Just(b"1750000000".to_vec()),
        "v1,[A-Za-z0-9+/]{0,48}=?".prop_map(String::into_bytes),
        "[A-Za-z0-9_-]{0,20}\\.[A-Za-z0-9_-]{0,20}\\.[A-Za-z0-9_-]{0,20}".prop_map(String::into_bytes),
        "[0-9a-f]{128}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..60),
    ];
    prop::collection::vec(prop::option::weighted(0.9, value), NAMES.len())
}

fn all_keys() -> Vec<WebhookKeys> {
    let sets = ["signatures/fal.json", "signatures/google.json"]
        .map(|path| fixture::<Value>(path)["jwks"].to_string());
    let jwks = sets.iter().map(|set| WebhookKeys::Jwks(JwkSet::parse(set.as_bytes()).unwrap()));
    let secret = StandardSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let others =
        [WebhookKeys::Standard(vec![secret]), WebhookKeys::Token(Secret::new("a token of this attempt"))];
    jwks.chain(others).collect()
}

fn json_value() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("succeeded"),
        Just("COMPLETED"),
        Just("failed"),
        Just("https://f.test/1.png"),
        Just("data:"),
        Just("é~1/"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        words.prop_map(Value::from),
    ];
    let names = prop::sample::select(vec![
        "id",
        "status",
        "output",
        "urls",
        "get",
        "error",
        "detail",
        "msg",
        "loc",
        "type",
        "retry_after",
        "request_id",
        "name",
        "done",
        "response",
        "candidates",
        "content",
        "parts",
        "inlineData",
        "data",
        "predictions",
        "job",
        "details",
        "@type",
        "retryDelay",
        "message",
        "code",
        "input",
        "results",
        "next",
        "payload",
        "keys",
        "kty",
        "x",
    ]);
    leaf.prop_recursive(6, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(names.clone(), inner, 0..6).prop_map(|fields| json!(fields)),
        ]
    })
}

proptest! {
    /// DSP-11: no random message is accepted by any provider with any kind of key, and none panics.
    #[test]
    fn dsp_11_no_random_webhook_is_accepted(
        values in values(),
        body in prop_oneof![prop::collection::vec(any::<u8>(), 0..80), json_value().prop_map(|body| body.to_string().into_bytes())],
        token in prop::option::of("\\PC{0,20}"),
    ) {
        let pairs = NAMES.iter().zip(values).filter_map(|(name, value)| {
            Some((HeaderName::from_static(name), HeaderValue::from_bytes(&value?).ok()?))
        });
        let headers: HeaderMap = pairs.collect();
        let received_at = Time::from_millis(1_750_000_000_000);
        let webhook = Webhook { headers: &headers, body: &body, token: token.as_deref(), received_at };
        for (provider, _) in providers() {
            for keys in all_keys() {
                prop_assert!(provider.receive(&webhook, &keys).is_err(), "{}", provider.name());
            }
        }
    }

    /// Whatever a provider answers, it is read without a panic.
    #[test]
    fn any_response_is_read(status in 100_u16..600, body in json_value(), wait in "\\PC{0,12}") {
        let mut headers = HeaderMap::new();
        headers.extend(HeaderValue::from_str(&wait).ok().map(|value| (http::header::RETRY_AFTER, value)));
        let text = body.to_string();
        let reply = reply(status, &headers, text.as_bytes());
        for (provider, model) in providers() {
            let job = JobRequest { model, input: &body, webhook: None, attempt: "1" };
            let known = ProviderJob::new("a", model);
            let _ = provider.submit(&job, &Secret::new("k"));
            let _ = provider.read_submit(&job, &reply);
            let _ = provider.read_poll(&known, PollStep::Status, &reply);
            let _ = provider.read_poll(&known, PollStep::Result, &reply);
            let _ = provider.read_look_up(&job, &reply);
            let _ = provider.read_webhook_keys(text.as_bytes());
        }
    }
}
