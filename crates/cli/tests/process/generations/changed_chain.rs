//! A chain that is changed in the configuration file while the server, and a worker, run: what is
//! queued goes to the new provider, and what the old one has stays there.

use std::net::TcpListener;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_sim::{Provider, ProviderSim, ProviderSimOptions};
use tokio::time::{sleep, timeout};

use crate::caller::Caller;
use crate::child::{RunningServer, StartingServer, tidegate};
use crate::workers::WorkerProcess;

const KEY: (&str, &str) = ("PROVIDER_KEY", "id:secret");
/// Longer than anything takes that is waited for.
const LONG: Duration = Duration::from_secs(30);

/// A provider whose jobs take this long.
async fn provider(provider: Provider, takes: Duration) -> ProviderSim {
    let options = ProviderSimOptions { takes, ..ProviderSimOptions::new(provider) };
    ProviderSim::start(options).await.unwrap()
}

/// What both processes are configured with, apart from the chain.
struct Setup {
    address: String,
    folder: String,
    busy: ProviderSim,
    free: ProviderSim,
    has_worker: bool,
}

impl Setup {
    fn text(&self, has_keys: bool, chain: &str) -> String {
        let Self { address, folder, busy, free, has_worker } = self;
        let key = if has_keys { format!("key_env = \"{}\"\n", KEY.0) } else { String::new() };
        let kind = if *has_worker { "[[kind]]\nname = \"generation\"\nworker = \"remote\"\n" } else { "" };
        format!(
            "[server]\nlisten = \"{listen}\"\n[store]\nurl = \"file:{folder}/data\"\n\
             [generations]\nstorage = \"{folder}/results\"\n{kind}\
             [provider.replicate]\nbase_url = \"http://{}/v1\"\n{key}max_concurrent = 1\n\
             [provider.fal]\nbase_url = \"http://{}\"\n{key}poll_after_s = 1\npoll_every_s = 1\n\
             [model.flux]\nchain = [{{ provider = \"{chain}\", model = \"acme/flux\" }}]\n",
            busy.addr(),
            free.addr(),
            listen = address.trim_start_matches("http://"),
        )
    }

    fn write(&self, dir: &Path, chain: &str) {
        std::fs::write(dir.join("tidegate.toml"), self.text(!self.has_worker, chain)).unwrap();
        std::fs::write(dir.join("worker.toml"), self.text(true, chain)).unwrap();
    }
}

async fn create(caller: &Caller, prompt: &str) -> String {
    let body = json!({ "model_id": "flux", "input": { "prompt": prompt }, "user_id": "ann" });
    let created = caller.post("/api/generations/create", &[], &body).await;
    created["id"].as_str().unwrap().to_owned()
}

/// Waits until a generation, or the models, are as expected.
async fn until(caller: &Caller, path: &str, is_met: impl Fn(&Value) -> bool) -> Value {
    let mut last = Value::Null;
    let wait = async {
        loop {
            last = serde_json::from_str(&caller.get(path).await).unwrap();
            if is_met(&last) {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    let met = timeout(LONG, wait).await;
    assert!(met.is_ok(), "{path} stays {last}");
    last
}

async fn change_under_way(has_worker: bool) {
    let dir = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let setup = Setup {
        address: format!("http://127.0.0.1:{port}"),
        folder: dir.path().display().to_string(),
        busy: provider(Provider::Replicate, Duration::from_secs(600)).await,
        free: provider(Provider::Fal, Duration::from_millis(50)).await,
        has_worker,
    };
    setup.write(dir.path(), "replicate");
    let mut command = tidegate();
    command.args(["serve", "--log-level", "warn"]).current_dir(dir.path()).env(KEY.0, KEY.1);
    let _server = tokio::task::block_in_place(|| RunningServer::of(StartingServer::of(command)));
    let _worker = has_worker.then(|| WorkerProcess::of(dir.path(), "worker.toml", &setup.address, &[KEY]));
    let caller = Caller::of(&setup.address);
    let [first, second] = ["a cat", "a dog"].map(|prompt| create(&caller, prompt));
    let (first, second) = (first.await, second.await);
    let [first, second] = [first, second].map(|id| format!("/api/generations/{id}"));
    until(&caller, &first, |one| one["status"] == "processing").await;
    until(&caller, &second, |one| one["queue_position"] == 1).await;

    setup.write(dir.path(), "fal");
    until(&caller, "/v1/models", |all| all["models"][0]["chain"][0]["provider"] == "fal").await;
    let done =
        until(&caller, &second, |one| one["status"] != "queued" && one["status"] != "processing").await;
    assert_eq!((&done["status"], &done["provider"]), (&json!("completed"), &json!("fal")), "{done}");
    let first = until(&caller, &first, |_| true).await;
    assert_eq!((&first["status"], &first["provider"]), (&json!("processing"), &json!("replicate")));
    assert_eq!((setup.busy.stats().all.billed, setup.free.stats().all.billed), (1, 1));
}

/// DSP-14, DSP-4: the file of a running server is changed.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_14_dsp_4_a_chain_changes_while_the_server_runs() {
    change_under_way(false).await;
}

/// DSP-14, DSP-17: the same with the files of a server and of its worker.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_14_dsp_17_a_chain_changes_while_a_worker_runs() {
    change_under_way(true).await;
}
