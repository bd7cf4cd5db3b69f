//! A server with one model and simulated providers behind it, and a client that knows its address.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_server::Server;
use tidegate_server::config::{Config, Overrides};
use tidegate_sim::providers::sim_state::ProviderStats;
use tidegate_sim::{Provider, ProviderSim, ProviderSimOptions};
use tokio::net::TcpListener;

use crate::support::{Answer, answer};

/// Longer than any request here may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The secret that signs reports.
pub(super) const NOTIFY_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// How a studio is set up.
#[derive(Clone)]
pub(super) struct StudioPlan {
    pub chain: Vec<Provider>,
    /// `max_concurrent` of every provider.
    pub slots: u32,
    /// The options of its simulators.
    pub sim: fn(Provider) -> ProviderSimOptions,
    /// `[generations]`, besides its storage.
    pub generations: String,
    /// More of the configuration, after everything else.
    pub more: String,
    pub store: String,
    /// Where providers call back; `None` for where it listens.
    pub public: Option<SocketAddr>,
}

impl Default for StudioPlan {
    fn default() -> Self {
        Self {
            chain: vec![Provider::Replicate, Provider::Google, Provider::Fal, Provider::Higgsfield],
            slots: 4,
            sim: fast,
            generations: String::new(),
            more: String::new(),
            store: "memory:".into(),
            public: None,
        }
    }
}

/// Jobs that end at once, within any limit.
pub(super) fn fast(provider: Provider) -> ProviderSimOptions {
    ProviderSimOptions {
        takes: Duration::from_millis(30),
        max_concurrent: 50,
        rpm: 60_000,
        burst: 1_000,
        ..ProviderSimOptions::new(provider)
    }
}

/// Jobs that take long enough to be looked at.
pub(super) fn slow(provider: Provider) -> ProviderSimOptions {
    ProviderSimOptions { takes: Duration::from_millis(1_500), ..fast(provider) }
}

/// The simulators of a studio, by provider.
pub(super) struct Simulators(BTreeMap<&'static str, ProviderSim>);

/// A server, its providers and a client.
pub(super) struct Studio {
    pub server: Server,
    pub sims: Simulators,
    pub client: Client,
    _results: TempDir,
}

pub(super) const fn name(provider: Provider) -> &'static str {
    match provider {
        Provider::Replicate => "replicate",
        Provider::Google => "google",
        Provider::Fal => "fal",
        Provider::Higgsfield => "higgsfield",
    }
}

impl Simulators {
    pub(super) async fn start(plan: &StudioPlan) -> Self {
        let mut all = BTreeMap::new();
        for provider in &plan.chain {
            all.insert(name(*provider), ProviderSim::start((plan.sim)(*provider)).await.unwrap());
        }
        Self(all)
    }

    fn addr(&self, provider: Provider) -> SocketAddr {
        self.0[name(provider)].addr()
    }

    /// The sections of the providers and of the model.
    pub(super) fn sections(&self, plan: &StudioPlan) -> String {
        let mut text = String::new();
        let mut chain = Vec::new();
        for provider in &plan.chain {
            let (addr, name) = (self.addr(*provider), name(*provider));
            let (base, model) = match provider {
                Provider::Replicate => (format!("base_url = \"http://{addr}/v1\"\n"), "acme/flux"),
                Provider::Google => (format!("base_url = \"http://{addr}/v1beta\"\n"), "veo-3"),
                Provider::Fal => (
                    format!(
                        "base_url = \"http://{addr}\"\njwks_url = \"http://{addr}/.well-known/jwks.json\"\n"
                    ),
                    "acme/flux/dev",
                ),
                Provider::Higgsfield => (format!("base_url = \"http://{addr}\"\n"), "acme/soul"),
            };
            text.push_str(&format!(
                "[provider.{name}]\n{base}key_env = \"PROVIDER_KEY\"\nmax_concurrent = {}\nrpm = 6000\n\
                 poll_after_s = 1\npoll_every_s = 1\n",
                plan.slots
            ));
            chain.push(format!("{{ provider = \"{name}\", model = \"{model}\", cost = 3000 }}"));
        }
        let schema = r#"{"type":"object","required":["prompt"],"properties":{"prompt":{"type":"string","minLength":1},"seed":{"type":"integer"}}}"#;
        text.push_str(&format!("[model.flux]\ninput_schema = '{schema}'\nchain = [{}]\n", chain.join(", ")));
        text
    }
}

