//! The limits of each provider, and how it says that they were exceeded.

use std::time::Duration;

use serde_json::json;
use tidegate_sim::{Provider, ProviderSimOptions};

use crate::rig::{Rig, fast};

/// DSP-26: beyond its rate a provider refuses a submit without effect, in its own words.
#[tokio::test]
async fn dsp_26_the_rate_is_enforced() {
    for provider in [Provider::Replicate, Provider::Google, Provider::Fal, Provider::Higgsfield] {
        let rig = Rig::start(ProviderSimOptions { burst: 2, rpm: 1, ..fast(provider) }).await;
        let mut answers = Vec::new();
        for n in 0..3 {
            answers.push(rig.submit(&format!("cat {n}")).await);
        }
        assert_eq!(answers.iter().filter(|(status, _)| *status < 300).count(), 2, "{provider:?}");
        let (status, body) = &answers[2];
        assert_eq!(*status, 429, "{provider:?}");
        match provider {
            Provider::Replicate => assert_eq!(body["retry_after"], 60),
            Provider::Google => assert_eq!(body["error"]["details"][1]["retryDelay"], "60s"),
            Provider::Fal | Provider::Higgsfield => assert_eq!(body["detail"], "Too many requests"),
        }
        let stats = rig.sim.stats().all;
        assert_eq!((stats.writes, stats.billed, stats.throttled), (2, 2, 1), "{provider:?}");
    }
}

/// DSP-26: a provider that rejects keys refuses every call in its own words, and bills nothing;
/// what needs no key is there.
#[tokio::test]
async fn dsp_26_keys_can_be_rejected() {
    for provider in [Provider::Replicate, Provider::Google, Provider::Fal, Provider::Higgsfield] {
        let rig = Rig::start(ProviderSimOptions { rejects_keys: true, ..fast(provider) }).await;
        let (status, body) = rig.submit("a cat").await;
        match provider {
            Provider::Google => {
                let reason = &body["error"]["details"][0]["reason"];
                assert_eq!((status, reason), (400, &json!("API_KEY_INVALID")), "{body}");
            }
            _ => assert_eq!(status, 401, "{provider:?}: {body}"),
        }
        assert_eq!(rig.sim.stats().all.billed, 0, "{provider:?}");
        if provider == Provider::Fal {
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            let keys = client.get(format!("{}/.well-known/jwks.json", rig.url)).send().await.unwrap();
            assert_eq!(keys.status(), 200);
        }
    }
}

/// DSP-26: a provider that answers with the picture itself refuses what it has no slot for; the
/// others let it wait.
#[tokio::test]
async fn dsp_26_slots_are_enforced() {
    let options = |provider| ProviderSimOptions {
        max_concurrent: 1,
        takes: Duration::from_secs(600),
        ..fast(provider)
    };
    let fal = Rig::start(options(Provider::Fal)).await;
    fal.submit("first").await;
    let (_, second) = fal.submit("second").await;
    let (_, third) = fal.submit("third").await;
    assert_eq!((&second["queue_position"], &third["queue_position"]), (&json!(0), &json!(1)));
    let (status, waiting) = fal.get(third["status_url"].as_str().unwrap()).await;
    assert_eq!((status, &waiting["status"]), (202, &json!("IN_QUEUE")));
    assert_eq!(fal.sim.stats().all.objects, [("queued".into(), 2), ("running".into(), 1)].into());

    let google = Rig::start(options(Provider::Google)).await;
    google.submit("a film that takes the slot").await;
    let image = json!({ "contents": [{ "parts": [{ "text": "a cat" }] }] });
    let path = "/v1beta/models/gemini-2.5-flash-image:generateContent";
    let (status, body) = google.call(reqwest::Method::POST, path, Some(image)).await;
    assert_eq!((status, &body["error"]["status"]), (429, &json!("RESOURCE_EXHAUSTED")));
}
