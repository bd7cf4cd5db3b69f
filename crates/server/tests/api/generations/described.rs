//! The description of the API, compared with real responses about generations.

use reqwest::Method;
use serde_json::{Value, json};

use super::studio::{Studio, StudioPlan, generation};
use crate::openapi::differs;
use crate::support::{answer, within};

async fn check(
    studio: &Studio,
    all: &Value,
    method: Method,
    path: &str,
    template: &str,
    body: &Value,
) -> Value {
    let request = studio.request(method.clone(), path);
    let answer = answer(if body.is_null() { request } else { request.body(body.to_string()) }).await;
    let call = &all["paths"][template][method.as_str().to_lowercase()];
    let mut described = &call["responses"][answer.status.to_string()];
    if let Some(target) = described["$ref"].as_str() {
        described = all.pointer(&target[1..]).unwrap();
    }
    let schema = &described["content"]["application/json"]["schema"];
    assert!(!schema.is_null(), "{method} {path}: {} is not described", answer.status);
    assert_eq!(differs(all, schema, &answer.json, "it"), None, "{method} {path}: {}", answer.json);
    answer.json
}

#[tokio::test]
async fn what_is_answered_about_generations_is_what_is_described() {
    within(async {
        let generations = "per_user_rpm = 2".to_owned();
        let studio = Studio::start(StudioPlan { generations, ..StudioPlan::default() }).await;
        let all = studio.get("/openapi.json").await.json;
        let get = async |path: &str, template: &str| {
            check(&studio, &all, Method::GET, path, template, &Value::Null).await
        };
        let create = async |body: &Value| {
            let path = "/api/generations/create";
            check(&studio, &all, Method::POST, path, path, body).await
        };
        let made = create(&generation("anna", "a cat")).await;
        let id = made["id"].as_str().unwrap().to_owned();
        let (one, template) = (format!("/api/generations/{id}"), "/api/generations/{id}");
        get(&format!("{one}/why"), "/api/generations/{id}/why").await;
        studio.wait_until_ended(&id).await;
        get(&one, template).await;
        get(&format!("{one}/why"), "/api/generations/{id}/why").await;
        let operation = get(&format!("/v1/operations/{id}"), "/v1/operations/{id}").await;
        assert!(operation["result"]["files"][0]["key"].is_string(), "{operation}");
        get("/api/generations/op_00000000000000000000000001", template).await;
        get("/api/generations", "/api/generations").await;
        get("/api/generations?status=none", "/api/generations").await;
        get(&format!("{one}/result/9"), "/api/generations/{id}/result/{index}").await;
        create(&json!({ "model_id": "flux", "input": {} })).await;
        create(&json!({})).await;
        create(&generation("anna", "[nsfw]")).await;
        create(&generation("anna", "too many")).await;
        get("/v1/ledger", "/v1/ledger").await;
        get("/v1/providers", "/v1/providers").await;
        get("/v1/models", "/v1/models").await;
        let (provider, patch) = ("/v1/providers/{name}", json!({ "rpm": 60 }));
        check(&studio, &all, Method::PATCH, "/v1/providers/fal", provider, &patch).await;
        check(&studio, &all, Method::PATCH, "/v1/providers/none", provider, &patch).await;
        let cancel = "/api/generations/{id}/cancel";
        check(&studio, &all, Method::POST, &format!("{one}/cancel"), cancel, &json!({})).await;
        let webhook = "/api/webhooks/{provider}/{token}";
        check(&studio, &all, Method::POST, "/api/webhooks/fal/x", webhook, &json!({})).await;
    })
    .await;
}
