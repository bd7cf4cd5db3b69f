//! A provider, a client of it, and a receiver of webhooks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tidegate_sim::providers::webhook::WebhookFaults;
use tidegate_sim::server::{SimReply, SimServer, Simulator};
use tidegate_sim::{Provider, ProviderSim, ProviderSimOptions};
use tokio::sync::Notify;

/// A message that the receiver got.
pub(crate) struct Received {
    pub headers: hyper::HeaderMap,
    pub body: Bytes,
}

impl Received {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> String {
        self.headers[name].to_str().unwrap().to_owned()
    }
}

#[derive(Default)]
pub(crate) struct Inbox {
    messages: Mutex<Vec<Arc<Received>>>,
    arrived: Notify,
}

impl Simulator for Inbox {
    async fn reply(&self, request: hyper::Request<Bytes>) -> SimReply {
        let (head, body) = request.into_parts();
        self.messages.lock().unwrap().push(Arc::new(Received { headers: head.headers, body }));
        self.arrived.notify_waiters();
        SimReply::Answer(hyper::Response::new(Bytes::new()))
    }
}

pub(crate) struct Rig {
    pub sim: ProviderSim,
    pub url: String,
    pub hook: String,
    client: Client,
    provider: Provider,
    inbox: Arc<Inbox>,
    _receiver: SimServer,
}

/// Options with fast jobs and no limit that a test would notice.
pub(crate) fn fast(provider: Provider) -> ProviderSimOptions {
    ProviderSimOptions {
        takes: Duration::from_millis(20),
        max_concurrent: 50,
        rpm: 60_000,
        burst: 1_000,
        late_by: Duration::from_millis(200),
        ..ProviderSimOptions::new(provider)
    }
}

pub(crate) fn with_faults(provider: Provider, webhook_faults: WebhookFaults) -> ProviderSimOptions {
    ProviderSimOptions { webhook_faults, ..fast(provider) }
}

impl Rig {
    pub(crate) async fn start(options: ProviderSimOptions) -> Self {
        let provider = options.provider;
        let sim = ProviderSim::start(options).await.unwrap();
        let inbox = Arc::new(Inbox::default());
        let receiver = SimServer::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&inbox)).await.unwrap();
        let client = Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap();
        let (url, hook) = (format!("http://{}", sim.addr()), format!("http://{}/hook", receiver.addr()));
        Self { sim, url, hook, client, provider, inbox, _receiver: receiver }
    }

    /// A request with the provider's kind of credential.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, self.absolute(path));
        match self.provider {
            Provider::Replicate => request.header("authorization", "Bearer r8_any"),
            Provider::Google => request.header("x-goog-api-key", "any"),
            Provider::Fal => request.header("authorization", "Key any"),
            Provider::Higgsfield => request.header("authorization", "Key any:any"),
        }
    }

    fn absolute(&self, path: &str) -> String {
        if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.url) }
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or(Value::Null))
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.call(Method::GET, path, None).await
    }

    /// Submits a prompt in the provider's own form, with the webhook.
    pub(crate) async fn submit(&self, prompt: &str) -> (u16, Value) {
        let hook = &self.hook;
        match self.provider {
            Provider::Replicate => {
                let body = json!({ "input": { "prompt": prompt }, "webhook": hook, "webhook_events_filter": ["completed"] });
                self.call(Method::POST, "/v1/models/acme/flux/predictions", Some(body)).await
            }
            Provider::Google => {
                let body = json!({ "instances": [{ "prompt": prompt }], "webhookConfig": { "uris": [hook], "userMetadata": { "attempt": "7" } } });
                self.call(Method::POST, "/v1beta/models/veo-3:predictLongRunning", Some(body)).await
            }
            Provider::Fal => {
                let path = format!("/acme/flux/dev?fal_webhook={hook}");
                self.call(Method::POST, &path, Some(json!({ "prompt": prompt }))).await
            }
            Provider::Higgsfield => {
                let path = format!("/acme/soul?hf_webhook={hook}");
                self.call(Method::POST, &path, Some(json!({ "prompt": prompt }))).await
            }
        }
    }

    /// Waits until so many messages have come, and returns all of them.
    pub(crate) async fn messages(&self, count: usize) -> Vec<Arc<Received>> {
        let arrive = async {
            loop {
                let arrived = self.inbox.arrived.notified();
                let messages = self.received();
                if messages.len() >= count {
                    return messages;
                }
                arrived.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), arrive).await.expect("the webhooks came")
    }

    pub(crate) fn received(&self) -> Vec<Arc<Received>> {
        self.inbox.messages.lock().unwrap().clone()
    }

    /// Polls until the response satisfies the condition.
    pub(crate) async fn poll(&self, path: &str, is_done: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..1_000 {
            let (_, body) = self.get(path).await;
            if is_done(&body) {
                return body;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{path} did not come to an end");
    }
}
