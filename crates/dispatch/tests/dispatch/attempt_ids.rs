//! The id of an attempt, which a provider may know a repeated submit by.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::json;
use tidegate_dispatch::{AdapterConfig, ChainLinkConfig, GenerationStatus, ModelConfig, ProviderConfig};
use tidegate_sim::server::{SimReply, SimServer, Simulator};

use crate::world::{World, key};

/// Throttles every submit, and remembers the ids of the attempts.
#[derive(Default)]
struct ThrottlingApi(Mutex<Vec<String>>);

impl Simulator for ThrottlingApi {
    async fn reply(&self, request: hyper::Request<Bytes>) -> SimReply {
        let id = request.headers().get("idempotency-key").and_then(|id| id.to_str().ok());
        self.0.lock().unwrap().extend(id.map(str::to_owned));
        let answer = http::Response::builder().status(429).header("retry-after", "60");
        SimReply::Answer(answer.body(Bytes::new()).unwrap())
    }
}

/// DSP-18: every submit has an id of its own, also after a 429, which spends no attempt: a provider
/// that honors ids must not answer the second submit with the response to the first.
#[tokio::test]
async fn dsp_18_every_submit_has_an_id_of_its_own() {
    let api = Arc::new(ThrottlingApi::default());
    let server = SimServer::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&api)).await.unwrap();
    let adapter = serde_json::from_value(json!({
        "name": "acme",
        "base_url": format!("http://{}", server.addr()),
        "submit": { "path": "/jobs/{model}", "attempt_header": "idempotency-key" },
        "poll": { "path": "/jobs/{id}" },
        "fields": { "id": "/id", "status": "/status", "files": ["/files"] },
        "states": { "queued": ["queued"], "running": ["running"], "succeeded": ["ok"], "failed": ["failed"], "canceled": [] },
    }));
    let adapter = AdapterConfig::Generic(Box::new(adapter.unwrap()));
    let world = World::start(Vec::new(), |config| {
        let mut acme = ProviderConfig::new("acme", adapter);
        acme.keys = vec![key("one", None), key("two", None)];
        config.providers.push(acme);
        config.models = vec![ModelConfig::new("flux", vec![ChainLinkConfig::new("acme", "flux")])];
    })
    .await;
    let id = world.create("a cat").await;
    let both = |_: &_| api.0.lock().unwrap().len() == 2;
    let queued = world.until(id, both).await;
    assert!(matches!(queued.status, GenerationStatus::Queued | GenerationStatus::Processing), "{queued:?}");
    let ids = api.0.lock().unwrap().clone();
    assert!(ids[0] != ids[1] && ids.iter().all(|of| of.starts_with(&id.to_string())), "{ids:?}");
}