/// An address that was free a moment ago.
pub(super) async fn free_addr() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// The configuration of a node that listens there.
pub(super) fn config(plan: &StudioPlan, sims: &Simulators, listen: SocketAddr, results: &TempDir) -> Config {
    let public = plan.public.unwrap_or(listen);
    let text = format!(
        "[server]\nlisten = \"{listen}\"\ndrain_s = 1\npublic_url = \"http://{public}\"\n[store]\nurl = \"{}\"\n\
         [generations]\nstorage = {:?}\n{}\n{}{}",
        plan.store,
        results.path().display().to_string(),
        plan.generations,
        sims.sections(plan),
        plan.more,
    );
    let env = |name: &str| match name {
        "TEST_TOKEN" => Some("a-token-from-the-environment".to_owned()),
        "PROVIDER_KEY" => Some("id:secret".to_owned()),
        "NOTIFY_SECRET" => Some(NOTIFY_SECRET.to_owned()),
        _ => None,
    };
    Config::parse("test.toml", &text, &env, &Overrides::default(), &[]).unwrap()
}

impl Studio {
    pub(super) async fn start(plan: StudioPlan) -> Self {
        let sims = Simulators::start(&plan).await;
        let results = tempfile::tempdir().unwrap();
        let config = config(&plan, &sims, free_addr().await, &results);
        let server = Server::start(config).await.unwrap();
        Self { server, sims, client: Client::new(), _results: results }
    }

    pub(super) fn stats(&self, provider: Provider) -> ProviderStats {
        self.sims.0[name(provider)].stats()
    }

    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.server.addr)).timeout(LIMIT)
    }

    pub(super) async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path)).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Answer {
        answer(self.request(Method::POST, path).body(body.to_string())).await
    }

    pub(super) async fn patch(&self, path: &str, body: &Value) -> Answer {
        answer(self.request(Method::PATCH, path).body(body.to_string())).await
    }

    /// Reads a page as an English reader.
    pub(super) async fn page(&self, path: &str) -> (u16, String) {
        let read = self.request(Method::GET, path).header("accept-language", "en").send().await.unwrap();
        (read.status().as_u16(), read.text().await.unwrap())
    }

    /// Creates a generation and returns its id.
    pub(super) async fn create(&self, body: &Value) -> String {
        let created = self.post("/api/generations/create", body).await;
        assert_eq!(created.status, 202, "{created:?}");
        created.text("id")
    }

    /// Waits until it has ended.
    pub(super) async fn wait_until_ended(&self, id: &str) -> Value {
        self.wait_for(id, |one| matches!(one["status"].as_str(), Some("completed" | "failed" | "canceled")))
            .await
    }

    pub(super) async fn wait_for_status(&self, id: &str, status: &str) -> Value {
        self.wait_for(id, |one| one["status"] == status).await
    }

    async fn wait_for(&self, id: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let one = self.get(&format!("/api/generations/{id}")).await.json;
            if is_it(&one) {
                return one;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The state of a provider.
    pub(super) async fn provider(&self, name: &str) -> Value {
        let all = self.get("/v1/providers").await.json;
        all["providers"].as_array().unwrap().iter().find(|one| one["name"] == name).cloned().unwrap()
    }
}

/// The body that creates a generation.
pub(super) fn generation(user: &str, prompt: &str) -> Value {
    json!({ "model_id": "flux", "input": { "prompt": prompt }, "user_id": user })
}
