//! Four simulated providers, each unreliable in its own way, and a server process that uses them at
//! an address that stays the same: killed, and started again on what it left behind.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use tidegate_sim::providers::signature::WebhookSigner;
use tidegate_sim::providers::webhook::WebhookFaults;
use tidegate_sim::{Provider, ProviderSim, ProviderSimOptions};
use tokio::time::sleep;

use super::scale::Scale;
use crate::child::{RunningServer, StartingServer, tidegate};
use crate::workers::WorkerProcess;

/// The models: one waits for what an unknown submit became, the other uses the next provider.
pub(super) const MODELS: [&str; 2] = ["waits", "fails_over"];
/// What each job costs.
pub(super) const COST: u64 = 3_000;
/// How long an accepted job may take, in seconds.
const DEADLINE_S: u64 = 4;
/// The credential of every provider, and the variables in which a process finds its secrets.
const KEY: &str = "id:secret";
const KEY_VAR: &str = "PROVIDER_KEY";
const WEBHOOK_VAR: &str = "WEBHOOK_SECRET";

/// A provider with a name of its own, and its name of the model.
const PROVIDERS: [(Provider, &str, &str); 4] = [
    (Provider::Replicate, "replicate", "acme/flux"),
    (Provider::Google, "google", "veo-3"),
    (Provider::Fal, "fal", "acme/flux/dev"),
    (Provider::Higgsfield, "higgsfield", "acme/soul"),
];

/// What goes wrong at a provider: responses to accepted submits are lost, it is slow, it fails.
fn options(provider: Provider, seed: u64) -> ProviderSimOptions {
    let (takes_ms, latency_ms, fail_rate, cut_rate) = match provider {
        Provider::Replicate => (60, 40, 0.0, 0.1),
        Provider::Google => (300, 10, 0.0, 0.0),
        Provider::Fal => (60, 10, 0.15, 0.0),
        Provider::Higgsfield => (60, 40, 0.0, 0.05),
    };
    ProviderSimOptions {
        takes: Duration::from_millis(takes_ms),
        latency: Duration::from_millis(latency_ms),
        fail_rate,
        cut_rate,
        webhook_faults: WebhookFaults { lost: 0.2, doubled: 0.3, ..WebhookFaults::default() },
        max_concurrent: 50,
        rpm: 60_000,
        burst: 1_000,
        seed,
        ..ProviderSimOptions::new(provider)
    }
}

/// The providers, and the folder of the server.
pub(super) struct Studio {
    pub sims: BTreeMap<&'static str, ProviderSim>,
    pub dir: TempDir,
    /// Where the server is: `http://127.0.0.1:PORT`.
    pub address: String,
    webhook_secret: String,
    /// Whether the server has the keys of the providers.
    is_alone: bool,
    pub scale: Scale,
}

/// The configurations of the processes.
const SERVER_CONFIG: &str = "tidegate.toml";
const WORKER_CONFIG: &str = "worker.toml";

/// What a process does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Everything.
    Alone,
    /// Everything but the calls to providers.
    Server,
    /// The calls to providers.
    Worker,
}

impl Studio {
    /// Starts the providers, and a server that uses them. An empty store is one in the folder.
    pub(super) async fn new(store: &str, seed: u64, scale: Scale) -> Self {
        Self::with_roles(store, seed, scale, &[(Role::Alone, SERVER_CONFIG)]).await
    }

    /// Starts the providers for workers with their keys, and a server without.
    pub(super) async fn with_workers(seed: u64, scale: Scale) -> Self {
        let roles = [(Role::Server, SERVER_CONFIG), (Role::Worker, WORKER_CONFIG)];
        Self::with_roles("", seed, scale, &roles).await
    }

