//! A server with something in every view: what succeeded, failed, waits, runs and is in doubt, with
//! keys, entities, generations and a deployment.

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_sim::{DiscordSim, HttpSim, HttpSimOptions, ProviderSim};
use tokio::task::JoinHandle;
use tokio::time::{Duration, sleep};

use super::every_action;
use super::studio::{self, PROVIDER_KEY};
use crate::caller::Caller;
use crate::child::{RunningServer, StartingServer, configure, tidegate, upstream};
use crate::deployed;

/// How long the slow upstream takes: longer than the test.
const SLOW: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(20);
/// The operations that succeed.
const ORDERS: usize = 24;

/// The upstreams that behave in a way of their own.
pub(crate) struct Upstreams {
    echo: HttpSim,
    /// It drops every answer after the effect.
    cut: HttpSim,
    /// It always fails.
    down: HttpSim,
    slow: HttpSim,
    /// It takes one call in a long while.
    strict: HttpSim,
}

impl Upstreams {
    pub(crate) async fn start() -> Self {
        let start = async |options| HttpSim::start(options).await.unwrap();
        let usual = HttpSimOptions::default;
        Self {
            echo: start(usual()).await,
            cut: start(HttpSimOptions { cut_rate: 1.0, ..usual() }).await,
            down: start(HttpSimOptions { fail_rate: 1.0, ..usual() }).await,
            slow: start(HttpSimOptions { latency: SLOW, ..usual() }).await,
            strict: start(HttpSimOptions { capacity: 1, refill_per_s: Some(0.01), ..usual() }).await,
        }
    }

    /// Their part of a configuration.
    pub(crate) fn sections(&self) -> String {
        let source =
            "[[source]]\nentity_type = \"customer\"\nupstream = \"slow\"\npath = \"/customers/{id}\"\n";
        [
            upstream("echo", &self.echo, Some((40, 20.0))),
            upstream("cut", &self.cut, None),
            upstream("down", &self.down, None),
            upstream("slow", &self.slow, None),
            upstream("strict", &self.strict, None),
            source.to_owned(),
        ]
        .concat()
    }
}

/// What can be looked at by its id.
pub(crate) struct Subjects {
    pub succeeded: String,
    pub failed: String,
    pub unknown: [String; 3],
    /// It waits in the paused group.
    pub queued: String,
    pub generation: String,
    pub refused_generation: String,
}

/// The group that is paused.
pub(crate) const PAUSED: &str = "shop:01";
/// The group whose operation failed.
pub(crate) const FAILED: &str = "report:3";

impl Subjects {
    /// Has a server accept some of everything, and waits until each is in its state.
    pub(crate) async fn create(caller: &Caller) -> Self {
        let pause = json!({ "by": "anna", "reason": "price fix", "create": true });
        caller.post("/v1/groups/shop%3A01/pause", &[], &pause).await;
        let mut orders = Vec::new();
        for n in 0..ORDERS {
            orders.push(submit(caller, "echo", &format!("shop:{:02}", 2 + n % 6), "/orders").await);
        }
        let succeeded = orders.pop().unwrap();
        let queued = submit(caller, "echo", PAUSED, "/prices").await;
        let failed = submit(caller, "down", FAILED, "/reports").await;
        let mut unknown = Vec::new();
        for group in ["payments:7", "payments:8", "payments:9"] {
            unknown.push(submit(caller, "cut", group, "/pay").await);
        }
        submit(caller, "slow", "export:1", "/export").await;
        let generation = studio::create(caller, "a lighthouse at dusk").await;
        let refused_generation = studio::create(caller, "[nsfw] what a filter refuses").await;
        wait_for(caller, &succeeded, "succeeded").await;
        wait_for(caller, &failed, "failed").await;
        for id in &unknown {
            wait_for(caller, id, "unknown").await;
        }
        wait_for(caller, &generation, "succeeded").await;
        let unknown = unknown.try_into().expect("there are three");
        Self { succeeded, failed, unknown, queued, generation, refused_generation }
    }
}

async fn submit(caller: &Caller, upstream: &str, group: &str, path: &str) -> String {
    let request = json!({ "method": "POST", "path": path, "body": { "amount": 1 } });
    let operation = json!({ "upstream": upstream, "group": group, "request": request, "max_attempts": 1 });
    caller.submit(&operation).await.0
}

