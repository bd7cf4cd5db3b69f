//! Webhooks over HTTP: verified by token and signature alone, and never taken at their word.

use reqwest::Method;
use serde_json::json;
use tidegate_sim::providers::webhook::WebhookFaults;
use tidegate_sim::{Provider, ProviderSimOptions};

use super::studio::{Studio, StudioPlan, fast, generation, name};
use crate::support::within;

fn forged_and_doubled(provider: Provider) -> ProviderSimOptions {
    let webhook_faults = WebhookFaults { forged: 1.0, doubled: 1.0, ..WebhookFaults::default() };
    ProviderSimOptions { webhook_faults, ..fast(provider) }
}

fn early(provider: Provider) -> ProviderSimOptions {
    let webhook_faults = WebhookFaults { early: 1.0, ..WebhookFaults::default() };
    ProviderSimOptions { webhook_faults, ..fast(provider) }
}

fn lost(provider: Provider) -> ProviderSimOptions {
    let webhook_faults = WebhookFaults { lost: 1.0, ..WebhookFaults::default() };
    ProviderSimOptions { webhook_faults, ..fast(provider) }
}

/// Makes one picture with each of these providers alone.
async fn picture_of(provider: Provider, sim: fn(Provider) -> ProviderSimOptions) -> Studio {
    let tokens = "[[token]]\nname = \"t\"\nvalue_env = \"TEST_TOKEN\"\nscopes = [\"read\", \"write\"]\n";
    let plan = StudioPlan { chain: vec![provider], sim, more: tokens.into(), ..StudioPlan::default() };
    let mut studio = Studio::start(plan).await;
    let mut headers = reqwest::header::HeaderMap::new();
    headers.insert("authorization", "Bearer a-token-from-the-environment".parse().unwrap());
    studio.client = reqwest::Client::builder().default_headers(headers).build().unwrap();
    let id = studio.create(&generation("anna", "a cat")).await;
    let done = studio.wait_until_ended(&id).await;
    assert_eq!(done["status"], "completed", "{}: {done}", name(provider));
    assert_eq!(studio.stats(provider).all.billed, 1);
    studio
}

/// DSP-11: a forged webhook before the real one, which claims a failure, changes nothing, and
/// neither does a repeated one. Webhooks need no bearer token.
#[tokio::test]
async fn dsp_11_forged_and_repeated_webhooks_change_nothing() {
    within(async {
        for provider in [Provider::Replicate, Provider::Fal, Provider::Higgsfield] {
            let studio = picture_of(provider, forged_and_doubled).await;
            let ledger = studio.get("/v1/ledger").await.json;
            assert_eq!(ledger["entries"].as_array().unwrap().len(), 1, "{ledger}");
        }
    })
    .await;
}

/// DSP-11: a webhook that comes before the submit's own answer is not lost.
#[tokio::test]
async fn dsp_11_an_early_webhook_is_not_lost() {
    within(async {
        for provider in [Provider::Replicate, Provider::Higgsfield] {
            picture_of(provider, early).await;
        }
    })
    .await;
}

/// DSP-12: without a webhook the provider is polled.
#[tokio::test]
async fn dsp_12_without_a_webhook_the_provider_is_polled() {
    within(async {
        picture_of(Provider::Replicate, lost).await;
    })
    .await;
}

/// DSP-11: what is made up is refused: another token, another provider, no signature. Who calls
/// needs no bearer token, and may call under the public name.
#[tokio::test]
async fn dsp_11_made_up_webhooks_are_refused() {
    within(async {
        let studio = Studio::start(StudioPlan::default()).await;
        let id = studio.create(&generation("anna", "a cat")).await;
        studio.wait_until_ended(&id).await;
        let post = |path: &str| {
            let request = studio.request(Method::POST, path).header("host", "app.example.com");
            crate::support::answer(request.body(json!({ "id": "x", "status": "succeeded" }).to_string()))
        };
        post("/api/webhooks/replicate/made-up").await.refused(401, "TG0015", None);
        post(&format!("/api/webhooks/replicate/{id}.1.AAAA")).await.refused(401, "TG0015", None);
        post("/api/webhooks/nowhere/made-up").await.refused(404, "TG0033", None);
        let read = studio.request(Method::GET, "/api/generations").header("host", "app.example.com");
        assert_eq!(read.send().await.unwrap().status(), 403, "the public name is for webhooks only");
    })
    .await;
}
