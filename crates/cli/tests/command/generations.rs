//! `generation`, `provider` and `ledger` against a server with a simulated provider.

use std::time::Duration;

use tidegate_server::config::Overrides;
use tidegate_server::{Config, Server};
use tidegate_sim::{Provider, ProviderSim, ProviderSimOptions};

use crate::support::{CommandOutput, run, tidegate};

struct Studio {
    server: Server,
    _sim: ProviderSim,
    _results: tempfile::TempDir,
}

impl Studio {
    /// A server with one provider that has one slot, and jobs of this length.
    async fn start(takes: Duration) -> Self {
        let options = ProviderSimOptions { takes, ..ProviderSimOptions::new(Provider::Replicate) };
        let sim = ProviderSim::start(options).await.unwrap();
        let results = tempfile::tempdir().unwrap();
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\ndrain_s = 1\n[store]\nurl = \"memory:\"\n\
             [generations]\nstorage = {:?}\n\
             [provider.replicate]\nbase_url = \"http://{}/v1\"\nkey_env = \"KEY\"\nmax_concurrent = 1\n\
             poll_after_s = 1\npoll_every_s = 1\n\
             [model.flux]\nchain = [{{ provider = \"replicate\", model = \"acme/flux\" }}]\n",
            results.path().display().to_string(),
            sim.addr()
        );
        let env = |name: &str| (name == "KEY").then(|| "r8_key".to_owned());
        let config = Config::parse("test.toml", &text, &env, &Overrides::default(), &[]).unwrap();
        Self { server: Server::start(config).await.unwrap(), _sim: sim, _results: results }
    }

    async fn run(&self, args: &[&str]) -> CommandOutput {
        let mut command = tidegate();
        command.env("TIDEGATE_SERVER", format!("http://{}", self.server.addr)).args(args);
        tokio::task::spawn_blocking(move || run(command)).await.unwrap()
    }
}

/// DSP-1: a generation is created, waited for, shown, listed and found again by its key, from the
/// command line.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_1_generations_are_created_from_the_command_line() {
    let studio = Studio::start(Duration::from_millis(50)).await;
    let create =
        ["generation", "create", "--model", "flux", "--prompt", "a cat", "--user", "anna", "--key", "k-1"];
    let made = studio.run(&[&create[..], &["--wait-s", "30", "--json"]].concat()).await.json();
    assert_eq!((&made["status"], &made["user_id"]), (&"completed".into(), &"anna".into()), "{made}");
    let id = made["id"].as_str().unwrap();
    assert_eq!(studio.run(&create).await.expect_success(), id, "the same key is the same generation");
    let shown = studio.run(&["generation", "show", id]).await;
    assert!(shown.expect_success().contains("status\tcompleted\n"), "{shown:?}");
    assert!(shown.out.contains(&format!("result\t/api/generations/{id}/result/0 (image/png, ")), "{shown:?}");
    let list = studio.run(&["generation", "list", "--user", "anna"]).await;
    assert!(list.expect_success().starts_with(&format!("{id}\tcompleted\tflux\tanna\t2")), "{list:?}");
    let none = studio.run(&["generation", "list", "--user", "boris"]).await;
    assert_eq!((none.expect_success(), none.err.trim()), ("", "no generation matches"));
    let ledger = studio.run(&["ledger"]).await;
    assert!(
        ledger.expect_success().starts_with(&format!("{id}\t1\treplicate\tkey-1\tsucceeded\t")),
        "{ledger:?}"
    );
    let doubtful = studio.run(&["ledger", "--may-be-double"]).await;
    assert_eq!((doubtful.expect_success(), doubtful.err.trim()), ("", "no attempt matches"));
    let failed = studio
        .run(&["generation", "create", "--model", "flux", "--prompt", "[nsfw]", "--wait-s", "30"])
        .await;
    assert!(failed.exit == Some(1) && failed.out.contains("status\tfailed\n"), "{failed:?}");
    let wrong = studio.run(&["generation", "create", "--model", "fulx", "--prompt", "x"]).await;
    assert!(wrong.exit == Some(1) && wrong.err.starts_with("error[TG0030]: "), "{wrong:?}");
    let usage = studio.run(&["generation", "create", "--model", "flux"]).await;
    assert_eq!(usage.exit, Some(2), "{usage:?}");
}

/// DSP-14, DSP-24: why a generation waits, which provider is busy, and more slots for it, from the
/// command line.
#[tokio::test(flavor = "multi_thread")]
async fn dsp_14_dsp_24_a_provider_is_looked_at_and_changed() {
    let studio = Studio::start(Duration::from_secs(20)).await;
    let create = ["generation", "create", "--model", "flux", "--prompt", "a cat"];
    let first = studio.run(&create).await.expect_success().to_owned();
    let second = studio.run(&create).await.expect_success().to_owned();
    let is_processing = async |id: &str| {
        studio.run(&["generation", "show", id, "--json"]).await.json()["status"] == "processing"
    };
    while !is_processing(&first).await {}
    let why = studio.run(&["generation", "why", &second]).await;
    assert!(why.expect_success().contains("replicate\tkey-1\tbusy\t"), "{why:?}");
    let providers = studio.run(&["provider", "list"]).await;
    assert!(providers.expect_success().starts_with("replicate\tbusy\t\t1 of 1\t"), "{providers:?}");
    let set = studio.run(&["provider", "set", "replicate", "--max-concurrent", "2", "--json"]).await.json();
    assert_eq!((&set["slots"]["max_concurrent"], &set["slots"]["source"]), (&2.into(), &"operator".into()));
    while !is_processing(&second).await {}
    let canceled = studio.run(&["generation", "cancel", &second, "--json"]).await.json();
    assert!(canceled["cancel_requested"] == true || canceled["status"] == "canceled", "{canceled}");
    let nowhere = studio.run(&["provider", "set", "nowhere", "--rpm", "2"]).await;
    assert!(nowhere.exit == Some(1) && nowhere.err.starts_with("error[TG0033]: "), "{nowhere:?}");
    assert_eq!(studio.run(&["provider", "set", "replicate"]).await.exit, Some(2));
}
