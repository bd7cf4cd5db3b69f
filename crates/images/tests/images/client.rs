//! A simulated provider, a plain HTTP client that sends what the adapter builds, and a receiver of
//! webhooks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use reqwest::Client;
use serde_json::{Value, json};
use tidegate_images::{
    Fal, Google, Higgsfield, JobRequest, JobStatus, PollStep, Provider, ProviderJob, ProviderReply,
    ProviderRequest, ProviderResponse, Replicate, Secret, SubmitOutcome, Time, Webhook, WebhookKeys,
};
use tidegate_sim::server::{SimReply, SimServer, Simulator};
use tidegate_sim::{Provider as Simulated, ProviderSim, ProviderSimOptions};
use tokio::sync::Notify;

/// A message that the receiver got.
pub(crate) struct Received {
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Received {
    /// The message as a webhook that came when it was sent.
    pub(crate) fn webhook(&self) -> Webhook<'_> {
        let names = ["webhook-timestamp", "x-fal-webhook-timestamp"];
        let time = names.iter().find_map(|name| self.headers.get(*name)?.to_str().ok()?.parse::<u64>().ok());
        Webhook {
            headers: &self.headers,
            body: &self.body,
            token: self.path.rsplit('/').next(),
            received_at: Time::from_millis(time.unwrap_or_default() * 1_000),
        }
    }
}

#[derive(Default)]
struct Inbox {
    messages: Mutex<Vec<Arc<Received>>>,
    arrived: Notify,
}

impl Simulator for Inbox {
    async fn reply(&self, request: hyper::Request<Bytes>) -> SimReply {
        let (head, body) = request.into_parts();
        let received = Received { path: head.uri.path().to_owned(), headers: head.headers, body };
        self.messages.lock().unwrap().push(Arc::new(received));
        self.arrived.notify_waiters();
        SimReply::Answer(hyper::Response::new(Bytes::new()))
    }
}

/// The token in the URL of every webhook.
pub(crate) const TOKEN: &str = "t0ken";

pub(crate) struct Rig {
    pub adapter: Box<dyn Provider>,
    pub model: &'static str,
    pub key: Secret,
    hook: String,
    client: Client,
    inbox: Arc<Inbox>,
    _sim: ProviderSim,
    _receiver: SimServer,
}

/// Options with fast jobs and no limit that a test would notice.
pub(crate) fn fast(provider: Simulated) -> ProviderSimOptions {
    ProviderSimOptions {
        takes: Duration::from_millis(20),
        max_concurrent: 50,
        rpm: 60_000,
        burst: 1_000,
        ..ProviderSimOptions::new(provider)
    }
}

pub(crate) const ALL: [Simulated; 4] =
    [Simulated::Replicate, Simulated::Google, Simulated::Fal, Simulated::Higgsfield];

fn adapter(provider: Simulated, base: &str) -> (Box<dyn Provider>, &'static str) {
    match provider {
        Simulated::Replicate => (Box::new(Replicate::new(format!("{base}/v1"))), "acme/flux"),
        Simulated::Google => (Box::new(Google::new(format!("{base}/v1beta"), base)), "veo-3"),
        Simulated::Fal => {
            (Box::new(Fal::new(base, format!("{base}/.well-known/jwks.json"))), "acme/flux/dev")
        }
        Simulated::Higgsfield => (Box::new(Higgsfield::new(base)), "acme/soul"),
    }
}

impl Rig {
    pub(crate) async fn start(options: ProviderSimOptions) -> Self {
        let provider = options.provider;
        let sim = ProviderSim::start(options).await.unwrap();
        let inbox = Arc::new(Inbox::default());
        let receiver = SimServer::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&inbox)).await.unwrap();
        let client = Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap();
        let (adapter, model) = adapter(provider, &format!("http://{}", sim.addr()));
        let hook = format!("http://{}/hooks/{TOKEN}", receiver.addr());
        let key = Secret::new("id:secret");
        Self { adapter, model, key, hook, client, inbox, _sim: sim, _receiver: receiver }
    }

    /// Sends a request once, and lets `read` see how it ended.
    pub(crate) async fn send<T>(
        &self,
        request: ProviderRequest,
        read: impl FnOnce(&ProviderReply<'_>) -> T,
    ) -> T {
        let sent = self.client.request(request.method, &request.url);
        let response = match sent.headers(request.headers).body(request.body).send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return read(&ProviderReply::NotSent("no connection")),
            Err(_) => return read(&ProviderReply::NoAnswer("the connection broke")),
        };
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.bytes().await;
        let is_complete = body.is_ok();
        let body = body.unwrap_or_default();
        let received_at = Time::from_millis(1_750_000_000_000);
        let response = ProviderResponse { status, headers: &headers, body: &body, is_complete, received_at };
        read(&ProviderReply::Response(response))
    }

    pub(crate) async fn submit_input(&self, model: &str, input: &Value) -> SubmitOutcome {
        let job = JobRequest { model, input, webhook: Some(&self.hook), attempt: "att-1" };
        let request = self.adapter.submit(&job, &self.key).unwrap();
        self.send(request, |reply| self.adapter.read_submit(&job, reply)).await
    }

    pub(crate) async fn submit(&self, prompt: &str) -> SubmitOutcome {
        self.submit_input(self.model, &json!({ "prompt": prompt })).await
    }

    pub(crate) async fn accepted(&self, prompt: &str) -> ProviderJob {
        match self.submit(prompt).await {
            SubmitOutcome::Accepted { job, .. } => job,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn poll(&self, job: &ProviderJob, step: PollStep) -> JobStatus {
        let request = self.adapter.poll(job, step, &self.key).unwrap();
        self.send(request, |reply| self.adapter.read_poll(job, step, reply)).await.unwrap()
    }

    /// Polls until the job ends.
    pub(crate) async fn end(&self, job: &ProviderJob) -> JobStatus {
        for _ in 0..1_000 {
            match self.poll(job, PollStep::Status).await {
                JobStatus::Running(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                JobStatus::ResultReady => return self.poll(job, PollStep::Result).await,
                ended => return ended,
            }
        }
        panic!("the job does not end");
    }

    /// Waits until so many messages have come, and returns all of them.
    pub(crate) async fn messages(&self, count: usize) -> Vec<Arc<Received>> {
        let arrive = async {
            loop {
                let arrived = self.inbox.arrived.notified();
                let messages = self.inbox.messages.lock().unwrap().clone();
                if messages.len() >= count {
                    return messages;
                }
                arrived.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), arrive).await.expect("the webhooks came")
    }

    /// What verifies the provider's webhooks, as the provider hands it out.
    pub(crate) async fn keys(&self) -> WebhookKeys {
        let request = self.adapter.webhook_keys(&self.key).unwrap().expect("the provider has keys");
        let body = self.send(request, |reply| match reply {
            ProviderReply::Response(response) => response.body.to_vec(),
            other => panic!("{other:?}"),
        });
        self.adapter.read_webhook_keys(&body.await).expect("the keys are read")
    }
}
