//! A dispatch with simulated providers, a storage in a folder, and a receiver that passes webhooks
//! on, or holds them.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate::{CompletionKey, Engine, OperationId, Options};
use tidegate_dispatch::storage::FolderStorage;
use tidegate_dispatch::{
    AdapterConfig, ChainLinkConfig, Dispatch, DispatchConfig, Generation, GenerationStatus, Generations,
    KIND, KeyConfig, ModelConfig, NewGeneration, ProviderConfig, ResultStorage, WebhookReceipt,
    WebhookRefusal,
};
use tidegate_sim::providers::signature::WebhookSigner;
use tidegate_sim::server::{SimReply, SimServer, Simulator};
use tidegate_sim::{Provider as Simulated, ProviderSim, ProviderSimOptions};
use tidegate_store::Store;
use tidegate_upstream::Secret;

/// Longer than anything takes that a test waits for.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// A webhook that came, and what became of it.
#[derive(Clone)]
pub(crate) struct Message {
    pub provider: String,
    pub token: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub result: Option<Result<WebhookReceipt, WebhookRefusal>>,
}

/// Receives webhooks.
#[derive(Default)]
pub(crate) struct Receiver {
    generations: OnceLock<Mutex<Generations>>,
    /// Whether messages are kept and not passed on.
    pub holds: Mutex<bool>,
    pub messages: Mutex<Vec<Message>>,
}

impl Simulator for Receiver {
    async fn reply(&self, request: hyper::Request<Bytes>) -> SimReply {
        let (head, body) = request.into_parts();
        let mut parts = head.uri.path().rsplit('/').map(str::to_owned);
        let (token, provider) = (parts.next().unwrap(), parts.next().unwrap());
        let mut message = Message { provider, token, headers: head.headers, body, result: None };
        if !*self.holds.lock().unwrap() {
            let generations = self.generations.get().unwrap().lock().unwrap().clone();
            message.result = Some(message.deliver(&generations).await);
        }
        let is_refused = matches!(message.result, Some(Err(_)));
        self.messages.lock().unwrap().push(message);
        let mut response = hyper::Response::new(Bytes::new());
        *response.status_mut() =
            if is_refused { http::StatusCode::UNAUTHORIZED } else { http::StatusCode::OK };
        SimReply::Answer(response)
    }
}

impl Message {
    pub(crate) async fn deliver(&self, generations: &Generations) -> Result<WebhookReceipt, WebhookRefusal> {
        generations.receive(&self.provider, &self.token, &self.headers, &self.body).await
    }
}

pub(crate) struct World {
    pub dispatch: Dispatch,
    pub engine: Engine,
    pub generations: Generations,
    pub sims: Vec<ProviderSim>,
    pub receiver: Arc<Receiver>,
    pub storage: Arc<dyn ResultStorage>,
    store: Arc<dyn Store>,
    _server: SimServer,
    _folder: TempDir,
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

/// Options with jobs that do not end by themselves.
pub(crate) fn slow(provider: Simulated) -> ProviderSimOptions {
    ProviderSimOptions { takes: Duration::from_secs(600), ..fast(provider) }
}

pub(crate) const ALL: [Simulated; 4] =
    [Simulated::Replicate, Simulated::Google, Simulated::Fal, Simulated::Higgsfield];

/// The name of a provider, and its name of the model.
pub(crate) fn names(provider: Simulated) -> (&'static str, &'static str) {
    match provider {
        Simulated::Replicate => ("replicate", "acme/flux"),
        Simulated::Google => ("google", "veo-3"),
        Simulated::Fal => ("fal", "acme/flux/dev"),
        Simulated::Higgsfield => ("higgsfield", "acme/soul"),
    }
}

fn adapter(provider: Simulated, base: &str) -> AdapterConfig {
    let jwks_url = Some(format!("{base}/.well-known/jwks.json"));
    match provider {
        Simulated::Replicate => AdapterConfig::Replicate { base_url: Some(format!("{base}/v1")) },
        Simulated::Google => AdapterConfig::Google { base_url: Some(format!("{base}/v1beta")), jwks_url },
        Simulated::Fal => AdapterConfig::Fal { base_url: Some(base.into()), jwks_url },
        Simulated::Higgsfield => AdapterConfig::Higgsfield { base_url: Some(base.into()) },
    }
}

pub(crate) fn key(name: &str, account: Option<&str>) -> KeyConfig {
    KeyConfig { name: name.into(), key: Secret::new("id:secret"), account: account.map(str::to_owned) }
}

/// A provider at this address, whose polls come late, so that a test sees what its webhooks do.
pub(crate) fn provider(simulated: Simulated, base: &str) -> ProviderConfig {
    let mut provider = ProviderConfig::new(names(simulated).0, adapter(simulated, base));
    provider.keys = vec![key("main", None)];
    (provider.max_concurrent, provider.rpm) = (Some(50), Some(60_000));
    provider.cooldown = [Duration::from_secs(60); 4];
    (provider.poll_after, provider.poll_every) = (Some(LONG), Some(Duration::from_millis(100)));
    provider.timeout = Duration::from_secs(5);
    if simulated == Simulated::Google {
        provider.webhook_secrets = vec![Secret::new(WebhookSigner::new(0).secret())];
    }
    provider
}

impl World {
    /// Starts providers, all in the chain of the model `flux` in this order.
    pub(crate) async fn start(
        options: Vec<ProviderSimOptions>,
        adjust: impl FnOnce(&mut DispatchConfig),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = Arc::new(FolderStorage::open(folder.path()).unwrap());
        Self::with_storage(options, adjust, (folder, storage)).await
    }

