//! A server process with one model, and one simulated provider whose jobs take long enough to be
//! seen.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_sim::{Provider, ProviderSim, ProviderSimOptions};

use crate::caller::Caller;
use crate::child::{RunningServer, configure};

/// How many jobs run at once.
const SLOTS: usize = 2;
/// How long a job runs. A page shows a change within a second.
const TAKES: Duration = Duration::from_millis(1_500);

/// The variable that the provider's key is in, and the key.
pub(crate) const PROVIDER_KEY: (&str, &str) = ("PROVIDER_KEY", "any");

/// Starts the provider.
pub(crate) async fn provider() -> ProviderSim {
    let options = ProviderSimOptions {
        takes: TAKES,
        max_concurrent: SLOTS,
        ..ProviderSimOptions::new(Provider::Replicate)
    };
    ProviderSim::start(options).await.unwrap()
}

/// The configuration of the model.
pub(crate) fn sections(provider: &ProviderSim) -> String {
    let schema = r#"{"type":"object","required":["prompt"],"properties":{"prompt":{"type":"string"}}}"#;
    format!(
        "[generations]\nstorage = \"results\"\n\
         [provider.replicate]\nbase_url = \"http://{}/v1\"\nkey_env = \"{}\"\n\
         max_concurrent = {SLOTS}\npoll_after_s = 1\npoll_every_s = 1\n\
         [model.flux]\ninput_schema = '{schema}'\n\
         chain = [{{ provider = \"replicate\", model = \"acme/flux\", cost = 3000 }}]\n",
        provider.addr(),
        PROVIDER_KEY.0
    )
}

/// Creates a generation and returns its id.
pub(crate) async fn create(caller: &Caller, prompt: &str) -> String {
    let body = json!({ "model_id": "flux", "user_id": "anna", "input": { "prompt": prompt } });
    let created = caller.post("/api/generations/create", &[], &body).await;
    created["id"].as_str().unwrap().to_owned()
}

/// The server, its provider and a client.
pub(super) struct Studio {
    pub server: RunningServer,
    pub caller: Caller,
    _provider: ProviderSim,
    _dir: TempDir,
}

impl Studio {
    pub(super) async fn start() -> Self {
        let provider = provider().await;
        let dir = tempfile::tempdir().unwrap();
        configure(dir.path(), 4, &sections(&provider));
        let server = RunningServer::start(dir.path(), "warn", Some(PROVIDER_KEY));
        let caller = Caller::of(&server.address);
        Self { server, caller, _provider: provider, _dir: dir }
    }

    /// Creates a generation and returns its id.
    pub(super) async fn create(&self, prompt: &str) -> String {
        create(&self.caller, prompt).await
    }

    /// Why a generation failed.
    pub(super) async fn error_of(&self, id: &str) -> String {
        let one: Value =
            serde_json::from_str(&self.caller.get(&format!("/api/generations/{id}")).await).unwrap();
        one["error"].as_str().unwrap().to_owned()
    }

    /// The address of a page.
    pub(super) fn page(&self, path: &str) -> String {
        format!("{}{path}", self.server.address)
    }
}