    async fn with_roles(store: &str, seed: u64, scale: Scale, roles: &[(Role, &str)]) -> Self {
        let mut sims = BTreeMap::new();
        for (provider, name, _) in PROVIDERS {
            sims.insert(name, ProviderSim::start(options(provider, seed)).await.unwrap());
        }
        let dir = tempfile::tempdir().unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("http://127.0.0.1:{port}");
        let own = format!("file:{}", dir.path().join("data").display());
        let store = if store.is_empty() { &own } else { store };
        for (role, file) in roles {
            let text = format!(
                "[server]\nlisten = \"127.0.0.1:{port}\"\npublic_url = \"{address}\"\n\
                 [store]\nurl = \"{store}\"\n[idempotency]\nlease_s = 2\n\
                 [generations]\nstorage = {:?}\nper_user_rpm = 0\n{}",
                dir.path().join("results").display().to_string(),
                sections(&sims, *role, scale.slots),
            );
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        let is_alone = matches!(roles, [(Role::Alone, _)]);
        let webhook_secret = WebhookSigner::new(seed).secret();
        Self { sims, dir, address, webhook_secret, is_alone, scale }
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a worker, which has the keys.
    pub(super) fn work(&self) -> WorkerProcess {
        WorkerProcess::of(self.path(), WORKER_CONFIG, &self.address, &[(KEY_VAR, KEY)])
    }

    /// Starts the server, and waits until it serves.
    pub(super) fn serve(&self) -> RunningServer {
        let mut command = tidegate();
        command.args(["serve", "--log-level", "error", "--config"]).arg(self.path().join(SERVER_CONFIG));
        command.current_dir(self.path()).env(WEBHOOK_VAR, &self.webhook_secret);
        command.envs(self.is_alone.then_some((KEY_VAR, KEY)));
        tokio::task::block_in_place(|| RunningServer::of(StartingServer::of(command)))
    }

    /// Lets the first provider of the chain fail for a while, if this test has an outage.
    pub(super) async fn outage(&self) {
        let (Some(outage), (_, name, _)) = (&self.scale.outage, PROVIDERS[0]) else { return };
        sleep(outage.start).await;
        self.sims[name].set_fail_rate(1.0);
        sleep(outage.end - outage.start).await;
        self.sims[name].set_fail_rate(0.0);
    }

    /// What the providers have billed: the provider and its id of the job, by prompt.
    pub(super) fn bill(&self) -> BTreeMap<String, Vec<(&'static str, String)>> {
        let mut bill: BTreeMap<String, Vec<_>> = BTreeMap::new();
        for (name, sim) in &self.sims {
            let jobs = sim.jobs();
            assert_eq!(sim.stats().all.billed, jobs.len() as u64, "{name} bills every job once");
            for job in jobs {
                bill.entry(job.spec.prompt).or_default().push((*name, job.id));
            }
        }
        bill
    }
}

/// The sections of the providers and of the models, and the kind that is left to workers.
fn sections(sims: &BTreeMap<&'static str, ProviderSim>, role: Role, slots: u64) -> String {
    let (mut text, mut chain) = (String::new(), Vec::new());
    if role != Role::Alone {
        text.push_str("[[kind]]\nname = \"generation\"\nworker = \"remote\"\n");
    }
    for (provider, name, model) in PROVIDERS {
        let addr = sims[name].addr();
        let path = match provider {
            Provider::Replicate => "/v1",
            Provider::Google => "/v1beta",
            Provider::Fal | Provider::Higgsfield => "",
        };
        let mut keys = match (provider, role) {
            (Provider::Google, Role::Alone | Role::Server) | (Provider::Replicate, Role::Server) => {
                format!("webhook_secret_env = \"{WEBHOOK_VAR}\"\n")
            }
            (Provider::Fal, _) => format!("jwks_url = \"http://{addr}/.well-known/jwks.json\"\n"),
            _ => String::new(),
        };
        if role != Role::Server {
            keys.push_str(&format!("key_env = \"{KEY_VAR}\"\n"));
        }
        text.push_str(&format!(
            "[provider.{name}]\nbase_url = \"http://{addr}{path}\"\n{keys}\
             max_concurrent = {slots}\nrpm = 60000\npoll_after_s = 1\npoll_every_s = 1\n\
             cooldown_s = [1]\ntimeout_s = 5\ndeadline_s = {DEADLINE_S}\n"
        ));
        chain.push(format!("{{ provider = \"{name}\", model = \"{model}\", cost = {COST} }}"));
    }
    for (model, on_unknown) in MODELS.into_iter().zip(["wait", "failover"]) {
        let chain = chain.join(", ");
        text.push_str(&format!("[model.{model}]\non_unknown = \"{on_unknown}\"\nchain = [{chain}]\n"));
    }
    text
}