/// The state of an operation.
pub(crate) async fn state_of(caller: &Caller, id: &str) -> String {
    let shown: Value = serde_json::from_str(&caller.get(&format!("/v1/operations/{id}")).await).unwrap();
    shown["state"].as_str().unwrap().to_owned()
}

/// Waits until an operation has a state.
pub(crate) async fn wait_for(caller: &Caller, id: &str, state: &str) {
    while state_of(caller, id).await != state {
        sleep(LOOK).await;
    }
}

/// A caller that waits for an entity that does not come, so that a flight is open. It ends with its
/// handle.
pub(crate) struct WaitingCaller(JoinHandle<()>);

/// The key of a request that was answered.
const KEY: &str = "order-1041";

impl WaitingCaller {
    /// Starts it, after a request with a key.
    pub(crate) async fn start(caller: &Caller) -> Self {
        let request = json!({ "method": "POST", "path": "/orders" });
        let operation = json!({ "upstream": "echo", "group": "shop:02", "request": request });
        caller.post("/v1/operations", &[("idempotency-key", KEY)], &operation).await;
        let reader = caller.clone();
        Self(tokio::spawn(async move {
            loop {
                let path = "/v1/entities/customer/c-7?wait_ms=5000";
                reader.call(hyper::Method::GET, path, &[], None).await;
            }
        }))
    }
}

impl Drop for WaitingCaller {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The server, with all of it.
pub(super) struct Exhibit {
    pub server: RunningServer,
    pub caller: Caller,
    pub subjects: Subjects,
    pub deployment: String,
    _waiting: WaitingCaller,
    _sims: (Upstreams, ProviderSim, DiscordSim),
    _dir: TempDir,
}

impl Exhibit {
    pub(super) async fn open() -> Self {
        let (upstreams, provider) = (Upstreams::start().await, studio::provider().await);
        let discord = deployed::discord().await;
        let dir = tempfile::tempdir().unwrap();
        let models = studio::sections(&provider) + &every_action::sections();
        configure(dir.path(), 8, &[upstreams.sections(), deployed::upstream(&discord), models].concat());
        every_action::claim_keys(&format!("file:{}", dir.path().join("data").display())).await;
        let mut command = tidegate();
        command.envs([PROVIDER_KEY, deployed::UPSTREAM_TOKEN]).current_dir(dir.path());
        command.args(["serve", "--log-level", "warn", "--config"]).arg(dir.path().join("tidegate.toml"));
        let server = tokio::task::block_in_place(|| RunningServer::of(StartingServer::of(command)));
        let caller = Caller::of(&server.address);
        let begun = caller.post("/v1/deployments", &[], &deployed::small()).await;
        let deployment = begun["id"].as_str().unwrap().to_owned();
        let subjects = Subjects::create(&caller).await;
        let waiting = WaitingCaller::start(&caller).await;
        deployed::wait_until_ended(&caller, &deployment).await;
        let _sims = (upstreams, provider, discord);
        Self { server, caller, subjects, deployment, _waiting: waiting, _sims, _dir: dir }
    }
}

/// The views that every server has, by a name and a path.
pub(crate) fn views(subjects: &Subjects) -> Vec<(&'static str, String)> {
    let Subjects { succeeded, unknown: [unknown, ..], generation, refused_generation, .. } = subjects;
    let fixed = [
        ("overview", "/"),
        ("operations", "/operations"),
        ("operations-failed", "/operations?state=failed&group=report%3A3"),
        ("groups", "/groups"),
        ("group", "/groups/shop%3A01"),
        ("limits", "/limits"),
        ("keys", "/keys"),
        ("audit", "/audit"),
        ("generations", "/generations"),
        ("providers", "/providers"),
        ("ledger", "/ledger"),
        ("flights", "/flights"),
        ("workers", "/workers"),
        ("nodes", "/nodes"),
        ("deployments", "/deployments"),
        ("error-codes", "/docs/errors"),
        ("confirm-limit", "/actions/set-limit?subject=echo%2Frequests"),
        ("unknown-address", "/nowhere"),
    ];
    let by_id = [
        ("operation", format!("/operations/{unknown}")),
        ("operation-succeeded", format!("/operations/{succeeded}")),
        ("generation", format!("/generations/{generation}")),
        ("generation-refused", format!("/generations/{refused_generation}")),
        ("confirm", format!("/actions/send-again?subject={unknown}")),
    ];
    fixed.into_iter().map(|(name, path)| (name, path.to_owned())).chain(by_id).collect()
}
