//! Generations that a remote worker carries: which provider it was granted, whom a failure counts
//! against, and what it notes of the job.

use serde_json::{Value, json};

use super::studio::{Studio, StudioPlan, generation};
use crate::support::within;

async fn take(studio: &Studio) -> Value {
    let body = json!({ "kinds": ["generation"], "max": 1, "wait_ms": 20_000, "lease_ms": 30_000 });
    let taken = studio.post("/v1/work/take", &body).await.json;
    taken["claims"][0].clone()
}

async fn settle(studio: &Studio, claim: &Value, more: &Value) -> Value {
    let mut settlement = json!({ "id": claim["id"], "fence": claim["fence"] });
    settlement.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let settled = studio.post("/v1/work/settle", &json!({ "settlements": [settlement] })).await.json;
    settled["settlements"][0].clone()
}

/// DSP-17: a worker learns which provider and key were granted. A failure counts against the
/// breaker that it blames, and the next provider is granted; what it notes of an accepted job comes
/// back when the job is asked about, and is in the ledger.
#[tokio::test]
async fn dsp_17_a_generation_is_carried_by_a_remote_worker() {
    within(async {
        let more = "[[kind]]\nname = \"generation\"\nworker = \"remote\"\n".to_owned();
        let studio = Studio::start(StudioPlan { more, ..StudioPlan::default() }).await;
        let id = studio.create(&generation("anna", "a cat")).await;
        let first = take(&studio).await;
        assert_eq!((&first["id"], &first["payload"]["model"]), (&json!(id), &json!("flux")));
        let limits = ["health", "slots", "rpm", "key:key-1"].map(|name| format!("provider:replicate/{name}"));
        assert_eq!(first["alternative"], json!({ "name": "replicate/key-1", "limits": limits }));
        assert!(first["completion_token"].is_string() && first.get("job").is_none());
        let fault = json!({ "class": "transient", "message": "it is full" });
        let mut failed = json!({ "outcome": "retry", "fault": fault, "blame": ["provider:fal/health"] });
        let refused = settle(&studio, &first, &failed).await;
        assert_eq!(
            (&refused["error"]["code"], &refused["error"]["field"]),
            (&json!("TG0007"), &json!("blame"))
        );
        failed["blame"] = json!(["provider:replicate/key:key-1"]);
        assert_eq!(settle(&studio, &first, &failed).await["applied"], true);
        let replicate = studio.provider("replicate").await;
        assert_eq!(replicate["state"], "cooling_down", "its only key cools: {replicate}");
        let second = take(&studio).await;
        assert_eq!(second["alternative"]["name"], "google/key-1");
        let memo = json!({ "provider": "google", "key": "key-1", "place": 7 });
        let accepted = json!({
            "outcome": "awaiting", "external_id": "j-1", "memo": memo, "cost": 39_000, "after_ms": 0,
        });
        assert_eq!(settle(&studio, &second, &accepted).await["state"], "running");
        let poll = take(&studio).await;
        assert_eq!((&poll["job"]["external_id"], &poll["job"]["memo"]), (&json!("j-1"), &memo));
        assert_eq!(poll["alternative"], second["alternative"]);
        let file = json!({ "key": format!("{id}/0.png"), "content_type": "image/png", "bytes": 7 });
        let done = json!({ "outcome": "succeeded", "response": { "provider": "google", "files": [file] } });
        assert_eq!(settle(&studio, &poll, &done).await["state"], "succeeded");
        let done = studio.wait_until_ended(&id).await;
        assert_eq!((&done["status"], &done["provider"]), (&json!("completed"), &json!("google")), "{done}");
        let ledger = studio.get("/v1/ledger").await.json;
        let entries = ledger["entries"].as_array().unwrap();
        let shown = |entry: &Value| (entry["provider"].clone(), entry["external_id"].clone());
        let mut shown: Vec<_> = entries.iter().map(shown).collect();
        shown.sort_by_key(|(provider, _)| provider.to_string());
        assert_eq!(shown, [(json!("google"), json!("j-1")), (json!("replicate"), Value::Null)]);
        assert!(entries.iter().any(|entry| entry["cost"] == 39_000), "{ledger}");
        let operation = studio.get(&format!("/v1/operations/{id}")).await.json;
        let attempts = operation["attempts"].as_array().unwrap();
        assert!(attempts.iter().any(|attempt| attempt["cost"] == 39_000), "as in the ledger: {operation}");
        assert_eq!(attempts.len(), entries.len(), "each is listed once: {operation}");
        assert_eq!(studio.provider("google").await["slots"]["in_use"], 0);
    })
    .await;
}
