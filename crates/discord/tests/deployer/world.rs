//! A simulated guild, and deployers of it on any store.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate::{Engine, Executors, Options};
use tidegate_discord::deploy::{DeployReport, DeployRequest, Deployer, NoopListener, Result, StepExecutor};
use tidegate_discord::plan::Plan;
use tidegate_discord::{DiscordDialect, DiscordSettings, Id};
use tidegate_sim::{DiscordSim, DiscordSimOptions};
use tidegate_store::{SteadyClock, Store};
use tidegate_upstream::http::{Dialect, TokenHeader, UpstreamConfig};
use tidegate_upstream::{HttpUpstreams, Secret, Upstream};

pub(crate) const SMALL: &str = include_str!("../../../../examples/guilds/small.yaml");
/// The guild that is deployed into.
pub(crate) const GUILD: Id = Id(4_177);

pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A simulator with limits wide enough not to matter.
pub(crate) async fn wide() -> DiscordSim {
    sim(DiscordSimOptions::default()).await
}

pub(crate) async fn sim(mut options: DiscordSimOptions) -> DiscordSim {
    options.limits.set("routes", 1_000, 1_000).unwrap();
    options.limits.set("renames", 1_000, 1_000).unwrap();
    options.limits.set("global", 1_000, 1_000).unwrap();
    DiscordSim::start(options).await.unwrap()
}

/// Calls the simulator's own interface, below `/_sim`.
pub(crate) async fn ask(sim: &str, method: reqwest::Method, path: &str, body: Option<Value>) -> Value {
    let mut request = reqwest::Client::new().request(method, format!("http://{sim}/_sim{path}"));
    if let Some(body) = body {
        request = request.header("content-type", "application/json").body(body.to_string());
    }
    let answer = request.send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).unwrap_or_default()
}

/// Makes a change by hand.
pub(crate) async fn by_hand(sim: &str, method: &str, path: &str, body: Value) -> Value {
    ask(sim, method.parse().unwrap(), &format!("/hand{path}"), Some(body)).await
}

/// Returns everything in the guild.
pub(crate) async fn guild(sim: &str) -> Value {
    ask(sim, reqwest::Method::GET, &format!("/guilds/{GUILD}"), None).await
}

pub(crate) async fn store(url: &str) -> Arc<dyn Store> {
    match url.split(':').next().unwrap() {
        "redis" => tidegate_store_redis::open(url).await.unwrap(),
        "postgres" => Arc::new(tidegate_store_postgres::PostgresStore::connect(url).await.unwrap()),
        _ => tidegate_store_embedded::open(url, Arc::new(SteadyClock::new())).unwrap(),
    }
}

/// A process that deploys.
pub(crate) struct Node {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) deployer: Deployer,
}

impl Node {
    pub(crate) async fn open(sim: &str, store: Arc<dyn Store>) -> Self {
        Self::with(sim, store, |http| http).await
    }

    /// Wraps the executor of calls.
    pub(crate) async fn with(
        sim: &str,
        store: Arc<dyn Store>,
        around: impl FnOnce(Arc<dyn Upstream>) -> Arc<dyn Upstream>,
    ) -> Self {
        let mut config = UpstreamConfig::new("discord", format!("http://{sim}/api/v10"));
        config.token = Some(Secret::new("hunter2"));
        config.token_header = TokenHeader::parse("authorization: Bot");
        config.timeout = ms(5_000);
        let settings = DiscordSettings::default().with_global_per_s(1_000);
        let dialect = DiscordDialect::new("discord", &config.base_url, settings);
        let http =
            HttpUpstreams::with_dialects(vec![(config, Arc::new(dialect) as Arc<dyn Dialect>)]).unwrap();
        let limits = http.limits();
        let executors: Executors = StepExecutor::executors(around(Arc::new(http))).collect();
        let options = Options::default().with_lease(ms(2_000)).with_partition_lease(ms(3_000));
        let options = options.with_node(format!("node-{}", std::process::id()));
        let engine = open_engine(&store, &options, &executors, &limits).await;
        let deployer = Deployer::new(engine.clone(), Arc::clone(&store))
            .with_lease(ms(2_000))
            .with_recheck_delay(ms(200))
            .with_patience(ms(10_000));
        Self { engine, store, deployer }
    }

    pub(crate) async fn apply(&self, template: &str) -> Result<DeployReport> {
        self.deployer.apply(&wanted(template), &NoopListener).await
    }

    pub(crate) async fn plan(&self, template: &str) -> Plan {
        let wanted = wanted(template);
        self.deployer.plan(&wanted, &wanted.read().unwrap(), &NoopListener).await.unwrap().plan
    }
}

/// Opens the engine once the previous owner of the partition has surely gone.
async fn open_engine(
    store: &Arc<dyn Store>,
    options: &Options,
    executors: &Executors,
    limits: &[tidegate_upstream::http::LimitDefinition],
) -> Engine {
    for _ in 0..400 {
        match Engine::builder(Arc::clone(store))
            .options(options.clone())
            .executors(executors.clone())
            .limits(limits.to_vec())
            .open()
            .await
        {
            Ok(engine) => return engine,
            Err(error) if store.is_shared() => {
                assert_eq!(error.code, tidegate::ErrorCode::StoreRefused, "{error}");
            }
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(ms(50)).await;
    }
    panic!("the partition was never free")
}

pub(crate) fn wanted(template: &str) -> DeployRequest {
    DeployRequest::new(GUILD, template).with_file("small.yaml")
}