    pub(crate) async fn with_storage(
        options: Vec<ProviderSimOptions>,
        adjust: impl FnOnce(&mut DispatchConfig),
        (folder, storage): (TempDir, Arc<dyn ResultStorage>),
    ) -> Self {
        let receiver = Arc::new(Receiver::default());
        let server = SimServer::start("127.0.0.1:0".parse().unwrap(), Arc::clone(&receiver)).await.unwrap();
        let mut config = DispatchConfig {
            public_url: Some(format!("http://{}", server.addr())),
            ..DispatchConfig::default()
        };
        let (mut sims, mut chain) = (Vec::new(), Vec::new());
        for options in options {
            let simulated = options.provider;
            let sim = ProviderSim::start(options).await.unwrap();
            config.providers.push(provider(simulated, &format!("http://{}", sim.addr())));
            chain.push(ChainLinkConfig::new(names(simulated).0, names(simulated).1));
            sims.push(sim);
        }
        config.models.push(ModelConfig::new("flux", chain));
        adjust(&mut config);
        let dispatch = Dispatch::new(config, Arc::clone(&storage)).unwrap();
        let store: Arc<dyn Store> = tidegate::store::open("memory:").await.unwrap();
        let engine = open(&store, &dispatch).await;
        let generations = dispatch.generations(&engine);
        receiver.generations.set(Mutex::new(generations.clone())).unwrap_or_else(|_| panic!("set once"));
        Self {
            dispatch,
            engine,
            generations,
            sims,
            receiver,
            storage,
            store,
            _server: server,
            _folder: folder,
        }
    }

    /// Stops the engine, with calls in flight abandoned, and opens another one on the same store.
    pub(crate) async fn restart(&mut self) {
        self.engine.drain().await;
        self.engine = open(&self.store, &self.dispatch).await;
        self.generations = self.dispatch.generations(&self.engine);
        *self.receiver.generations.get().unwrap().lock().unwrap() = self.generations.clone();
    }

    /// The same, with another configuration.
    pub(crate) async fn restart_with(&mut self, adjust: impl FnOnce(&mut DispatchConfig)) {
        let mut config = self.dispatch.config().clone();
        adjust(&mut config);
        self.dispatch = Dispatch::new(config, Arc::clone(&self.storage)).unwrap();
        self.restart().await;
    }

    pub(crate) async fn create(&self, prompt: &str) -> OperationId {
        self.create_for("ann", prompt).await
    }

    pub(crate) async fn create_for(&self, user: &str, prompt: &str) -> OperationId {
        let new = NewGeneration::new(user, "flux", input(prompt));
        self.generations.create(&new).await.unwrap().generation.id
    }

    pub(crate) async fn get(&self, id: OperationId) -> Generation {
        self.generations.get(id).await.unwrap()
    }

    /// The generation once it has ended.
    pub(crate) async fn end(&self, id: OperationId) -> Generation {
        let generation = self.generations.wait(id, LONG).await.unwrap();
        assert!(generation.status.is_ended(), "{generation:?}");
        generation
    }

    pub(crate) async fn complete(&self, prompt: &str) -> Generation {
        let generation = self.end(self.create(prompt).await).await;
        assert_eq!(generation.status, GenerationStatus::Completed, "{generation:?}");
        generation
    }

    /// Waits until a condition on a generation holds.
    pub(crate) async fn until(&self, id: OperationId, is_met: impl Fn(&Generation) -> bool) -> Generation {
        let wait = async {
            loop {
                let generation = self.get(id).await;
                if is_met(&generation) {
                    return generation;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LONG, wait).await.expect("the condition is met")
    }

    /// Waits until so many messages have come.
    pub(crate) async fn messages(&self, count: usize) -> Vec<Message> {
        let wait = async {
            loop {
                let messages = self.receiver.messages.lock().unwrap().clone();
                if messages.len() >= count {
                    return messages;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LONG, wait).await.expect("the webhooks came")
    }

    /// Whether a breaker is open.
    pub(crate) async fn is_hot(&self, limit: &str) -> bool {
        self.engine.limit(limit).await.unwrap().frozen_until.is_some()
    }

    /// What all providers have billed.
    pub(crate) fn billed(&self) -> u64 {
        self.sims.iter().map(|sim| sim.stats().all.billed).sum()
    }
}

async fn open(store: &Arc<dyn Store>, dispatch: &Dispatch) -> Engine {
    let options = Options::default()
        .with_completion_key(CompletionKey::new(&[7; 16]))
        .with_drain(Duration::from_millis(50));
    Engine::builder(Arc::clone(store))
        .options(options)
        .limits(dispatch.limits())
        .executor(KIND, dispatch.executor())
        .open()
        .await
        .unwrap()
}

/// An input that every simulated provider takes.
pub(crate) fn input(prompt: &str) -> Value {
    json!({ "prompt": prompt })
}
